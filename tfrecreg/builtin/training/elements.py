"""Defines which form the elements of a source have. Converts many payloads at once.

Records of the same layout are read with a few array operations. Other records are read one by one
by :class:`tfrecreg.builtin.training.arrays.ExampleReader`, into the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.arrays import (
    ArrayColumn,
    EitherReader,
    ExampleReader,
    ImageSize,
    SequenceReader,
    empty,
    expect_features,
)
from tfrecreg.builtin.training.certificate import expect_enough, expect_host
from tfrecreg.builtin.training.selection import Selection
from tfrecreg.core.example import columns as layouts
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.model import Kind
from tfrecreg.core.registry.splits import even_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The form of a source's elements, as plain data."""

    raw: bool = False
    """Whether elements are payloads."""
    with_key: bool = False
    """Whether each element is paired with the key of its record."""
    with_digest: bool = False
    """Whether elements carry the digest of their record, for a certificate."""
    columns: tuple[ArrayColumn, ...] | None = None
    """The features of the schema; None without one."""
    sequence: bool = False
    """Whether the schema describes SequenceExamples."""
    images: tuple[str, ...] = ()
    """Features whose values are decoded."""
    size: ImageSize = field(default_factory=ImageSize)
    """The size and the channels that decoded images get."""
    damaged: Literal["raise", "skip"] = "raise"
    """What batches and iteration do at a damaged record."""
    max_damaged: int = 0
    """Maximum number of damaged records to leave out, in all parts of the source together."""

    def only(self, features: str | Collection[str]) -> Elements:
        """The same form with only these features of the schema."""
        chosen = (features,) if isinstance(features, str) else features
        known = None if self.columns is None else [each.name for each in self.columns]
        expect_features(chosen, known)
        columns = tuple(each for each in self.columns or () if each.name in chosen)
        images = tuple(each for each in self.images if each in chosen)
        return replace(self, columns=columns, images=images)

    @property
    def read(self) -> Callable[[bytes], dict[str, Any]]:
        """The reader that turns a payload into an element. Picklable."""
        if self.sequence:
            return SequenceReader(self.columns or ())
        example = ExampleReader(self.columns)
        return example if self.columns is not None else EitherReader(example)


_FEWEST = 8
"""Minimum number of payloads in a block."""
_LARGEST = 1 << 13
"""A block is used only if the mean size of its payloads is at most this many bytes. For larger
payloads, a block saves no time."""


class BlockReader:
    """Makes elements of payloads."""

    def __init__(self, columns: Sequence[ArrayColumn] | None) -> None:
        self._columns = columns
        self._layout: layouts.Layout | None = None

    def __call__(self, payloads: Sequence[bytes]) -> list[dict[str, Any] | None]:
        """The elements of payloads; None for payloads that have to be read one by one."""
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
            self._layout = None  # the next block may show a better layout
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
    """The value of a feature in each record; None if the values do not fit the column."""
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
        if is_scalar:
            return values
        boxes = np.empty((len(values), 1), object)
        boxes[:, 0] = values
        return [each.copy().reshape(column.shape) for each in boxes]
    numbers: npt.NDArray[Any] = found.integers
    if slot.kind is Kind.FLOAT:  # packed numbers
        places = found.start[:, np.newaxis] + np.arange(4 * slot.values)
        packed = np.frombuffer(memory, np.uint8)[places].view("<f4")
        numbers = packed.astype(np.float32, copy=False)
    if is_scalar:
        return numbers.reshape(-1)
    # Copies, so that keeping an element does not keep its whole block.
    return [row.copy().reshape(column.shape) for row in numbers.reshape(len(found.start), -1)]


class RecordRun(NamedTuple):
    """Consecutive records of one shard."""

    shard: int
    """The place of the shard in the list of shards."""
    first: int
    """Number of the first record in its shard."""
    records: int
    """The number of records, at least one."""


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
    """The share of one host: whole shards if they can be divided evenly among hosts, else records.

    The shares of all hosts are disjoint and together contain all records.
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
    """The share of one host in a list of records. :func:`host_numbers` divides ranges instead."""
    expect_host(host, hosts)
    expect_enough(len(numbers), hosts, name)
    part = even_parts(range(len(numbers)), hosts, drop_remainder=False)[host]
    return numbers[part.start : part.stop]
