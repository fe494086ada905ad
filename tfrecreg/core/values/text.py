"""Turns values into text and JSON: escapes, sizes, counts, lists of names.

Base classes of plugins inherit from :class:`ExtensionPoint`. It raises an error if a plugin
misspells the name of a method, because nothing would call this method.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from enum import Enum
from reprlib import Repr
from typing import Any

DOCS = "https://github.com/tfrecreg/tfrecreg/tree/main/docs"
"""The address of the documentation, also in pyproject.toml. A wheel has no folder `docs`."""
_HARMLESS = re.compile(r"[A-Za-z0-9 _.,/@%+=()-]*")
"""Matches texts that have no characters to escape, which are nearly all texts."""
_KEEP = frozenset({"Ll", "Lu", "Lt", "Lm", "Lo", "Mn", "Mc", "Me"})
# Invisible letters, marks and symbols: fillers, joiners, variation selectors, the empty braille
# cell. These are Unicode's Default_Ignorable_Code_Point, and U+2800.
_UNSEEN = frozenset(
    (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0)
) | frozenset((*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))


def safe(text: str, *, limit: int = 200) -> str:
    r"""`text` with escapes for all characters that could mislead a terminal or a reader.

    These characters become ``\x1b``, ``\u202e`` and so on: control characters (C0, C1, DEL), format
    characters (bidirectional overrides, zero-width characters), surrogates, private-use and
    unassigned code points, separators other than the space, and invisible characters. A backslash
    is doubled. ``\x80`` to ``\xff`` are bytes of a name that was not UTF-8. ``::`` at the beginning
    and ``##[`` anywhere are commands in GitHub's logs, so their first character is escaped.
    Different texts have different results, unless the results are cut. The result has at most
    `limit` characters. An ellipsis marks a cut, and no escape is split.

    Args:
        text: any text. If it contains a name that is not UTF-8, it has surrogate escapes.
        limit: maximum number of characters to return, at least 1.
    """
    if type(text) is str and len(text) <= limit and _HARMLESS.fullmatch(text):
        return text
    shown: list[str] = []
    length = 0
    command = len(text) - len(text.lstrip(" ")) if text.lstrip(" ").startswith("::") else -1
    for place, character in enumerate(text):
        if place == command or (character == "#" and text.startswith("##[", place)):
            piece = f"\\x{ord(character):02x}"
        else:
            piece = _escape(character)
        length += len(piece)
        shown.append(piece)
        if length > limit:
            while length > limit - 1:
                length -= len(shown.pop())
            return "".join(shown) + "…"
    return "".join(shown)


def safe_message(text: str, *, limit: int = 2000) -> str:
    """Escape a sentence as :func:`safe` does, so that it cannot mislead a terminal.

    Backslashes are not doubled, because names in the sentence may have been escaped before.
    """
    if len(text) <= limit and _HARMLESS.fullmatch(text):
        return text
    return "\\".join(safe(part, limit=limit) for part in text.split("\\"))[:limit]


def safe_value(value: bytes) -> str:
    """A value that should be text, escaped as in :func:`safe`. Bytes that are not UTF-8 are escaped
    as well. At most 60 characters are shown, which the first 300 bytes contain.
    """
    return safe(value[:300].decode("utf-8", "surrogateescape"), limit=60)


def type_text(value: object) -> str:
    """The type of a value in words; for None, the text ``None``."""
    return "None" if value is None else f"an object of type `{safe(type(value).__name__)}`"


def hex_start(data: bytes, count: int = 16) -> str:
    """The first `count` bytes in hex, with an ellipsis if there are more."""
    return data[:count].hex(" ") + (" …" if len(data) > count else "")


def _escape(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if " " <= character <= "~":
        return character
    number = ord(character)
    category = unicodedata.category(character)
    if (category in _KEEP or category[0] in "NPS") and number not in _UNSEEN:
        return character
    if number < 0x80:
        return f"\\x{number:02x}"
    if 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number - 0xDC00:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


class ShortRepr:
    """Base of dataclasses with ``repr=False``: the repr has a few lines, even if the values are
    long.

    Long strings, and sequences of more than a few elements, are cut with an ellipsis.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        cut = Repr()
        cut.maxtuple = cut.maxlist = cut.maxdict = 3
        cut.maxstring = cut.maxother = 100
        shown = [
            f"{each.name}={cut.repr(getattr(self, each.name))}"
            for each in fields(self)  # type: ignore[arg-type]  # the subclass is the dataclass
            if each.repr
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def count(number: int, noun: str) -> str:
    """``1 shard``, ``2,400 records``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def si_bytes(number: float) -> str:
    """A size with its unit: ``512 B``, ``1.5 kB``, ``-3.2 GB`` (powers of 1000)."""
    if abs(number) < 999.5:
        return f"{number:.0f} B"
    for unit in ("kB", "MB", "GB", "TB"):
        number /= 1000
        if abs(number) < 999.95 or unit == "TB":
            break
    return f"{number:.1f} {unit}"


_CLOSE = 0.8
"""A plugin's method is misspelled if it is at least this similar to one of the base class."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean `mnist`?`` if one of `known` is close to `name`, else an empty text.

    It is the end of a message: ``no source named `mnits`; did you mean `mnist`?``
    """
    matches = get_close_matches(name, sorted(set(known)), n=1, cutoff=0.6)
    return f"; did you mean `{safe(matches[0])}`?" if matches else ""


def listed(names: Iterable[str], *, word: str = "and", most: int | None = None) -> str:
    """Names as a list in a sentence, in the given order: ``none``, `` `a` ``, `` `a`, `b` and `c`
    ``.

    If there are more than `most` names, the list ends with a number: `` `a`, `b` and 6 more ``.
    """
    shown = [f"`{safe(name)}`" for name in names]
    if most is not None and len(shown) > most:
        return f"{', '.join(shown[:most])} {word} {len(shown) - most:,} more"
    if len(shown) < 2:
        return shown[0] if shown else "none"
    return f"{', '.join(shown[:-1])} {word} {shown[-1]}"


class ExtensionPoint:
    """Base of the classes from which plugins inherit.

    A subclass may have its own public methods, but their names must not be similar to a name that
    the base class defines. Otherwise creating the class raises a TypeError.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        inherited = {name for base in cls.__mro__[1:] for name in vars(base)}
        points = [base for base in cls.__mro__[1:] if base.__module__.startswith("tfrecreg.")]
        known = sorted(
            {
                name
                for base in points
                for name in (*vars(base), *vars(base).get("__annotations__", {}))
                if not name.startswith("_")
            }
        )
        for name, value in vars(cls).items():
            is_method = callable(value) or isinstance(value, property | classmethod | staticmethod)
            if name.startswith("_") or name in known or name in inherited or not is_method:
                continue
            for meant in get_close_matches(name, known, n=1, cutoff=_CLOSE):
                raise TypeError(
                    f"`{cls.__name__}.{name}` is not a method of {points[0].__name__}; did you "
                    f"mean `{meant}`? If not, rename `{name}` to `_{name}`"
                )


def overrides(thing: object, base: type, name: str) -> bool:
    """Whether an object has its own method `name` instead of the default in `base`.

    The object need not inherit from `base`.
    """
    return hasattr(thing, name) and getattr(type(thing), name, None) is not getattr(base, name)


def json_data(value: object) -> Any:
    """A result as objects, lists and values that JSON can hold.

    A record becomes an object with its fields, except fields that its `repr` omits. If a record
    needs other keys in JSON, its method `to_json` returns the object, which may contain records.
    JSON has no NaN and no infinity, so NaN becomes null and infinity becomes a word. A value of any
    other type becomes its text.
    """
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: json_data(each) for key, each in value.items()}
    own = getattr(value, "to_json", None)
    if own is not None:
        return json_data(own())
    if hasattr(value, "__struct_fields__"):
        import msgspec  # the command can start without it

        return json_data(msgspec.to_builtins(value))
    if is_dataclass(value):
        shown = (each.name for each in fields(value) if each.repr)
        return {name: json_data(getattr(value, name)) for name in shown}
    if isinstance(value, Iterable):
        return [json_data(each) for each in value]
    return str(value)
