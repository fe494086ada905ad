"""The content digest of any TFRecords, computed from their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tfrecreg.core.check.content import DigestPart, DigestVisitor
from tfrecreg.core.check.infer import read_whole
from tfrecreg.core.check.scan.interface import Need, Shard, Target, Validator, Visitor
from tfrecreg.core.records.hashing import ContentHasher, content_digest
from tfrecreg.core.registry.foreign.folders import expect_whole_sets
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.files import names_one_file
from tfrecreg.core.registry.shardset.find import TargetsLike, find, named_targets
from tfrecreg.core.registry.shardset.target import files_target, target_of
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.findings import Code, Finding, Measure
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import ShortRepr, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine


@dataclass(frozen=True, slots=True)
class SplitDigest:
    """The content of one split."""

    split: str
    """Empty for files whose names do not say one."""
    records: int
    shards: int
    content: str
    """Hex content digest of the split alone, as a manifest has it."""


@dataclass(frozen=True, slots=True, repr=False)
class ContentDigests(ShortRepr):
    """The content of a target."""

    target: str
    content: str
    """Hex content digest of all splits, as a manifest has it."""
    splits: tuple[SplitDigest, ...]
    """In order of name."""


def digest(
    targets: TargetsLike,
    *,
    split: str | None = None,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> list[ContentDigests]:
    """The content digests of references and files, computed from the records.

    Equal for the same records in splits of the same names, for any shards, order and compression.
    """
    engine = engine or LocalEngine(1)
    named = named_targets(targets)
    if not named:
        raise UsageError("there is no target to digest", hint="tfrecreg digest TARGET")
    files: list[str] = []
    todo: list[Target] = []
    for each in named:
        found = find(each, registry)
        if isinstance(found, str):
            files.append(found)
        else:
            todo.append(target_of(found))
    if split is not None and not files:
        raise UsageError(
            "`--split` applies to files only: builds and releases name their splits",
            hint="leave out `--split`",
        )
    if files:
        target = files_target(files)
        if not all(map(names_one_file, files)):
            expect_whole_sets(
                target.shards,
                "the digest would be that of the rest",
                "bring the missing shards, or name the files one by one",
            )
        todo.append(_with_split(target, split))
    return [_digest(target, engine, progress) for target in todo]


def _with_split(target: Target, split: str | None) -> Target:
    """The files with the given split for those that have none."""
    if split is None:
        return target
    if not split or all(shard.split for shard in target.shards):
        problem = "is empty" if not split else "is not needed: the names of all files say a split"
        raise UsageError(
            f"`--split {safe(split)}` {problem}", hint="it names the split of files without one"
        )
    shards = [shard if shard.split else replace(shard, split=split) for shard in target.shards]
    return replace(target, shards=tuple(sorted(shards, key=lambda each: each.split)))


def _digest(target: Target, engine: Engine, progress: Progress) -> ContentDigests:
    _expect_all_shards(target)
    collector = _Collector()
    read_whole(
        target,
        [collector],
        engine,
        progress,
        doing="digesting",
        otherwise="the digest of incomplete data is not that of the dataset",
    )
    whole = ContentHasher()
    splits: dict[str, list[bytes]] = {}
    shards: dict[str, int] = {}
    if target.manifest is not None:
        splits = {each.name: [] for each in target.manifest.splits}
    for shard, part in collector.seen:
        if part.faults:
            raise RefusedError(
                f"`{safe(shard.name, limit=1000)}` is damaged: the digest would be that of the "
                "other records",
                hint=f"`tfrecreg check {target.name}` names the damaged records",
            )
        splits.setdefault(shard.split, []).append(part.digests)
        shards[shard.split] = shards.get(shard.split, 0) + 1
    for name, parts in splits.items():
        whole.add(name, b"".join(parts))
    return ContentDigests(
        target.name,
        whole.hexdigest(),
        tuple(
            SplitDigest(
                name,
                sum(map(len, parts)) // 16,
                shards.get(name, 0),
                content_digest([(name, b"".join(parts))]),
            )
            for name, parts in sorted(splits.items())
        ),
    )


def _expect_all_shards(target: Target) -> None:
    """Refuse a build or release with missing shards."""
    if target.manifest is None:
        return
    present = {shard.path for shard in target.shards}
    for entry in target.manifest.shards:
        if entry.path not in present:
            raise RefusedError(
                f"`{safe(entry.path)}` of `{target.name}` is missing",
                hint=f"tfrecreg check {target.name}",
            )


class _Collector(Validator):
    """Keeps the digests of all records: 24 bytes per record."""

    name = "digest"
    codes: Sequence[Code] = ()
    needs = Need(0)

    def __init__(self) -> None:
        self.seen: list[tuple[Shard, DigestPart]] = []

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        del target, options
        return DigestVisitor

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, DigestPart]]
    ) -> Iterator[Finding | Measure]:
        del target
        self.seen = list(parts)
        return iter(())
