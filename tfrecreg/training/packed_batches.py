"""Batches of rows: the values of several records one after the other, and which is whose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, SupportsIndex

import numpy as np
import numpy.typing as npt

from tfrecreg.errors import RefusedError, UsageError
from tfrecreg.example.model import Kind
from tfrecreg.text import safe
from tfrecreg.training.arrays import ArrayColumn
from tfrecreg.training.batches import expect_free_names, stack
from tfrecreg.training.certificate import DIGEST_FEATURE, KEY_FEATURE
from tfrecreg.training.elements import Elements
from tfrecreg.training.packing import Packs

SEGMENT_FEATURE = "pack/segment"
"""The number of the record in its row that a value is of, from 1; 0 for padding."""
POSITION_FEATURE = "pack/position"
"""The place of a value in its record, from 0; 0 for padding, too."""
ROW_FEATURE = "pack/row"
"""The row of each record of the batch."""


class ReadsAll(Protocol):
    """A source that says which elements are left out."""

    @property
    def name(self) -> str:
        """For messages, escaped."""
        ...

    def elements_or_none(self, records: Iterable[SupportsIndex]) -> list[Any | None]:
        """The elements with these numbers; None for one that is left out."""
        ...


def packed_columns(columns: Iterable[ArrayColumn]) -> list[ArrayColumn]:
    """Features whose values make rows: numbers, so many as the record has."""
    numbers = (Kind.INT64, Kind.FLOAT)
    return [each for each in columns if not each.is_fixed and each.kind in numbers]


def read_packed(
    source: ReadsAll,
    elements: Elements,
    batches: Iterable[Sequence[npt.NDArray[np.int64]]],
    packs: Packs,
) -> Iterator[dict[str, Any]]:
    """Batches of rows, one for each list of rows of which a record is left.

    Args:
        source: whose elements.
        elements: their form.
        batches: the rows of each, as numbers of records.
        packs: the lengths of records and of rows.

    Raises:
        UsageError: there is no schema, or elements are payloads.
        RefusedError: a record has another number of values than was said.
    """
    if elements.raw or elements.columns is None:
        raise UsageError(
            f"no schema says which features of `{source.name}` can be packed",
            hint="name a schema with `schema=`, or read lists of elements with `__getitems__`",
        )
    expect_free_names(elements, (SEGMENT_FEATURE, POSITION_FEATURE, ROW_FEATURE))
    columns = packed_columns(elements.columns)
    fixed = {each.name for each in elements.columns if each.is_fixed} | {DIGEST_FEATURE}

    def made() -> Iterator[dict[str, Any]]:
        for rows in batches:
            numbers = np.concatenate(rows)
            found = source.elements_or_none(numbers.tolist())
            if elements.with_key:
                found = [each and {KEY_FEATURE: each[0], **each[1]} for each in found]
            places = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
            kept = np.array([each is not None for each in found], np.bool_)
            sound = [each for each in found if each is not None]
            if sound:
                joined = stack(sound, fixed, elements.images)
                lengths = packs.lengths[numbers[kept]]
                shape = len(rows), packs.to
                yield _packed(joined, columns, numbers[kept], lengths, places[kept], shape)

    return made()


def _packed(
    joined: dict[str, Any],
    columns: Sequence[ArrayColumn],
    numbers: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    shape: tuple[int, int],
) -> dict[str, Any]:
    """The batch of these records.

    Args:
        joined: their features.
        columns: those whose values make rows.
        numbers: of the records, for messages.
        lengths: of the records.
        rows: of the records, ascending.
        shape: of the batch.
    """
    first = np.searchsorted(rows, rows)  # the place of the first record of each one's row
    before = np.cumsum(lengths) - lengths
    inside = np.arange(lengths.sum()) - np.repeat(before, lengths)
    starts = rows * shape[1] + before - before[first]
    places = np.repeat(starts, lengths) + inside
    segments = np.repeat(np.arange(len(rows)) - first + 1, lengths)

    def in_rows(values: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
        found = np.zeros(shape, dtype)
        found.reshape(-1)[places] = values
        return found

    batch = dict(joined)
    for column in columns:
        values: Sequence[npt.NDArray[Any]] = batch[column.name]
        _expect_lengths(column.name, values, numbers, lengths)
        dtype = np.int64 if column.kind == Kind.INT64 else np.float32
        batch[column.name] = in_rows(np.concatenate([each.reshape(-1) for each in values]), dtype)
    batch[SEGMENT_FEATURE] = in_rows(segments, np.int32)
    batch[POSITION_FEATURE] = in_rows(inside, np.int32)
    batch[ROW_FEATURE] = rows.astype(np.int32)
    return batch


def _expect_lengths(
    name: str,
    values: Sequence[npt.NDArray[Any]],
    numbers: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
) -> None:
    found = np.fromiter((each.size for each in values), np.int64, len(values))
    other = np.flatnonzero(found != lengths)
    if len(other):
        at = other[0]
        raise RefusedError(
            f"record {numbers[at]} has {found[at]} values in `{safe(name)}`, and is packed with a "
            f"length of {lengths[at]}",
            hint="`source.with_features([…])` leaves a feature out that is not as long",
        )
