"""The form of a source's elements, and many payloads to elements at once.

The records of a dataset mostly hold the same features in the same order with the same number of
values. :mod:`tfrecreg.core.example.columns` reads such records with a few array operations, for a
fraction of the time that decoding each takes. Elements equal those of
:class:`tfrecreg.builtin.training.arrays.ExampleReader`, which reads the records that have
another layout or do not fit the schema.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import repeat
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.arrays import ArrayColumn, ImageSize, empty
from tfrecreg.builtin.training.certificate import expect_enough, expect_host
from tfrecreg.builtin.training.selection import Selection
from tfrecreg.core.example import columns as layouts
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.model import Kind
from tfrecreg.core.registry.shardset.split_target import even_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The form of a source's elements, as plain data."""

    raw: bool = False
    """Payloads, as they are."""
    with_key: bool = False
    """Pairs of key and element."""
    with_digest: bool = False
    """Elements carry the digest of their record, for a certificate."""
    columns: tuple[ArrayColumn, ...] | None = None
    """The features of the schema; None without one."""
    sequence: bool = False
    """Whether the schema is one of SequenceExamples."""
    images: tuple[str, ...] = ()
    """Features whose values are decoded."""
    size: ImageSize = field(default_factory=ImageSize)
    """That decoded images get."""
    channels: int = 0
    """That decoded images get: 1, 3 or 4; 0 for those that each has."""
    damaged: Literal["raise", "skip"] = "raise"
    """Treatment of a damaged record in batches and iteration."""
    max_damaged: int = 0
    """Maximum number of damaged records to leave out, in all parts of the source together."""

    def only(self, features: Collection[str]) -> Elements:
        """The same with these features of the schema alone."""
        columns = tuple(each for each in self.columns or () if each.name in features)
        images = tuple(each for each in self.images if each in features)
        return replace(self, columns=columns, images=images)

    def plain(self) -> dict[str, Any]:
        """The same as a JSON object."""
        return asdict(self)

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Elements:
        """The inverse of :meth:`plain`."""
        columns = plain["columns"]
        if columns is not None:
            columns = tuple(
                ArrayColumn(name, kind, tuple(shape), *rest) for name, kind, shape, *rest in columns
            )
        size = plain["size"]
        if isinstance(size["size"], list):
            size = {**size, "size": tuple(size["size"])}
        images = tuple(plain["images"])
        return cls(**{**plain, "columns": columns, "images": images, "size": ImageSize(**size)})


_FEWEST = 8
"""Minimum number of payloads in a block, and"""
_LARGEST = 1 << 13
"""their maximum average size: with larger ones decoding is not what takes the time."""


class BlockReader:
    """Makes elements of payloads."""

    def __init__(self, columns: Sequence[ArrayColumn] | None) -> None:
        self._columns = columns
        self._layout: layouts.Layout | None = None

    def __call__(self, payloads: Sequence[bytes]) -> list[dict[str, Any] | None]:
        """The elements of payloads; None for those that have to be read one by one."""
        found: list[dict[str, Any] | None] = [None] * len(payloads)
        size = sum(map(len, payloads))
        if len(payloads) < _FEWEST or size > _LARGEST * len(payloads):
            return found
        layout = self._layout
        if layout is None:
            example = decode_or_none(payloads[0])
            layout = self._layout = layouts.layout_of(example) if example else None
            if layout is None:
                return found
        lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
        memory = b"".join(payloads)
        rows, columns = layouts.read_columns(layout, memory, np.cumsum(lengths) - lengths, lengths)
        if 2 * len(rows) < len(payloads):
            self._layout = None  # the next block may show a better one
        if not len(rows):
            return found
        wanted = self._columns
        if wanted is None:
            slots = sorted(layout, key=lambda slot: slot.name)
            wanted = [ArrayColumn(slot.name, int(slot.kind), (-1,), False) for slot in slots]
        places = {slot.name: at for at, slot in enumerate(layout)}
        values: list[Iterable[Any]] = []
        for column in wanted:
            at = places.get(column.name)
            if at is None:
                if column.is_fixed:
                    return found
                values.append(map(empty, repeat(column, len(rows))))
                continue
            several = _values(column, layout[at], memory, columns[at])
            if several is None:
                return found
            values.append(several)
        names = [column.name for column in wanted]
        if not names:
            return found
        for row, each in zip(rows.tolist(), zip(*values, strict=True), strict=True):
            found[row] = dict(zip(names, each, strict=True))
        return found


