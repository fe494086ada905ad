"""The headers of Parquet's pages: what is to be allocated for each, before it is.

A header is a structure in Thrift's compact protocol: its kind, its size when decompressed, its
stored size, and what does not matter here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tfrecreg.storage.interface import Reader

DICTIONARY_PAGE = 2
_USUAL = 1 << 12
_LARGEST = 1 << 24
"""Bytes of a header: pyarrow's own limit. It may hold the smallest and the largest value."""
_MAX_PAGES = 1 << 20
_MAX_DEPTH = 8
_INTEGERS = range(4, 7)
_WIDTHS = {1: 0, 2: 0, 3: 1, 7: 8}
"""Bytes of values by their type: true, false, a byte, a double."""
_BINARY, _STRUCTURE = 8, 12


class PageSize(NamedTuple):
    """What the header of a page says."""

    kind: int
    decompressed: int
    stored: int


def page_sizes(reader: Reader, start: int, end: int) -> Iterator[PageSize]:
    """The pages of a column chunk, from its first byte to its end.

    Raises:
        ValueError: a header cannot be read, or there are too many.
    """
    for _ in range(_MAX_PAGES):
        if start >= end:
            return
        try:
            numbers, length = _structure(reader.read_at(start, min(_USUAL, end - start)), 0, 0)
        except IndexError:
            try:
                numbers, length = _structure(reader.read_at(start, _LARGEST), 0, 0)
            except IndexError:
                raise ValueError(f"the header of the page at {start} has no end") from None
        page = PageSize(*(numbers.get(field, -1) for field in (1, 2, 3)))
        if min(page) < 0:
            raise ValueError(f"the header of the page at {start} has no sizes")
        yield page
        start += length + page.stored
    raise ValueError(f"a column has more than {_MAX_PAGES:,} pages in a row group")


def _structure(data: bytes, at: int, depth: int) -> tuple[dict[int, int], int]:
    """The integers of a structure by field, and where it ends."""
    numbers: dict[int, int] = {}
    field = 0
    while head := data[at]:
        at += 1
        kind = head & 15
        if head >> 4:
            field += head >> 4
        else:
            field, at = _integer(data, at)
        if kind in _INTEGERS:
            numbers[field], at = _integer(data, at)
        elif kind in _WIDTHS:
            at += _WIDTHS[kind]
        elif kind == _BINARY:
            size, at = _varint(data, at)
            at += size
        elif kind == _STRUCTURE and depth < _MAX_DEPTH:
            _, at = _structure(data, at, depth + 1)
        else:
            raise ValueError(f"the header of a page has a field of the type {kind}")
    return numbers, at + 1


def _integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return number >> 1 ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise ValueError("the header of a page has a number of more than 64 bits")
