"""Where each field of a schema's text is written, and how a string is written in one.

protobuf's parser gives positions only for text that does not parse. So the fields are located by a
small scanner. It gets text that parsed, and does not validate it.

The text format: https://protobuf.dev/reference/protobuf/textformat-spec/
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

FieldPath = tuple[str | int, ...]
"""Field names, each followed by its number among the fields of that name: a schema's second
feature's value count is ``("feature", 1, "value_count", 0)``."""


class Span(NamedTuple):
    """The characters of a field, as offsets into the text."""

    start: int
    """Start of its name; of a list element, start of its value."""
    value: int
    """Start of its value; of a message, its opening brace."""
    end: int
    """End of its value; of a message, after its closing brace."""


_TOKEN = re.compile(
    r"""
      [\s\ufeff]+ | \#[^\n]*
    | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<mark>[{}<>\[\]:;,])
    | (?P<word>[^\s{}<>\[\]:;,"'\#]+)
    """,
    re.VERBOSE,
)


def position(text: str, path: FieldPath) -> tuple[int, int]:
    """Line and column of a field, or of the nearest message around it, both counted from 1."""
    found = spans(text)
    while path and path not in found:
        path = path[:-2]
    start = found[path].start if path else 0
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def spans(text: str) -> dict[FieldPath, Span]:
    """The characters of every field of a message in text form, in no order.

    Args:
        text: a message that protobuf parses.
    """
    scanner = _Scanner(text)
    scanner.message(())
    return scanner.found


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


_END = _Token("end", "", -1, -1)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.found: dict[FieldPath, Span] = {}
        self._tokens = _tokens(text)
        self._next = next(self._tokens, _END)

    def message(self, path: FieldPath) -> int:
        """Read fields up to the end of their message; returns the offset after its brace."""
        counts: Counter[str] = Counter()
        while (token := self._take()).kind != "end":
            if token.text in ("}", ">"):
                return token.end
            if token.text in (",", ";"):
                continue
            start, name = token.start, token.text
            if name == "[":  # an extension, or the type of an Any
                name = ""
                while (token := self._take()).text not in ("]", ""):
                    name += token.text
            if self._next.text == ":":
                self._take()
            if self._next.text != "[":
                self._value((*path, name, counts[name]), start)
                counts[name] += 1
                continue
            self._take()
            while self._next.text not in ("]", ""):
                self._value((*path, name, counts[name]), None)
                counts[name] += 1
                if self._next.text == ",":
                    self._take()
            self._take()
        return -1

    def _value(self, path: FieldPath, start: int | None) -> None:
        first = self._take()
        if first.text in ("{", "<"):
            end = self.message(path)
        else:
            end = self._take().end if first.text == "-" else first.end
            while first.kind == self._next.kind == "string":  # strings in a row are one value
                end = self._take().end
        self.found[path] = Span(first.start if start is None else start, first.start, end)

    def _take(self) -> _Token:
        token, self._next = self._next, next(self._tokens, _END)
        return token


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup is not None:
            yield _Token(match.lastgroup, match.group(), match.start(), match.end())


def quoted(text: str) -> str:
    r"""`text` as a string of the text form; characters that do not print are octal escapes."""
    shown = []
    for character in text:
        if character in '"\\':
            shown.append(f"\\{character}")
        elif character.isprintable():
            shown.append(character)
        else:
            shown += [f"\\{byte:03o}" for byte in character.encode()]
    return f'"{"".join(shown)}"'
