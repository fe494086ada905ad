"""Values as text and as JSON-able data: escaping for terminals and logs, sizes, counts.

A base class of plugins inherits from :class:`ExtensionPoint`, so that a misspelled method is an
error and not a method without calls.
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
"""The address of the pages, as in pyproject.toml: a wheel has no folder `docs`."""
_HARMLESS = re.compile(r"[A-Za-z0-9 _.,/@%+=()-]*")
"""Texts without characters to escape: nearly all texts."""
_KEEP = frozenset({"Ll", "Lu", "Lt", "Lm", "Lo", "Mn", "Mc", "Me"})
# Invisible characters whose category is letter, mark or symbol: fillers, joiners, variation
# selectors, the empty braille cell. Unicode's Default_Ignorable_Code_Point, and U+2800.
_UNSEEN = frozenset(
    (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0)
) | frozenset((*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))


def safe(text: str, *, limit: int = 200) -> str:
    r"""`text` with escapes for all characters that could mislead a terminal or a reader.

    Control characters (C0, C1, DEL), format characters (bidirectional overrides, zero-width),
    surrogates, private use and unassigned code points, separators other than the space, and other
    invisible characters become ``\x1b``, ``\u202e`` and so on; a backslash is doubled. ``\x80`` to
    ``\xff`` are bytes of a name that was not UTF-8. ``::`` at the beginning and ``##[`` anywhere
    are commands in GitHub's logs, so their first character is escaped. Different texts have
    different results. The result is never longer than `limit` characters; a cut is marked by an
    ellipsis, and escapes are never split.

    Args:
        text: any text; names that were not UTF-8 with surrogate escapes.
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


def safe_value(value: bytes, *, limit: int = 60) -> str:
    """A value that should be text, shown as :func:`safe` shows texts; a part that is not UTF-8 as
    escapes. Only the bytes that can be shown are read.
    """
    return safe(value[: 4 * limit + 4].decode("utf-8", "surrogateescape"), limit=limit)


def type_text(value: object) -> str:
    """The type of a value in words; ``None`` for None."""
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
    """A dataclass with ``repr=False`` and a repr of a few lines at most, however long its values.

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
    """A size in words: ``512 B``, ``1.5 kB``, ``3.2 GB`` (powers of 1000); signs are kept."""
    if abs(number) < 999.5:
        return f"{number:.0f} B"
    for unit in ("kB", "MB", "GB", "TB"):
        number /= 1000
        if abs(number) < 999.95 or unit == "TB":
            break
    return f"{number:.1f} {unit}"


_CLOSE = 0.8
"""Similarity from which on a method of a plugin counts as a misspelled one of its base class."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean `mnist`?`` if one of `known` is close to `name`, else an empty text.

    It is the end of a message: ``no source named `mnits`; did you mean `mnist`?``
    """
    matches = get_close_matches(name, sorted(set(known)), n=1, cutoff=0.6)
    return f"; did you mean `{safe(matches[0])}`?" if matches else ""


def listed(names: Iterable[str], *, word: str = "and", most: int | None = None) -> str:
    """Names for a sentence, in the order given: ``none``, `` `a` ``, `` `a`, `b` and `c` ``.

    Of more than `most` names, the first ones and a number: `` `a`, `b` and 6 more ``.
    """
    shown = [f"`{safe(name)}`" for name in names]
    if most is not None and len(shown) > most:
        return f"{', '.join(shown[:most])} {word} {len(shown) - most:,} more"
    if len(shown) < 2:
        return shown[0] if shown else "none"
    return f"{', '.join(shown[:-1])} {word} {shown[-1]}"


class ExtensionPoint:
    """Base of the classes that plugins inherit from.

    A subclass may have any public methods of its own, but none whose name is close to one that the
    base class defines: that is a TypeError when the class is created.
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
                    f"mean `{meant}`? If not, begin its name with an underscore"
                )


def overrides(thing: object, base: type, name: str) -> bool:
    """Whether an object defines the optional method `name` itself, rather than the default of
    `base`.

    It need not inherit from `base`.
    """
    return hasattr(thing, name) and getattr(type(thing), name, None) is not getattr(base, name)


def json_data(value: object) -> Any:
    """A result as JSON has it.

    A record becomes an object with its fields, without those that its `repr` leaves out. A record
    whose document has other words than its fields has a method `to_json`, which returns the
    document, with records in it. JSON has no NaN and no infinity: null for NaN, a word for
    infinity. Anything else is its text.
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
        import msgspec  # not needed to start

        return json_data(msgspec.to_builtins(value))
    if is_dataclass(value):
        shown = (each.name for each in fields(value) if each.repr)
        return {name: json_data(getattr(value, name)) for name in shown}
    if isinstance(value, Iterable):
        return [json_data(each) for each in value]
    return str(value)
