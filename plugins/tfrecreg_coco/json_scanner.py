"""The elements of long lists in a JSON file: found in one pass, in bounded memory, and decoded.

A file of annotations is one object with a few long lists, and may have hundreds of megabytes. It
is read a block at a time. NumPy finds the brackets outside strings and how deep they lie; the text
between them is left to the decoder of the elements. At most a block and one element are in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from tfrecreg.api import RawDataError, Storage, safe

T = TypeVar("T")
Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_BLOCK = 1 << 20
"""Bytes read at a time."""
_MAX_ELEMENT = 1 << 28
"""Most bytes of one list element: the segments of an image take kilobytes."""
_MAX_OUTLINE = 1 << 20
"""Most bytes outside the lists and objects that are the members of the file's object."""
_KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:\s*\Z', re.DOTALL)
_SPACE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_CLOSING = {ord("{"): ord("}"), ord("["): ord("]")}
_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_MARKS = np.zeros(256, np.bool_)
_MARKS[list(b'{}[]"\\')] = True
_STEPS = np.zeros(256, np.int64)
_STEPS[list(b"{[")] = 1
_STEPS[list(b"}]")] = -1


class BracketScanner:
    """Finds the brackets outside strings, block by block. A string may span blocks."""

    def __init__(self) -> None:
        self.in_string = False
        """Whether the last block ended inside a string."""
        self._escaped = False
        self._depth = 0

    def find(self, block: bytes, base: int) -> tuple[Positions, Flags, Positions]:
        """The brackets of the next block, which begins at byte `base` of the file."""
        data = np.frombuffer(block, np.uint8)
        offsets = np.flatnonzero(_MARKS[data])
        marks = data[offsets]
        quotes = marks == _QUOTE
        quotes &= ~self._escapes(offsets, marks, len(block))
        # A bracket is outside of strings if an even number of quotes is before it.
        inside = (np.cumsum(quotes) + self.in_string) & 1
        self.in_string = bool(inside[-1]) if len(inside) else self.in_string
        steps = _STEPS[marks]
        kept = (steps != 0) & (inside == 0)
        steps = steps[kept]
        depths = np.cumsum(steps) + self._depth
        if len(depths):
            self._depth = int(depths[-1])
        return offsets[kept] + base, steps > 0, depths

    def _escapes(self, offsets: Positions, marks: npt.NDArray[np.uint8], size: int) -> Flags:
        """Which of the marks a backslash escapes."""
        escaped = np.zeros(len(offsets), np.bool_)
        before, self._escaped = self._escaped, False
        slashes = offsets[marks == _BACKSLASH]
        if before:
            escaped |= offsets == 0
            slashes = slashes[slashes != 0]
        if not len(slashes):
            return escaped
        # In a run of backslashes the first, the third and so on escape the byte after them.
        fresh = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)
        lengths = np.diff(fresh, append=len(slashes))
        within = np.arange(len(slashes)) - np.repeat(fresh, lengths)
        behind = slashes[within % 2 == 0] + 1
        self._escaped = bool(behind[-1] == size)
        return escaped | np.isin(offsets, behind)


class Batch(NamedTuple):
    """Consecutive elements of one list."""

    section: str
    """Name of the list in the file's object: ``annotations``."""
    base: int
    """Offset of `data` in the file."""
    data: bytes
    """Bytes from the start of the first element to the end of the last."""
    starts: Positions
    """Offset of each element in the file."""
    ends: Positions
    """Offset after each element in the file."""

    def element(self, number: int) -> bytes:
        """The bytes of one element of this batch, counted from 0."""
        return self.data[int(self.starts[number]) - self.base : int(self.ends[number]) - self.base]


