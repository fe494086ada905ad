"""The statistics of all splits of a target, gathered by the scan like a validator's parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tfrecreg.findings import Code, Finding, Measure
from tfrecreg.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.statistics.options import StatisticsOptions
from tfrecreg.statistics.part import LeftOut, StatisticsPart
from tfrecreg.statistics.tfdv import missing_tfdv
from tfrecreg.statistics.visitor import make_visitor


@dataclass(frozen=True, slots=True)
class SplitStatistics:
    """The statistics of one split."""

    split: str
    """Empty for files whose names tell of none."""
    examples: int
    """That they are of."""
    left_out: LeftOut
    """Records of the split that they are not of."""
    sketched: tuple[str, ...]
    """Features with more different values than fit in memory: what is frequent, and how many
    different values there are, is an estimate."""
    proto: Any
    """TFDV's `DatasetFeatureStatisticsList`, with one dataset, which has no name."""


class StatisticsCollector(Validator):
    """Looks at every record the way validators do, and sums up instead of judging.

    Hand it to :func:`tfrecreg.scan.run_scan`, then ask for :meth:`statistics`.

    Args:
        options: which statistics. Their schema is used, not the target's.
    """

    name = "statistics"
    codes: Sequence[Code] = ()

    def __init__(self, options: StatisticsOptions) -> None:
        self.options = options
        self.parts: dict[str, StatisticsPart] = {}
        """By split, once the scan is over."""

    def applies(self, target: Target) -> str | None:
        del target
        missing = missing_tfdv()
        return missing.message if missing is not None else None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        """A maker of visitors.

        Raises:
            SchemaError: the schema does not parse, or contradicts itself.
        """
        del target, options
        self.options.schema_proto()  # what is wrong with it is told here, and not of every shard
        return partial(make_visitor, self.options)

    def merge(self, part: StatisticsPart, more: StatisticsPart) -> StatisticsPart:
        """The parts of two neighbours of a split as one: see :class:`tfrecreg.scan.Validator`."""
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
        yield Measure("statistics.examples", examples, f"{examples:,} examples")

    def statistics(self) -> list[SplitStatistics]:
        """The statistics of every split that was scanned, in order of their names.

        Raises:
            RefusedError: a feature has values of two types.
            MissingExtraError: TFDV is not installed.
        """
        return [
            SplitStatistics(split, part.examples, part.left_out, part.sketched, part.proto())
            for split, part in sorted(self.parts.items())
        ]
