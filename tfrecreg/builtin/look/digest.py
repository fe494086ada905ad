"""Computes the content digest of any TFRecords from their bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfrecreg.core.check.infer import Collector, DigestVisitor, read_whole
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.records.hashing import DIGEST_BYTES, content_digest
from tfrecreg.core.registry.data import TargetsLike
from tfrecreg.core.registry.find import bare_files, find_built, named_targets, target_of
from tfrecreg.core.registry.foreign.folders import expect_whole_sets
from tfrecreg.core.storage.words import names_one_file
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import ShortRepr
from tfrecreg.core.workers.context import Context, Travelling
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, slots=True)
class SplitDigest:
    """The content of one split."""

    split: str
    """Name of the split; empty if the file names state no split."""
    records: int
    shards: int
    content: str
    """Hex content digest of this split alone, as in a manifest."""


@dataclass(frozen=True, slots=True, repr=False)
class ContentDigests(ShortRepr):
    """The content of a target."""

    target: str
    content: str
    """Hex content digest of all splits, as in a manifest."""
    splits: tuple[SplitDigest, ...]
    """The splits, sorted by name."""


def digest(
    targets: TargetsLike, *, split: str | None = None, **context: Unpack[Context]
) -> list[ContentDigests]:
    """Compute content digests from the records of references and files.

    Two digests are equal if splits with the same names have the same records. Shards, order and
    compression do not matter.
    """
    registry, engine, progress = Travelling(**context)
    engine = engine or LocalEngine(1)
    named = named_targets(targets)
    if not named:
        raise UsageError("there is no target to digest")
    found = [(each, find_built(each, registry)) for each in named]
    files = [str(each) for each, built in found if built is None]
    todo = [target_of(built) for _, built in found if built is not None]
    if split is not None and not files:
        raise UsageError("`--split` applies only to files: builds and releases have named splits")
    if files:
        target = target_of(bare_files(files))
        if not all(map(names_one_file, files)):
            expect_whole_sets(
                target.shards,
                "the digest would lack the other shards",
                "bring the missing shards, or name the files one by one",
            )
        todo.append(_with_split(target, split))
    return [_digest(target, engine, progress) for target in todo]


def _with_split(target: Target, split: str | None) -> Target:
    """The target. If the name of a file states no split, the file gets the given split."""
    if split is None:
        return target
    if all(shard.split for shard in target.shards):
        raise UsageError(f"`--split {split}` is not needed: all file names state a split")
    shards = [shard if shard.split else replace(shard, split=split) for shard in target.shards]
    return replace(target, shards=tuple(sorted(shards, key=lambda each: each.split)))


def _digest(target: Target, engine: Engine, progress: Progress) -> ContentDigests:
    here = {shard.path for shard in target.shards}
    for entry in target.manifest.shards if target.manifest is not None else ():
        if entry.path not in here:
            raise RefusedError(f"`{entry.path}` of `{target.name}` is missing")
    collector = Collector(DigestVisitor)
    read_whole(target, [collector], engine, progress, doing="digesting")
    known = target.manifest.splits if target.manifest is not None else ()
    splits: dict[str, list[bytes]] = {each.name: [] for each in known}
    for shard, part in collector.seen:
        if part.faults:
            raise RefusedError(
                f"`{shard.name}` is damaged: the digest would lack the damaged records"
            )
        splits.setdefault(shard.split, []).append(part.digests)
    joined = {name: b"".join(parts) for name, parts in sorted(splits.items())}
    return ContentDigests(
        target.name,
        content_digest(joined.items()),
        tuple(
            SplitDigest(
                name,
                len(digests) // DIGEST_BYTES,
                len(splits[name]),
                content_digest([(name, digests)]),
            )
            for name, digests in joined.items()
        ),
    )
