"""The statistics of a target, split by split: made in a pass over its records, or remembered.

The operation: the statistics of what the user names.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from tfrecreg.builtin.statistics.collect import (
    SplitStatistics,
    StatisticsCache,
    StatisticsCollector,
)
from tfrecreg.builtin.statistics.options import StatisticsOptions
from tfrecreg.builtin.statistics.summary import (
    STATS_COLUMNS,
    FeatureSummary,
    named,
    render_proto,
    stats_row,
    summarize,
)
from tfrecreg.core.check.infer import read_whole
from tfrecreg.core.check.scan.interface import Need, Shard, Target, Validator, Visitor
from tfrecreg.core.records.batch import StreamEnd
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.find import TargetLike
from tfrecreg.core.registry.shardset.target import find_target
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Code, Finding, Measure
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import count, did_you_mean, listed, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

_WORTH_WORKERS = 128 << 20
"""Bytes of shards above which workers gain more than their start costs."""


@dataclass(frozen=True, slots=True)
class SplitStats:
    """The statistics of one split, for people."""

    statistics: SplitStatistics
    features: tuple[FeatureSummary, ...]
    cached: bool
    """Whether they were made before, of the same content."""

    def to_json(self) -> dict[str, Any]:
        """As the document of ``stats --json`` has it."""
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
    """Splits in order of their names."""

    def __repr__(self) -> str:
        return f"<Stats {safe(self.target)}: {', '.join(map(self._heading, self.splits))}>"

    def __str__(self) -> str:
        """A table of features for each split."""
        parts = []
        for split in self.splits:
            rows = [STATS_COLUMNS, *map(stats_row, split.features)]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
            parts.append("\n  ".join((self._heading(split), *lines)))
        return "\n\n".join(parts)

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
        """TFDV's `DatasetFeatureStatisticsList` as text: a dataset for each split, with its name.

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
    options: StatisticsOptions | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Stats:
    """Make the statistics of a target, or recall those that its registry remembers."""
    options = options or options_of(target)
    target = _only(target, split)
    known = _recalled(target, options)
    left = tuple(shard for shard in target.shards if shard.split not in known)
    made = _make(replace(target, shards=left), options, engine, progress) if left else {}
    return _summed_up(target, options, known, made, features)


class StatsOfCheck:
    """The statistics of a target, made in the pass of a check over its records, or recalled.

    Attributes:
        validators: for the pass; none if all is recalled.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._options = options_of(target)
        self._known = _recalled(target, self._options)
        self._collector, self._sound = StatisticsCollector(self._options), _Soundness()
        self.validators: list[Validator] = []
        if not {shard.split for shard in target.shards} <= self._known.keys():
            self.validators.append(self._collector)
            if target.manifest is not None:
                self.validators.append(self._sound)

    def result(self) -> Stats:
        """The statistics, after a check that read all records."""
        made = _collected(self._collector, self._sound)
        known = {name: each for name, each in self._known.items() if name not in made}
        return _summed_up(self._target, self._options, known, made)


def options_of(target: Target) -> StatisticsOptions:
    """The default options, with the target's own schema."""
    return StatisticsOptions(schema=target.schema, schema_path=target.schema_path or "schema")


def _recalled(target: Target, options: StatisticsOptions) -> dict[str, SplitStatistics]:
    """The statistics of splits that were made before."""
    known: dict[str, SplitStatistics] = {}
    if target.home is not None:
        cache = StatisticsCache(target.home)
        for name, content in _contents(target).items():
            recalled = cache.recall(name, content, options)
            if recalled is not None:
                known[name] = recalled
    return known


def _summed_up(
    target: Target,
    options: StatisticsOptions,
    known: Mapping[str, SplitStatistics],
    made: Mapping[str, tuple[SplitStatistics, bool]],
    features: Sequence[str] = (),
) -> Stats:
    """The statistics of all splits; new ones are cached."""
    contents = _contents(target)
    if target.home is not None:
        cache = StatisticsCache(target.home)
        for name, (statistics, sound) in made.items():
            if sound and name in contents:
                cache.remember(statistics, contents[name], options)
    everything = [*known.values(), *(statistics for statistics, _ in made.values())]
    everything.sort(key=lambda each: each.split)
    _expect_examples(target, everything)
    return Stats(
        target.name,
        tuple(
            SplitStats(each, _chosen(each, features), each.split in known) for each in everything
        ),
    )


