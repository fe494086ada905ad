"""Makes the statistics of each split of a target, or reads them from a cache.

The operation :func:`stats` does this for a target that a user names.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from tfrecreg.builtin.statistics.collect import (
    SplitStatistics,
    StatisticsCache,
    StatisticsCollector,
)
from tfrecreg.builtin.statistics.summary import (
    STATS_COLUMNS,
    FeatureSummary,
    named,
    render_proto,
    stats_row,
    summarize,
)
from tfrecreg.core.check.infer import read_whole
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.registry.data import TargetLike
from tfrecreg.core.registry.find import find_target
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import count, did_you_mean, listed, safe
from tfrecreg.core.workers.context import Context, Travelling
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    from typing_extensions import Unpack

_BYTE_SECONDS = 4e-9
"""Approximate time per byte, in seconds."""


@dataclass(frozen=True, slots=True)
class SplitStats:
    """The statistics of one split, for people."""

    statistics: SplitStatistics
    features: tuple[FeatureSummary, ...]
    cached: bool
    """Whether the statistics came from the cache."""

    def to_json(self) -> dict[str, Any]:
        """The entry for the document of ``stats --json``."""
        told = self.statistics
        return {
            "split": told.split,
            "examples": told.examples,
            "left_out": {
                "damaged": told.left_out.damaged,
                "too_large": told.left_out.large,
                **{kind.value: count for kind, count in sorted(told.left_out.kinds.items())},
            },
            "sketched": told.sketched,
            "cached": self.cached,
            "features": self.features,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Stats:
    """The statistics of a target."""

    target: str
    splits: tuple[SplitStats, ...]
    """The splits, sorted by name."""

    def __repr__(self) -> str:
        return f"<Stats {safe(self.target)}: {', '.join(map(self._heading, self.splits))}>"

    def __str__(self) -> str:
        """For each split: which records are excluded, which features are estimated, and a table."""
        return "\n\n".join("\n".join(self._lines(split)) for split in self.splits)

    def _lines(self, split: SplitStats) -> Iterator[str]:
        made = split.statistics
        yield self._heading(split) + (", from the cache" if split.cached else "")
        if made.left_out:
            yield f"  left out: {made.left_out}"
        if made.sketched:
            yield f"  estimated, because of too many values: {', '.join(map(safe, made.sketched))}"
        rows = [STATS_COLUMNS, *map(stats_row, split.features)] if split.features else []
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for name, kind, *numbers, histogram in rows:
            cells = [name.ljust(widths[0]), kind.ljust(widths[1])]
            cells += map(str.rjust, numbers, widths[2:-1])
            yield f"  {'  '.join((*cells, histogram))}".rstrip()

    def _repr_html_(self) -> str:
        """The tables, for a notebook."""
        head = "".join(f"<th>{name}" for name in STATS_COLUMNS)
        parts = []
        for split in self.splits:
            rows = (map(escape, stats_row(each)) for each in split.features)
            body = "".join(f"<tr><td>{'<td>'.join(row)}" for row in rows)
            heading = escape(self._heading(split))
            parts.append(f"<p><b>{heading}</b></p><table><tr>{head}{body}</table>")
        return "".join(parts)

    def _heading(self, split: SplitStats) -> str:
        made = split.statistics
        return f"{safe(made.split or self.target)}: {count(made.examples, 'example')}"

    def pbtxt(self) -> str:
        """TFDV's `DatasetFeatureStatisticsList` as text, with a named dataset per split.

        `tfdv.load_stats_text` reads it.
        """
        return render_proto(
            named((each.statistics.split, each.statistics.proto) for each in self.splits)
        )


def stats_of(
    target: Target,
    *,
    split: str | None = None,
    features: Sequence[str] = (),
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Stats:
    """Make the statistics of a target, or read them from its registry's cache."""
    work = StatsOfCheck(_only(target, split))
    if work.left.shards:
        entries = (shard.storage.stat(shard.path) for shard in work.left.shards)
        costs = (entry.size * _BYTE_SECONDS for entry in entries if entry is not None)
        engine = (engine or LocalEngine(1)).for_work(costs)
        read_whole(work.left, work.validators, engine, progress, doing="statistics of")
    return work.result(features)