def _values(
    column: ArrayColumn, slot: layouts.Slot, memory: bytes, found: layouts.Column
) -> Iterable[Any] | None:
    """The value of a feature in each record; None where it does not fit."""
    if column.kind != slot.kind:
        return None
    sides = prod(side for side in column.shape if side >= 0)
    fits = slot.values == sides if column.is_fixed else bool(sides) and not slot.values % sides
    if not fits:
        return None
    is_scalar = column.is_fixed and not column.shape
    if slot.kind is Kind.BYTES:
        pieces = zip(found.start.tolist(), found.stop.tolist(), strict=True)
        values = [memory[start:stop] for start, stop in pieces]
        return values if is_scalar else [_boxed(each, column.shape) for each in values]
    numbers: npt.NDArray[Any] = found.integers
    if slot.kind is Kind.FLOAT:
        numbers = _floats(memory, found.start, slot.values)
    if is_scalar:
        return numbers.reshape(-1)
    # Copies, so that an element that is kept does not keep its whole block.
    return [row.copy().reshape(column.shape) for row in numbers.reshape(len(found.start), -1)]


def _floats(memory: bytes, start: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.float32]:
    """Shape (records, count): the packed numbers from these places on."""
    places = start[:, np.newaxis] + np.arange(4 * count)
    found = np.frombuffer(memory, np.uint8)[places].view("<f4")
    numbers: npt.NDArray[np.float32] = found.astype(np.float32, copy=False)
    return numbers


def _boxed(value: bytes, shape: tuple[int, ...]) -> npt.NDArray[np.object_]:
    found = np.empty(1, object)
    found[0] = value
    return found.reshape(shape)


class RecordRun(NamedTuple):
    """Records of one shard that follow each other."""

    shard: int
    """The place of the shard in the list of shards."""
    first: int
    """The first record, numbered in its shard."""
    records: int
    """How many, at least one."""


def find_pieces(numbers: Iterable[range], starts: Sequence[int]) -> list[RecordRun]:
    """Cut ranges of numbers at the borders of shards."""
    found: list[RecordRun] = []
    for wanted in numbers:
        for shard, low in enumerate(starts[:-1]):
            first, stop = max(wanted.start, low), min(wanted.stop, starts[shard + 1])
            if first < stop:
                found.append(RecordRun(shard, first - low, stop - first))
    return found


def host_numbers(
    numbers: Sequence[range], starts: Sequence[int], host: int, hosts: int, name: str
) -> list[range]:
    """The share of one host: whole shards if the hosts divide their number, else records.

    The shares of all hosts have no record in common, and together they have all.
    """
    expect_host(host, hosts)
    total = sum(map(len, numbers))
    expect_enough(total, hosts, name)
    pieces = find_pieces(numbers, starts)
    if len(pieces) % hosts == 0:
        firsts = [(starts[piece.shard] + piece.first, piece.records) for piece in pieces]
        return [range(first, first + records) for first, records in firsts[host::hosts]]
    part = even_parts(range(total), hosts, drop_remainder=False)[host]
    return list(Selection(numbers).part(slice(part.start, part.stop)).ranges)


def host_part(
    numbers: npt.NDArray[np.int64], host: int, hosts: int, name: str
) -> npt.NDArray[np.int64]:
    """The share of one host of a list of records, as :func:`host_numbers` gives those of ranges."""
    expect_host(host, hosts)
    expect_enough(len(numbers), hosts, name)
    part = even_parts(range(len(numbers)), hosts, drop_remainder=False)[host]
    return numbers[part.start : part.stop]