class ListScan:
    """One pass over a file. Iterating over it gives the batches of the wanted lists."""

    def __init__(
        self, raw: Storage, path: str, wanted: frozenset[str], *, block: int = _BLOCK
    ) -> None:
        self.members: dict[str, Any] = {}
        """After the pass: every member of the file's object by name. An empty list stands for any
        list or object; other values are themselves."""
        self._raw = raw
        self._path = path
        self._wanted = wanted
        self._block = block
        self._outline = bytearray()  # the file's object, with `[]` for each list or object in it
        self._buffer = b""
        self._base = 0  # offset of the buffer in the file
        self._cursor = 0  # everything before this offset is dealt with
        self._depth = 0
        self._opener = 0  # the bracket that opened the current member
        self._section: str | None = None  # the wanted list that is open
        self._first = False  # no element of it was seen yet
        self._open: Positions = np.empty(0, np.int64)  # start of an element that has no end yet

    def __iter__(self) -> Generator[Batch, None, None]:
        brackets = BracketScanner()
        with self._raw.open(self._path) as reader:
            position = 0
            while block := reader.read_at(position, self._block):
                if position == 0 and block.startswith(_BOM):
                    self._cursor = len(_BOM)
                self._buffer = self._buffer[self._cursor - self._base :] + block
                self._base = position + len(block) - len(self._buffer)
                yield from self._scan(*brackets.find(block, position))
                position += len(block)
                self._drop(position)
        if self._depth or brackets.in_string:
            self._refuse(f"is cut short: it ends inside its JSON, after {position} bytes")
        if not self._outline:
            self._refuse("is not JSON: expected an object")
        try:
            self.members = json.loads(self._outline.decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError) as error:
            self._refuse(f"is not JSON: {safe(str(error)).partition(': ')[0].lower()}")

    def _scan(self, offsets: Positions, opens: Flags, depths: Positions) -> Iterator[Batch]:
        """Deal with the brackets of one block."""
        borders = np.flatnonzero(np.where(opens, depths <= 2, depths <= 1))
        begin = 0
        for border in [*borders.tolist(), len(offsets)]:
            if self._section is not None and border > begin:
                part = slice(begin, border)
                opened = offsets[part][opens[part] & (depths[part] == 3)]
                closed = offsets[part][~opens[part] & (depths[part] == 2)] + 1
                yield from self._elements(self._section, opened, closed)
            if border < len(offsets):
                self._border(int(offsets[border]), bool(opens[border]), int(depths[border]))
            begin = border + 1

    def _elements(self, section: str, opened: Positions, closed: Positions) -> Iterator[Batch]:
        starts = np.concatenate((self._open, opened))
        self._open = starts[len(closed) :]
        if not len(closed):
            return
        starts = starts[: len(closed)]
        begin, end = int(starts[0]), int(closed[-1])
        if self._between(begin) != (b"" if self._first else b","):
            self._refuse_element(section)
        self._first = False
        data = self._buffer[begin - self._base : end - self._base]
        self._cursor = end
        yield Batch(section, begin, data, starts, closed)

    def _border(self, offset: int, opens: bool, depth: int) -> None:
        """A bracket of the file's object, or the outer bracket of one of its members."""
        byte = self._buffer[offset - self._base]
        if depth < 0:
            self._refuse(f"is not JSON: a bracket closes nothing at byte {offset}")
        if opens and depth == 1:
            if self._outline or self._between(offset) or byte != ord("{"):
                self._refuse("is not JSON: expected one object, from its first byte to its last")
            self._outline += b"{"
        elif opens:
            self._outline += self._buffer[self._cursor - self._base : offset - self._base]
            self._enter_member(byte)
        elif depth == 1:
            if byte != _CLOSING[self._opener]:
                self._refuse(f"is not JSON: a bracket that does not fit at byte {offset}")
            if self._section is not None and self._between(offset):
                self._refuse_element(self._section)
            self._section = None
        else:
            self._outline += self._buffer[self._cursor - self._base : offset + 1 - self._base]
            if byte != ord("}"):
                self._refuse(f"is not JSON: a bracket that does not fit at byte {offset}")
        self._cursor = offset + 1
        self._depth = depth

    def _enter_member(self, opener: int) -> None:
        match = _KEY.search(self._outline)
        if match is None:
            self._refuse("is not JSON: a list or an object without a name in its object")
        self._outline += b"[]"
        self._opener = opener
        name = match[1].decode("utf-8", "replace")
        if name not in self._wanted:
            return
        if opener != ord("["):
            self._refuse(f"is not a COCO dataset: `{name}` is an object, expected a list")
        if name in self.members:
            self._refuse(f"has `{name}` twice")
        self.members[name] = []
        self._section = name
        self._first = True

    def _between(self, offset: int) -> bytes:
        """The text from the cursor to `offset`, without the white space around it."""
        return self._buffer[self._cursor - self._base : offset - self._base].strip(_SPACE)

    def _drop(self, position: int) -> None:
        """Move the cursor past everything up to `position` that is not needed any more."""
        if self._depth == 1:
            self._outline += self._buffer[self._cursor - self._base :]
            self._cursor = position
        elif self._depth == 0:
            if self._between(position):
                self._refuse("is not JSON: expected one object, from its first byte to its last")
            self._cursor = position
        elif self._section is None:
            self._cursor = position
        if position - self._cursor > _MAX_ELEMENT:
            self._refuse(f"has an element of more than {_MAX_ELEMENT} bytes in `{self._section}`")
        if len(self._outline) > _MAX_OUTLINE:
            self._refuse(f"holds more than {_MAX_OUTLINE} bytes outside its lists")

    def _refuse_element(self, section: str) -> NoReturn:
        self._refuse(f"is not a COCO dataset: `{section}` holds more than objects and commas")

    def _refuse(self, problem: str) -> NoReturn:
        raise RawDataError(
            f"`{safe(self._path)}` {problem}",
            hint="fetch or write it again: a dataset in COCO's format is expected",
        )


def decode_batch(batch: Batch, kind: type[T], path: str, number: int) -> list[T]:
    """The elements of a batch as values of one type."""
    try:
        values = msgspec.json.decode(b"[" + batch.data + b"]", type=list[kind])  # type: ignore[valid-type]  # known at run time
    except (ValueError, RecursionError):
        values = []
    if len(values) == len(batch.starts):
        return values
    values = []
    decoder = msgspec.json.Decoder(kind)
    for at, start in enumerate(batch.starts.tolist()):
        data = batch.element(at)
        with suppress(ValueError, RecursionError):
            values.append(decoder.decode(data))
            continue
        try:
            values.append(decode_loosely(data, kind))
        except ValueError as error:
            raise RawDataError(
                f"`{safe(path)}` is not a COCO dataset: number {number + at} of its "
                f"`{batch.section}`, at byte {start}: {safe(str(error))}",
                hint="fix that entry, or write the file again",
            ) from None
    return values


def decode_loosely(data: bytes, kind: type[T]) -> T:
    """One element, read as Python's `json` reads it.

    It accepts more than strict JSON: NaN and Infinity, lone surrogates, and bytes that are not
    UTF-8, which become surrogate escapes.
    """
    try:
        found = json.loads(data.decode("utf-8", "surrogateescape"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return msgspec.convert(found, kind)
