"""One image under several labels: rows of image and label, sorted like those of fingerprints.

A row's key is 96 bits of the image's fingerprint and 32 bits of label, so that the rows of an image
are neighbours, ordered by label, and a label can be told from its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tfrecreg.example import Kind
from tfrecreg.findings import MAX_LOCATIONS
from tfrecreg.records.batch import RecordBatch
from tfrecreg.validators.duplicates.runs import Rows, Run, RunBuilder
from tfrecreg.validators.tables import holds_integers, tables_of

__all__ = ["Contradiction", "Contradictions", "add_labels"]

_LABELS = 1 << 31
"""Labels are below; negative ones stand for no label."""


def add_labels(
    runs: RunBuilder, batch: RecordBatch, digests: Sequence[bytes | None], names: Sequence[str]
) -> None:
    """Take image and label of the records of a batch that have one label.

    Args:
        runs: takes the rows.
        batch: the records.
        digests: fingerprint of the image of each; None where it has none.
        names: features that may be the label; the first one that a record has is.
    """
    labels: dict[int, int] = {}
    tables = tables_of(batch)
    for table in tables.tables:
        name = next((each for each in names if holds_integers(table, each)), None)
        if name is not None:
            values = table.columns[name][1].integers.tolist()
            labels.update(zip(table.positions.tolist(), values, strict=True))
    for position, example in tables.examples():
        found = (example.get(name) for name in names) if example is not None else ()
        feature = next((each for each in found if each is not None), None)
        if feature is not None and feature.kind is Kind.INT64 and feature.count == 1:
            labels[position] = feature.values[0]
    for position, label in sorted(labels.items()):
        digest = digests[position]
        if digest is not None and 0 <= label < _LABELS:
            key = digest[:8] + label.to_bytes(4, "little") + digest[12:16]
            runs.add(key, batch.first + position, batch.offsets[position])


class Contradiction(NamedTuple):
    """A record, and an earlier one with the same image and another label."""

    shard: int
    record: int
    offset: int
    label: int
    other_shard: int
    other_record: int
    other_label: int


class Contradictions:
    """Collects images under several labels, one range of rows after the other."""

    def __init__(self) -> None:
        self.count = 0
        """Images."""
        self.first: list[Contradiction] = []
        """The first of them, by shard and record."""

    def add(self, runs: Sequence[tuple[int, Run]], rows: Iterable[Rows]) -> None:
        """Take a range: the rows of every run, each with the number of its shard."""
        parts = [(shard, run.first, each) for (shard, run), each in zip(runs, rows, strict=True)]
        every = np.concatenate([each for _, _, each in parts])
        image = every["low"] >> np.uint64(32)
        order = np.lexsort((every["low"], every["high"]))
        high, image, low = every["high"][order], image[order], every["low"][order]
        same = (high[1:] == high[:-1]) & (image[1:] == image[:-1])
        others = np.flatnonzero(same & (low[1:] != low[:-1]))
        if not others.size:
            return
        starts = np.flatnonzero(np.concatenate(([True], ~same)))
        ends = np.append(starts[1:], len(order))
        groups = np.unique(np.searchsorted(starts, others, side="right") - 1)
        self.count += len(groups)
        sizes = [len(each) for _, _, each in parts]
        shards = np.repeat([shard for shard, _, _ in parts], sizes)
        firsts = np.repeat([first for _, first, _ in parts], sizes)
        found = self.first
        for group in groups.tolist():
            places = sorted(
                (
                    int(shards[row]),
                    int(firsts[row]) + int(every["record"][row]),
                    int(every["offset"][row]),
                    int(every["low"][row]) & 0xFFFFFFFF,
                )
                for row in order[starts[group] : ends[group]].tolist()
            )
            found.append(_of(places))
            if len(found) > 100 * MAX_LOCATIONS:
                found = sorted(found)[:MAX_LOCATIONS]
        self.first = sorted(found)[:MAX_LOCATIONS]


def _of(places: Sequence[tuple[int, int, int, int]]) -> Contradiction:
    """The first record of an image whose label is not that of the first of all."""
    shard, record, _, label = places[0]
    other = next(each for each in places if each[3] != label)
    return Contradiction(*other, shard, record, label)
