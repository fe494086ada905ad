"""Where in a text-format message each field is written.

protobuf's parser says where text does not parse, and forgets the places of all that does. For
errors about what the text means, and for edits that leave the rest as it is, they are found again
by this small scanner. It is handed text that parsed, so it need not judge it.

The text format: https://protobuf.dev/reference/protobuf/textformat-spec/
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Path", "Place", "Places", "Span", "locate", "spans"]

Path = tuple[str | int, ...]
"""Field names, each followed by its number among the fields of that name: a schema's second
feature's value count is ``("feature", 1, "value_count", 0)``."""


class Place(NamedTuple):
    """A place in a text, both counted from 1."""

    line: int
    column: int


class Span(NamedTuple):
    """The characters of a field, as offsets into the text."""

    start: int
    """Where its name starts; of an element of a list, where its value does."""
    value: int
    """Where its value starts: of a message, its opening brace."""
    end: int
    """Behind its value: of a message, behind its closing brace."""


_TOKEN = re.compile(
    r"""
      [ \t\r\f\v\ufeff]+ | \#[^\n]*
    | (?P<newline>\n)
    | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<mark>[{}<>\[\]:;,])
    | (?P<word>[^\s{}<>\[\]:;,"'\#]+)
    """,
    re.VERBOSE,
)


class Places:
    """The places of one text, looked up only when there is something to say about it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: dict[Path, Place] | None = None

    def of(self, path: Path) -> Place:
        """The place of the field at `path`, or of the nearest message around it."""
        if self._places is None:
            self._places = locate(self._text)
        while path and path not in self._places:
            path = path[:-2]
        return self._places.get(path, Place(1, 1))


def locate(text: str) -> dict[Path, Place]:
    """The place of every field of a message in text form.

    Args:
        text: a message that protobuf parses.

    Returns:
        Path to the place of the field's name, or of the element where it is one of a list.
    """
    places: dict[Path, Place] = {}
    line, start, last = 1, 0, 0
    for path, span in sorted(spans(text).items(), key=lambda item: item[1].start):
        line += text.count("\n", last, span.start)
        start = text.rfind("\n", 0, span.start) + 1
        last = span.start
        places[path] = Place(line, span.start - start + 1)
    return places


def spans(text: str) -> dict[Path, Span]:
    """The characters of every field of a message in text form, in no order.

    Args:
        text: a message that protobuf parses.
    """
    found: dict[Path, Span] = {}
    stack = [_Message((), found)]
    for kind, token, at in _tokens(text):
        message = stack[-1]
        if kind != "mark":
            message.word(kind, token, at)
        elif token in "{<":
            stack.append(_Message(message.value(at, at + 1), found))
        elif token in "}>":
            if len(stack) > 1:
                stack.pop()
                stack[-1].close(at + 1)
        else:
            message.mark(token)
    return found


class _Message:
    """An open message: where it is, how many fields of each name it had, what is being read."""

    def __init__(self, path: Path, found: dict[Path, Span]) -> None:
        self._path = path
        self._found = found
        self._counts: dict[str, int] = {}
        self._name = ""
        """Of the field whose value comes next; empty between fields."""
        self._start = 0
        """Of that name."""
        self._minus: int | None = None
        """Where the sign of the value that comes next stands apart."""
        self._list = ""
        """The name of the field whose list is open."""
        self._bracket = False
        """In the brackets of an extension's name."""
        self._last: Path = ()
        """The field that was read last."""

    def word(self, kind: str, token: str, at: int) -> None:
        """A name, or a scalar value."""
        if self._bracket:
            self._name += token
        elif self._list or self._name:
            if token == "-":
                self._minus = at
            else:
                self.value(at if self._minus is None else self._minus, at + len(token))
                self._minus = None
        elif kind == "word":
            self._name, self._start = token, at
        else:
            self.close(at + len(token))  # a string here goes on with the one before it

    def mark(self, token: str) -> None:
        """Punctuation that opens and closes no message."""
        if token == "[":
            if self._name:
                self._list, self._name = self._name, ""
            else:
                self._bracket = True
        elif token == "]":
            self._bracket = False
            self._list = ""

    def value(self, at: int, end: int) -> Path:
        """The value of the field that was named: its path, which is also noted."""
        name = self._list or self._name
        number = self._counts.get(name, 0)
        self._counts[name] = number + 1
        path = (*self._path, name, number)
        self._found[path] = Span(at if self._list else self._start, at, end)
        self._name = ""
        self._last = path
        return path

    def close(self, end: int) -> None:
        """The value that was read last ends further down."""
        self._found[self._last] = self._found[self._last]._replace(end=end)


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup not in (None, "newline"):
            yield str(match.lastgroup), match.group(), match.start()
