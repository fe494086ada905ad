"""The catalogs of all shards of a target: from the cache, or made in a pass over the bytes."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from tfrecreg.builtin.query.cache import CatalogCache, KeptCatalog, is_settled, state_of
from tfrecreg.builtin.query.packages import expect_packages
from tfrecreg.builtin.query.visitor import CatalogPart, CatalogVisitor
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.check.scan.run import Crashed, ScanTask, ShardScan, scan_shard
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.registry.indexes import FileStamp
from tfrecreg.core.values.errors import FailureError, NoShardsError
from tfrecreg.core.values.progress import Progress, working
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine

T = TypeVar("T")
R = TypeVar("R")

_WORTH_WORKERS = 64 << 20
"""Bytes of shards above which workers gain more than their start costs."""


class ShardCatalog(NamedTuple):
    """The catalog of one shard of a target."""

    shard: Shard
    kept: KeptCatalog
    state: FileStamp | None
    """Of the file, when its digest was found out."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    shard: Shard
    state: FileStamp | None
    since: int


def catalogs_of(
    target: Target, cache: CatalogCache, engine: Engine, progress: Progress
) -> list[ShardCatalog]:
    """The catalogs of the shards of a target, in their order.

    A catalog is used for a file whose state a note knows, or whose digest is computed now. All
    others are made.
    """
    expect_packages()
    indexes = _index_digests(target)
    found: dict[int, ShardCatalog] = {}
    wanted: dict[int, _Wanted] = {}
    doubtful: dict[int, tuple[_Wanted, KeptCatalog]] = {}
    for number, shard in enumerate(target.shards):
        since, state = time.time_ns(), state_of(shard)
        each = _Wanted(shard, state, since)
        digest, index = cache.known_digest(shard, state), indexes.get(shard.index or "", "")
        listed = shard.entry.blake3 if shard.entry is not None else ""
        kept = cache.recall(digest or listed, index)
        if kept is None:
            wanted[number] = each
        elif digest:
            found[number] = ShardCatalog(shard, kept, state)
        else:
            # The bytes that the manifest names have a catalog: reading their digest is quicker.
            doubtful[number] = each, kept
    _recognize(doubtful, wanted, found, cache, engine, target, progress)
    _make(wanted, found, cache, engine, target, progress)
    return [found[number] for number in sorted(found)]


def _index_digests(target: Target) -> dict[str, str]:
    """By path, the digests of indexes that the manifest names; no others are used."""
    files = target.manifest.files if target.manifest is not None else ()
    return {each.path: each.blake3 for each in files}


def _recognize(
    doubtful: dict[int, tuple[_Wanted, KeptCatalog]],
    wanted: dict[int, _Wanted],
    found: dict[int, ShardCatalog],
    cache: CatalogCache,
    engine: Engine,
    target: Target,
    progress: Progress,
) -> None:
    """Use the catalogs of shards that agree with the manifest; the others are wanted."""
    if not doubtful:
        return
    shards = [each.shard for each, _ in doubtful.values()]
    digests = _run(engine, _digest_of, shards, f"recognizing {target.name}", progress, shards)
    for (number, (each, kept)), digest in zip(doubtful.items(), digests, strict=True):
        if digest != kept.entry.shard:
            wanted[number] = each
            continue
        _note(cache, each, digest)
        found[number] = ShardCatalog(each.shard, kept, each.state)


def _make(
    wanted: dict[int, _Wanted],
    found: dict[int, ShardCatalog],
    cache: CatalogCache,
    engine: Engine,
    target: Target,
    progress: Progress,
) -> None:
    if not wanted:
        return
    maker = (PluginId("catalog", "catalog"), pickle.dumps(CatalogVisitor))
    shards = [each.shard for each in wanted.values()]
    tasks = [ScanTask(shard, (maker,), digest=True) for shard in shards]
    scans = _run(engine, scan_shard, tasks, f"cataloguing {target.name}", progress, shards)
    for (number, each), scanned in zip(wanted.items(), scans, strict=True):
        part = _opened(each.shard, scanned)
        kept = cache.keep(part)
        _note(cache, each, part.entry.shard)
        found[number] = ShardCatalog(each.shard, kept, each.state)


def _opened(shard: Shard, scanned: ShardScan) -> CatalogPart:
    name = safe(shard.name, limit=1000)
    (part,) = scanned.parts
    if scanned.end is None or part is None:
        raise FailureError(
            f"`{name}` cannot be read: {scanned.unreadable}",
            hint="make it readable, and ask again",
        )
    if isinstance(part, Crashed):
        raise FailureError(
            f"`{name}` cannot be catalogued: {part.reason}", hint="this is a bug: report it"
        )
    made = pickle.loads(part)
    if not isinstance(made, CatalogPart):
        raise TypeError(f"a catalog is {made!r}")
    if made.problem:
        raise NoShardsError(
            f"`{name}` is not a TFRecord: {made.problem}",
            hint=f"tfrecreg check {name}",
            place=shard.name,
        )
    return made


def _note(cache: CatalogCache, each: _Wanted, digest: str) -> None:
    """Remember the digest, unless the file changed while it was read, or shortly before."""
    state = each.state
    if state is None or state_of(each.shard) != state or not is_settled(state, each.since):
        return
    cache.note_digest(each.shard, state, digest)


def _digest_of(shard: Shard) -> str:
    return hash_file(shard.storage, shard.path)[1]


def _run(
    engine: Engine,
    function: Callable[[T], R],
    tasks: Sequence[T],
    label: str,
    progress: Progress,
    shards: Sequence[Shard],
) -> Iterator[R]:
    """The results one by one, with progress: only one of them is in memory."""
    sizes = [entry.size if (entry := state_of(shard)) is not None else 0 for shard in shards]
    total = sum(shard.entry.records for shard in shards if shard.entry is not None)
    chosen = engine.for_work(map(float, sizes), _WORTH_WORKERS)
    with working(progress, label, total), closing(chosen.run(function, tasks)) as results:
        for shard, size, result in zip(shards, sizes, results, strict=True):
            yield result
            records = shard.entry.records if shard.entry is not None else 0
            progress.advance(records, size)