class StatsOfCheck:
    """The statistics of a target, read from the cache or made while a check reads the records.

    Attributes:
        validators: validators to run in the check; empty if everything is cached.
        left: the target with the shards whose statistics are not cached.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._contents = _contents(target)
        self._cache = StatisticsCache(target.home)
        cache, contents = self._cache, self._contents
        known = (cache.recall(name, each, target.schema) for name, each in contents.items())
        self._known = {each.split: each for each in known if each is not None}
        self._collector = StatisticsCollector(digests=target.manifest is not None)
        shards = (shard for shard in target.shards if shard.split not in self._known)
        self.left = replace(target, shards=tuple(shards))
        self.validators: list[Validator] = [self._collector] if self.left.shards else []

    def result(self, features: Sequence[str] = ()) -> Stats:
        """The statistics, after a check that read all records. New statistics are cached if the
        bytes match the manifest.
        """
        collector, target = self._collector, self._target
        made = {each.split: each for each in collector.statistics()}
        for name, statistics in made.items():
            if collector.parts[name].is_sound and name in self._contents:
                self._cache.remember(statistics, self._contents[name], target.schema)
        everything = sorted({**self._known, **made}.values(), key=lambda each: each.split)
        if not any(each.examples for each in everything):
            left_out = "; ".join(str(each.left_out) for each in everything if each.left_out)
            raise UsageError(
                f"`{target.name}` has no Examples to compute statistics from: "
                f"{left_out or 'it has no records'}"
            )
        summaries = [tuple(summarize(each.proto)) for each in everything]
        names = sorted({feature.name for summary in summaries for feature in summary})
        chosen = _chosen(target.name, names, features)
        splits = (
            SplitStats(
                each, tuple(one for one in summary if one.name in chosen), each.split not in made
            )
            for each, summary in zip(everything, summaries, strict=True)
        )
        return Stats(target.name, tuple(splits))


def _only(target: Target, split: str | None) -> Target:
    """The target with the shards of one split."""
    splits = sorted({shard.split for shard in target.shards})
    if not splits:
        raise UsageError(f"`{target.name}` has no shards to compute statistics from")
    if split is None:
        return target
    if split not in splits:
        named = listed([safe(each) for each in splits if each])
        raise UsageError(
            f"`{target.name}` has no split `{split}`{did_you_mean(split, splits)}; it has {named}"
        )
    return replace(target, shards=tuple(each for each in target.shards if each.split == split))


def _contents(target: Target) -> dict[str, str]:
    """The content digests of the splits whose shards are all present."""
    if target.manifest is None:
        return {}
    here = {shard.name for shard in target.shards}
    missing = {entry.split for entry in target.manifest.shards if entry.path not in here}
    wanted = {shard.split for shard in target.shards} - missing
    return {each.name: each.content for each in target.manifest.splits if each.name in wanted}


def _chosen(target: str, names: Sequence[str], globs: Sequence[str]) -> set[str]:
    """The names that match any of the globs; all names if there are no globs."""
    chosen = set(() if globs else names)
    for glob in globs:
        found = fnmatch.filter(names, glob)
        if not found:
            raise UsageError(
                f"no feature of `{target}` matches `{glob}`{did_you_mean(glob, names)}; "
                f"it has {listed(names, most=10)}"
            )
        chosen.update(found)
    return chosen


def stats(
    argument: TargetLike,
    *,
    split: str | None = None,
    features: Sequence[str] = (),
    schema: str | None = None,
    **context: Unpack[Context],
) -> Stats:
    """The statistics of a build, a release or files. For builds and releases, they are cached."""
    registry, engine, progress = Travelling(**context)
    target = find_target(argument, registry=registry, schema=schema)
    for note in target.notes if target.kind == "files" else ():
        progress.note(note)
    return stats_of(target, split=split, features=features, engine=engine, progress=progress)
