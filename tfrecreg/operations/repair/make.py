"""Making the shards again: each from its index, or from the plan where the index is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from tfrecreg.engines import Engine
from tfrecreg.errors import RefusedError
from tfrecreg.index import Index
from tfrecreg.manifest import Manifest, ShardEntry
from tfrecreg.operations.builds.plan import PlannedShard, make_plan
from tfrecreg.operations.builds.shard import Maker, ShardTask, close_source, make_shard
from tfrecreg.operations.repair.raw import RawData
from tfrecreg.operations.repair.remake import RemadeShard, RemakeTask, remake
from tfrecreg.progress import Progress
from tfrecreg.shards import ShardPolicy
from tfrecreg.sources import Item
from tfrecreg.storage import Storage
from tfrecreg.text import safe

__all__ = ["Lost", "make_again"]


@dataclass(frozen=True, slots=True)
class Lost:
    """A shard to be made again."""

    entry: ShardEntry
    index: Index | None
    """None where it is lost, too."""


def make_again(
    lost: Sequence[Lost],
    manifest: Manifest,
    raw: RawData,
    *,
    folder: Storage,
    stage: Storage,
    engine: Engine,
    progress: Progress,
) -> list[RemadeShard]:
    """Make shards, and their indexes, in the stage.

    Args:
        lost: which ones.
        manifest: that of the build.
        raw: the raw data.
        folder: rooted at the folder that the damaged shards lie in.
        stage: rooted at the folder in the making.
        engine: where to make them.
        progress: told of each shard.

    Raises:
        UsageError: the raw data are needed, and are not at hand.
        RefusedError: an index is lost, and nothing else tells what was in the shard.
        RawDataError: the raw data cannot be read any more.
        PluginError: the source failed.
        StorageError: the stage cannot be written.
    """
    if raw.problem is not None and any(each.index is None for each in lost):
        raise raw.problem
    known = [(each.entry, each.index) for each in lost if each.index is not None]
    wanted: dict[str, set[str]] = defaultdict(set)
    for entry, index in known:
        wanted[entry.split].update(index.keys())
    items = raw.items(wanted, {each.entry.split for each in lost if each.index is None})
    source = raw.source
    tasks = [
        RemakeTask(
            entry=entry,
            index=index,
            items=_of(items[entry.split], index),
            source=source,
            compression=manifest.compression,
            folder=folder,
            stage=stage,
        )
        for entry, index in known
    ]
    made = []
    progress.start(f"repairing {manifest.dataset}", sum(each.entry.records for each in lost))
    try:
        with closing(engine.run(remake, tasks)) as remade:
            for shard in remade:
                progress.advance(shard.taken + shard.made, shard.bytes)
                made.append(shard)
        for each in lost:
            if each.index is None and source is not None:
                maker = Maker(stage, source, manifest.digest, manifest.compression)
                shard = _by_plan(_planned(each.entry, manifest, items[each.entry.split]), maker)
                progress.advance(shard.made, shard.bytes)
                made.append(shard)
    finally:
        progress.stop()
        close_source()
    return made


def _of(items: Mapping[str, Item], index: Index) -> dict[str, Item]:
    return {key: items[key] for key in index.keys() if key in items}  # noqa: SIM118 - no mapping


def _planned(entry: ShardEntry, manifest: Manifest, items: Mapping[str, Item]) -> PlannedShard:
    """The shard as the plan of the build had it: a build that grew is not planned like that."""
    if manifest.base is None and items:
        shards = sum(each.split == entry.split for each in manifest.shards)
        plan = make_plan(manifest.dataset, items.values(), ShardPolicy(shards=shards), {})
        for shard in plan.shards:
            if shard.path == entry.path:
                return shard
    raise RefusedError(
        f"the index of `{safe(entry.path)}` is lost, and nothing else tells what was in the shard",
        hint=f"restore `{safe(entry.index)}` from DVC or a backup: it is small",
    )


def _by_plan(planned: PlannedShard, maker: Maker) -> RemadeShard:
    made = make_shard(ShardTask(maker, planned))
    return RemadeShard(
        path=planned.path,
        taken=0,
        made=made.entry.records,
        bytes=made.entry.bytes,
        blake3=made.entry.blake3,
        stream_blake3=made.entry.stream_blake3,
        index_blake3=made.index.blake3,
    )