def _only(target: Target, split: str | None) -> Target:
    """The target with the shards of one split."""
    splits = sorted({shard.split for shard in target.shards})
    if not splits:
        raise UsageError(
            f"`{target.name}` has no shards to compute statistics from",
            hint="`tfrecreg check` lists the missing ones",
        )
    if split is None:
        return target
    if split not in splits:
        named = [safe(each) for each in splits if each]
        raise UsageError(
            f"`{target.name}` has no split `{safe(split)}`{did_you_mean(split, splits)}",
            hint=f"available: {listed(named)}" if named else "its file names contain no split",
        )
    return replace(target, shards=tuple(each for each in target.shards if each.split == split))


def _contents(target: Target) -> dict[str, str]:
    """The content digests of the splits with all shards present."""
    if target.manifest is None:
        return {}
    here = [shard.name for shard in target.shards]
    missing = {entry.split for entry in target.manifest.shards if entry.path not in here}
    wanted = {shard.split for shard in target.shards} - missing
    return {each.name: each.content for each in target.manifest.splits if each.name in wanted}


def _make(
    target: Target, options: StatisticsOptions, engine: Engine | None, progress: Progress
) -> dict[str, tuple[SplitStatistics, bool]]:
    """The statistics of each split, and whether the bytes are those that the manifest names."""
    collector, sound = StatisticsCollector(options), _Soundness()
    engine = (engine or LocalEngine(1)).for_work(map(_size, target.shards), _WORTH_WORKERS)
    read_whole(
        target,
        [collector, sound] if target.manifest is not None else [collector],
        engine,
        progress,
        doing="statistics of",
        otherwise="statistics of incomplete data would be misleading",
    )
    return _collected(collector, sound)


def _collected(
    collector: StatisticsCollector, sound: _Soundness
) -> dict[str, tuple[SplitStatistics, bool]]:
    """What a pass found, and whether the bytes are those that the manifest names."""
    return {
        each.split: (each, sound.splits.get(each.split, False)) for each in collector.statistics()
    }


def _size(shard: Shard) -> int:
    entry = shard.storage.stat(shard.path)
    return entry.size if entry is not None else 0


class _Soundness(Validator):
    """Sees whether shards are the files that the manifest names, in the same pass."""

    name = "soundness"
    codes: Sequence[Code] = ()
    needs = Need.DIGESTS

    def __init__(self) -> None:
        self.splits: dict[str, bool] = {}

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], _Digest]:
        del target, options
        return _Digest

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, str | None]]
    ) -> Iterator[Finding | Measure]:
        for shard, digest in parts:
            good = shard.entry is not None and shard.entry.blake3 == digest
            self.splits[shard.split] = self.splits.get(shard.split, True) and good
        yield Measure("soundness.target", target.name, target.name)


class _Digest(Visitor):
    def __init__(self, shard: Shard) -> None:
        del shard

    def close(self, end: StreamEnd) -> str | None:
        return end.blake3


def _expect_examples(target: Target, everything: Sequence[SplitStatistics]) -> None:
    """Refuse a target without any Example."""
    if any(each.examples for each in everything):
        return
    told = "; ".join(str(each.left_out) for each in everything if each.left_out)
    raise UsageError(
        f"`{target.name}` has no Examples to compute statistics from"
        + (f": {told}" if told else ", nor any record"),
        hint=f"`tfrecreg head {target.name}` shows its records",
    )


def _chosen(statistics: SplitStatistics, globs: Sequence[str]) -> tuple[FeatureSummary, ...]:
    features = tuple(summarize(statistics.proto))
    if not globs:
        return features
    names = [feature.name for feature in features]
    for glob in globs:
        if not fnmatch.filter(names, glob):
            raise UsageError(
                f"no feature of `{safe(statistics.split)}` matches `{safe(glob)}`"
                f"{did_you_mean(glob, names)}",
                hint=f"available: {listed(names, most=10)}",
            )
    return tuple(
        feature
        for feature in features
        if any(fnmatch.fnmatchcase(feature.name, glob) for glob in globs)
    )


def stats(
    argument: TargetLike,
    *,
    registry: RegistryLike | None = None,
    split: str | None = None,
    features: Sequence[str] = (),
    schema: str | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Stats:
    """The statistics of a build, a release or files; cached in a registry."""
    target = find_target(argument, registry=registry, schema=schema)
    for note in target.notes if target.kind == "files" else ():
        progress.note(note)
    return stats_of(
        target,
        split=split,
        features=features,
        engine=engine,
        progress=progress,
    )
