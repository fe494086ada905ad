"""Statistics from a scan: one visitor for each shard, one part for each split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from tfrecreg.builtin.statistics.options import StatisticsOptions
from tfrecreg.builtin.statistics.part import LeftOut, StatisticsPart
from tfrecreg.builtin.statistics.visitor import StatisticsVisitor
from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.values.findings import Code, Finding, Measure
from tfrecreg.core.values.text import count

_open: WeakValueDictionary[tuple[str, str, StatisticsOptions], StatisticsVisitor] = (
    WeakValueDictionary()
)
"""Visitors whose shard is being scanned by this process."""


def make_visitor(options: StatisticsOptions, shard: Shard) -> Visitor:
    """A visitor for a shard. If two validators of a scan need the same, one does the work."""
    key = (shard.storage.root, shard.path, options)
    leader = _open.get(key)
    if leader is not None:
        return _Follower(leader)
    visitor = _open[key] = StatisticsVisitor(options)
    return visitor


class _Follower(Visitor):
    """Hands back the part of another visitor of the same scan, which comes before it."""

    def __init__(self, leader: StatisticsVisitor) -> None:
        self._leader = leader

    def batch(self, batch: RecordBatch) -> None:
        """The other one processes it."""

    def fault(self, fault: Fault) -> None:
        """The other one hears of it."""

    def close(self, end: StreamEnd) -> StatisticsPart:
        del end
        if self._leader.closed is None:
            raise RuntimeError("the statistics that another validator makes were not finished")
        return self._leader.closed


@dataclass(frozen=True, slots=True)
class SplitStatistics:
    """The statistics of one split."""

    split: str
    """Empty for files without a split in their names."""
    examples: int
    """Number of examples."""
    left_out: LeftOut
    """Records of the split that they are not of."""
    sketched: tuple[str, ...]
    """Features with more different values than fit in memory: what is frequent, and how many
    different values there are, is an estimate."""
    proto: Any = field(repr=False)
    """TensorFlow Metadata's `DatasetFeatureStatisticsList`, with one dataset, which has no name."""


class StatisticsCollector(Validator):
    """Looks at every record the way validators do, and sums up instead of judging.

    Hand it to :func:`tfrecreg.core.check.scan.run.run_scan`, then ask for :meth:`statistics`.
    """

    name = "statistics"
    codes: Sequence[Code] = ()

    def __init__(self, options: StatisticsOptions) -> None:
        self.options = options
        self.parts: dict[str, StatisticsPart] = {}
        """Parts by split, once the scan is over."""

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        """A maker of visitors."""
        del target, options
        self.options.schema_proto()  # report errors here once, and not for every shard
        return partial(make_visitor, self.options)

    def merge(self, part: StatisticsPart, more: StatisticsPart) -> StatisticsPart:
        """Merge the parts of two adjacent shards: see :meth:`tfrecreg.core.check.scan.Validator.merge`."""
        part.merge(more)
        return part

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, StatisticsPart]]
    ) -> Iterator[Finding | Measure]:
        del target
        for shard, part in parts:
            if shard.split in self.parts:
                self.parts[shard.split].merge(part)
            else:
                self.parts[shard.split] = part
        examples = sum(part.examples for part in self.parts.values())
        yield Measure("statistics.examples", examples, count(examples, "example"))

    def statistics(self) -> list[SplitStatistics]:
        """The statistics of every split that was scanned, in order of their names."""
        return [
            SplitStatistics(split, part.examples, part.left_out, part.sketched, part.proto())
            for split, part in sorted(self.parts.items())
        ]
