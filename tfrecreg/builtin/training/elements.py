"""Defines which form the elements of a source have. Converts many payloads at once.

Records of the same layout are read with a few array operations. Other records are read one by one
by :func:`tfrecreg.builtin.training.arrays.element_of_example`, into the same form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.arrays import (
    ArrayColumn,
    ImageSize,
    element_of_example,
    element_of_sequence,
    element_without_schema,
    empty,
    expect_features,
)
from tfrecreg.core.example import columns as layouts
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.model import Kind


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

    def read(self, payload: bytes) -> dict[str, Any]:
        """The element that is made from a payload."""
        if self.columns is None:
            return element_without_schema(payload)
        return (element_of_sequence if self.sequence else element_of_example)(payload, self.columns)


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
