"""Features of the records, counted in the pass of the check: how many records have each, and its
values, exactly; the distribution of the values from a sample.

The sample of a feature is the values of the records with the lowest hashes, so it depends on the
records alone, and the samples of shards merge into that of their split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.components.charts import Histogram
from tfrecreg.example.model import Example, Kind
from tfrecreg.text import safe, si_bytes
from tfrecreg.validators.record_tables import Table

_FEATURES = 200
"""Features counted, at most."""
_SAMPLE = 400
"""Records whose values are in the sample of a feature."""
_OF_RECORD = 16
"""Values of a record that are in a sample."""
_BINS = 20
_ANY = 2**64 - 1

_Hashes = npt.NDArray[np.uint64]


@dataclass(slots=True)
class FeatureCounts:
    """One feature, over the records of a shard or a split. Of bytes, the values are the sizes."""

    kinds: set[str] = field(default_factory=set)
    """Names of kinds: ``bytes``, ``float``, ``int64``, ``unset``."""
    records: int = 0
    """Records that have it, with any number of values."""
    values: int = 0
    fewest: int = _ANY
    most: int = 0
    """Values of a record that has it."""
    low: float | None = None
    high: float | None = None
    """The lowest and highest number that is finite; None without one."""
    odd: int = 0
    """Numbers that are not finite."""
    sample: list[tuple[int, tuple[float, ...]]] = field(default_factory=list)
    """Hashes of records, and some of their values."""
    bar: int = _ANY
    """Records with a higher hash are not in the sample."""

    def add(self, kind: Kind, count: int, values: Sequence[float], order: int) -> None:
        """Count the values of one record.

        Args:
            values: its numbers, or the sizes of its bytes.
            order: hash of the record.
        """
        self.count(kind, count, 1)
        if not values:
            return
        low, high, total = min(values), max(values), sum(values)
        if total - total != 0:  # NaN or infinite, or the sum is
            finite = np.asarray(values)[np.isfinite(values)]
            self.odd += len(values) - len(finite)
            if finite.size:
                self.spread(float(finite.min()), float(finite.max()))
        else:
            self.spread(low, high)
        if order <= self.bar:
            self.keep([(order, tuple(values[:_OF_RECORD]))])

    def add_table(self, kind: Kind, values: npt.NDArray[Any], order: _Hashes) -> None:
        """Count the values of many records, which are rows."""
        self.count(kind, values.shape[1], len(values))
        finite = values[np.isfinite(values)]
        self.odd += values.size - finite.size
        if finite.size:
            self.spread(finite.min().item(), finite.max().item())
        rows = np.flatnonzero(order <= self.bar)
        if len(rows) > _SAMPLE:
            rows = rows[np.argsort(order[rows], kind="stable")[:_SAMPLE]]
        self.keep(
            (int(order[row]), tuple(values[row, :_OF_RECORD].tolist())) for row in rows.tolist()
        )

    def count(self, kind: Kind, count: int, records: int) -> None:
        """Count records that have `count` values each."""
        self.kinds.add(kind.name.lower())
        self.records += records
        self.values += count * records
        self.fewest, self.most = min(self.fewest, count), max(self.most, count)

    def spread(self, low: float, high: float) -> None:
        """Widen the range of the values."""
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)

    def keep(self, found: Any) -> None:
        """Keep values in the sample, if their records belong there."""
        self.sample.extend(found)
        if len(self.sample) > 2 * _SAMPLE:
            self.cut()

    def cut(self) -> None:
        """Keep the records with the lowest hashes."""
        self.sample = sorted(self.sample)[:_SAMPLE]
        if len(self.sample) == _SAMPLE:
            self.bar = self.sample[-1][0]

    def merge(self, other: FeatureCounts) -> None:
        """Add the same feature of other records."""
        self.kinds |= other.kinds
        self.records += other.records
        self.values += other.values
        self.fewest, self.most = min(self.fewest, other.fewest), max(self.most, other.most)
        self.odd += other.odd
        for value in (other.low, other.high):
            if value is not None:
                self.spread(value, value)
        self.sample.extend(other.sample)
        self.cut()


class FeaturesSurvey:
    """Counts of all features, by name."""

    def __init__(self) -> None:
        self.counts: dict[str, FeatureCounts] = {}
        self.more: set[str] = set()
        """Some names of features that are not counted."""

    def add_table(self, table: Table, order: _Hashes, memory: bytes) -> None:
        """Count the features of the records of a table.

        Args:
            order: hashes of the records.
            memory: of their batch.
        """
        for name, (slot, column) in table.columns.items():
            counts = self._of(name)
            if counts is None:
                continue
            if slot.kind is Kind.INT64:
                values = column.integers[:, np.newaxis]
            elif slot.kind is Kind.FLOAT:
                values = np.stack(
                    [
                        np.frombuffer(memory, "<f4", slot.values, start)
                        for start in column.start.tolist()
                    ]
                )
            else:
                values = (column.stop - column.start)[:, np.newaxis]
            counts.add_table(slot.kind, values, order)

    def add(self, example: Example, order: int) -> None:
        """Count the features of one record."""
        for name, feature in example.items():
            counts = self._of(name)
            if counts is not None:
                values = feature.values
                if feature.kind is Kind.BYTES:
                    values = tuple(map(len, values))
                counts.add(feature.kind, feature.count, values, order)

    def merge(self, other: FeaturesSurvey) -> None:
        """Add the features of other records."""
        for name, counts in other.counts.items():
            mine = self._of(name)
            if mine is not None:
                mine.merge(counts)
        self.more |= other.more

    def _of(self, name: str) -> FeatureCounts | None:
        counts = self.counts.get(name)
        if counts is None:
            if len(self.counts) >= _FEATURES:
                if len(self.more) < _FEATURES:
                    self.more.add(name)
                return None
            counts = self.counts[name] = FeatureCounts()
        return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFeature:
    """A feature as a page shows it. Every string is escaped for terminals, not for HTML."""

    name: str
    kind: str
    present: int
    missing: int
    """Records with it, and without."""
    per_record: str
    """Numbers of values of a record, in words."""
    range: str
    """The lowest and the highest value, in words; empty without values."""
    odd: int
    """Numbers that are not finite."""
    chart: Histogram | None
    """None if all values are equal."""


def page_features(
    surveys: Mapping[str, FeaturesSurvey], records: int, most: int
) -> tuple[tuple[PageFeature, ...], int]:
    """The features of all splits by name, and how many more there are.

    Args:
        records: of all splits.
        most: features, at most.
    """
    whole = FeaturesSurvey()
    for survey in surveys.values():
        whole.merge(survey)
    shown = sorted(whole.counts.items())[:most]
    more = len(whole.counts) - len(shown) + len(whole.more)
    return tuple(_page_feature(name, each, records) for name, each in shown), more


def _page_feature(name: str, counts: FeatureCounts, records: int) -> PageFeature:
    is_size = counts.kinds == {"bytes"}
    words = _size if is_size else _number
    fewest, most = min(counts.fewest, counts.most), counts.most
    return PageFeature(
        name=safe(name),
        kind=" and ".join(sorted(counts.kinds)),
        present=counts.records,
        missing=max(records - counts.records, 0),
        per_record=f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}",
        range=_span(words(counts.low), words(counts.high))
        if counts.low is not None and counts.high is not None
        else "",
        odd=counts.odd,
        chart=_histogram(safe(name), counts, words) if counts.low != counts.high else None,
    )


def _histogram(name: str, counts: FeatureCounts, words: Any) -> Histogram | None:
    values = np.array([value for _, each in counts.sample for value in each], np.float64)
    values = values[np.isfinite(values)]
    if not values.size:
        return None
    numbers = Counter(values.tolist())
    if len(numbers) <= _BINS and 2 * len(numbers) <= values.size:
        columns = tuple((words(value), number) for value, number in sorted(numbers.items()))
    else:
        bins, edges = np.histogram(values, _BINS)
        columns = tuple(
            (_span(words(low), words(high)), int(number))
            for low, high, number in zip(edges[:-1], edges[1:], bins, strict=True)
        )
    return Histogram(heading=f"Distribution of {name}", columns=columns)


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _number(value: float) -> str:
    if (value == int(value) and abs(value) < 1e15) or 1e4 < abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _size(value: float) -> str:
    return si_bytes(round(value))
