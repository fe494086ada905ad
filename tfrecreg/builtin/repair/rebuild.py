"""Rebuild one shard from its index, its sound records and the raw data; say why one differs."""

from __future__ import annotations

import pickle
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfrecreg.core.build.plan import PlannedShard, make_plan
from tfrecreg.core.build.request import BuildRequest, Prepared, prepare
from tfrecreg.core.build.shard import (
    BuildTask,
    Maker,
    close_source,
    make_payload,
    make_shard,
)
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.build.sources.interface import Item, Skipped
from tfrecreg.core.build.state import raw_files, remove_leftovers
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.gzip_writer import Compression
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import Index
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.registry.manifest import (
    BUILD_AGAIN,
    FileEntry,
    Manifest,
    ShardEntry,
    is_adopted,
    is_python_data,
)
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.values.errors import (
    PluginError,
    RefusedError,
    StorageError,
    TfrecregError,
    UntrustedPluginError,
    UsageError,
)
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine


def rebuild_refusal(
    name: str, manifest: Manifest, wrong: Sequence[RemadeShard], raw: RawData
) -> RefusedError:
    """The error for shards that were rebuilt with other bytes."""
    first = wrong[0]
    others = len(wrong) - 1
    more = f", and so {'does' if others == 1 else 'do'} {others} more" if others else ""
    told = "; ".join(_differences(manifest, raw))
    return RefusedError(
        f"`{name}` cannot be repaired, and nothing was changed: `{safe(first.entry.path)}` comes "
        f"out with other bytes{more}: {_difference_text(first, manifest)}",
        hint=f"{told or 'the same plugin and the same raw size as then'}; restore the original "
        f"raw data and plugin, or restore the files from {raw.backup}",
    )


def _difference_text(shard: RemadeShard, manifest: Manifest) -> str:
    if shard.differ:
        noun = "record differs, it is" if shard.differ == 1 else "records differ, the first is"
        return f"{shard.differ:,} {noun} `{safe(shard.first)}`: {shard.reason}"
    entry = next(each for each in manifest.shards if each.path == shard.entry.path)
    if shard.entry.stream_blake3 == entry.stream_blake3:
        return "its records are the same, and only their compression differs"
    return "its records or their order differ"


def _differences(manifest: Manifest, raw: RawData) -> Iterator[str]:
    source, prepared = manifest.source, raw.prepared
    if prepared is not None:
        then = f"{source.distribution} {source.version}"
        now = f"{prepared.entry.distribution} {prepared.entry.version}"
        if then != now:
            yield f"it was made by {safe(then)}, here is {safe(now)}"
        codecs = {"zlib": zlib.ZLIB_RUNTIME_VERSION, **prepared.source.codecs()}
        for codec, version in sorted(manifest.codecs.items()):
            found = codecs.get(codec, "none")
            if found != version:
                yield f"it was made with {safe(codec)} {safe(version)}, here is {safe(found)}"
        size = raw_files(prepared.source, prepared.raw)[0]
        if size != manifest.raw:
            yield (
                f"the raw data were {manifest.raw.files:,} files of {manifest.raw.stored:,} bytes, "
                f"here are {size.files:,} of {size.stored:,}"
            )


@dataclass(frozen=True, slots=True)
class RawData:
    """The source of a build, with the options that the manifest names."""

    prepared: Prepared | None
    """None where the raw data are not available: then a record that is lost stays lost."""
    problem: TfrecregError | None
    """Reason that they are not available."""
    backup: str = "DVC or a backup"
    """Other places that may have the files, for hints."""

    @property
    def source(self) -> bytes | None:
        """The source, pickled for workers."""
        return None if self.prepared is None else pickle.dumps(self.prepared.source)

    def items(
        self, wanted: Mapping[str, Collection[str]], whole: Collection[str]
    ) -> dict[str, dict[str, Item]]:
        """Items by split and key."""
        found: dict[str, dict[str, Item]] = defaultdict(dict)
        if self.prepared is not None:
            for item in self.prepared.source.items():
                if isinstance(item, Item) and (
                    item.split in whole or item.key in wanted.get(item.split, ())
                ):
                    found[item.split][item.key] = item
        return found


def open_raw(
    registry: Registry, manifest: Manifest, raw: str | None, name: str, backup: str
) -> RawData:
    """The raw data of a build.

    Missing raw data are reported in the result, as they may not be needed.
    """
    if is_adopted(manifest) or not manifest.source.name:
        problem = UsageError(
            f"`{manifest.dataset}` was adopted from another tool: no source makes its records",
            hint=f"restore the files from {backup}, or save the undamaged records with "
            "`tfrecreg salvage`",
        )
        return RawData(None, problem, backup)
    if is_python_data(manifest):
        problem = UsageError(
            f"`{manifest.dataset}` was built from the data of a program, which are not here",
            hint=f"{BUILD_AGAIN}: the same data give the same bytes; or restore the files from "
            f"{backup}",
        )
        return RawData(None, problem, backup)
    options = dict(manifest.source.options)
    if manifest.parents:  # the versions that `street@2.*` was then
        options["inputs"] = ",".join(each.reference for each in manifest.parents)
    request = BuildRequest(
        name=manifest.dataset,
        source=manifest.source.plugin,
        raw=raw,
        options=options,
        compression=manifest.compression,
    )
    try:
        prepared = prepare(registry, request)
    except UntrustedPluginError:
        raise
    except UsageError as error:
        error.hint = (
            f"name them: tfrecreg repair {name} --raw PATH; without the raw data `{name}` cannot "
            f"be repaired here, only restored from {backup}"
        )
        return RawData(None, error, backup)
    except PluginError as error:
        return RawData(None, error, backup)
    return RawData(prepared, None, backup)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemakeTask:
    """All that a worker needs to make one shard again. Picklable."""

    entry: ShardEntry
    """The shard's entry in the manifest."""
    index: Index
    items: Mapping[str, Item]
    """Key to item, of the items that the raw data still have."""
    source: bytes | None
    """The source, pickled; None where the raw data are not available."""
    compression: Compression
    folder: Readable
    """Rooted at the folder of the damaged shard, if it exists."""
    stage: Storage
    """Rooted at the unfinished folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemadeShard:
    """A rebuilt shard."""

    entry: ShardEntry
    """The rebuilt shard."""
    index: FileEntry
    """Its index."""
    taken: int
    """Records that were still there."""
    differ: int = 0
    """Number of records that differ or are missing."""
    first: str = ""
    """The key of the first of them."""
    reason: str = ""
    """Description of the first difference."""

    @property
    def made(self) -> int:
        """Records that were made from the raw data."""
        return self.entry.records - self.taken


def remake(task: RemakeTask | BuildTask) -> RemadeShard:
    """Make the shard again: record by record, or by the plan of its build where its index is lost.

    Whether it is the one that it was is for the caller to see.
    """
    if isinstance(task, BuildTask):
        planned = make_shard(task)
        assert planned.index is not None
        return RemadeShard(entry=planned.entry, index=planned.index, taken=0)
    source: GuardedSource | None = None if task.source is None else pickle.loads(task.source)
    entry, index = task.entry, task.index
    members = {stream for _, stream in index.members}
    offsets = index.offsets()
    found = _intact(task)
    number, payload = next(found, (-1, b""))
    taken = 0
    wrong: list[tuple[str, str]] = []
    with ShardWriter(
        task.stage, entry.path, compression=task.compression, index_path=entry.index
    ) as writer:
        for record in range(len(index)):
            if int(offsets[record]) in members:
                writer.end_member()
            key = index.key(record)
            digest = index.digests[record].tobytes()
            if record == number:
                writer.write(payload, digest=digest, key=key)
                taken += 1
                number, payload = next(found, (-1, b""))
                continue
            made = _made(task, source, key)
            if isinstance(made, str):
                wrong.append((key, made))
                continue
            new = record_digest(made)
            if new != digest:
                wrong.append((key, "its record came out differently"))
            writer.write(made, digest=new, key=key)
    written = writer.written
    assert written.index is not None
    key, reason = wrong[0] if wrong else ("", "")
    return RemadeShard(
        entry=ShardEntry.of(entry.path, written, split=entry.split, index=entry.index),
        index=FileEntry.of(entry.index, written.index),
        taken=taken,
        differ=len(wrong),
        first=key,
        reason=reason,
    )


def _made(task: RemakeTask, source: GuardedSource | None, key: str) -> bytes | str:
    """The record of an item, or the reason for its absence."""
    if source is None:
        return "the raw data are not available"
    item = task.items.get(key)
    if item is None:
        return "the raw data no longer have this item"
    made = make_payload(source, item)
    if isinstance(made, Skipped):
        return f"the source skips it now: {made.code} {safe(made.detail)}"
    return made


def _intact(task: RemakeTask) -> Iterator[tuple[int, bytes]]:
    """Intact records: number and payload, in order."""
    index, entry = task.index, task.entry
    events = scan(
        task.folder,
        entry.path,
        declared=task.compression,
        known_offsets=index.offsets(),
        members=index.members,
    )
    following = 0
    try:
        for event in events:
            if not isinstance(event, RecordBatch) or not event.whole:
                continue
            for number, payload in enumerate(event.payloads(), event.first):
                # Records that moved are made again: it is only work.
                here = following <= number < len(index)
                if here and record_digest(canonical(payload)) == index.digests[number].tobytes():
                    following = number + 1
                    yield number, payload
    except StorageError:
        return  # it is missing, or the disk fails: all the rest is made again


@dataclass(frozen=True, slots=True)
class Lost:
    """A shard to rebuild."""

    entry: ShardEntry
    index: Index | None
    """None also where it is lost."""


def make_again(
    lost: Sequence[Lost],
    manifest: Manifest,
    raw: RawData,
    *,
    folder: Readable,
    stage: Storage,
    engine: Engine,
    progress: Progress,
) -> list[RemadeShard]:
    """Make shards, and their indexes, in the stage."""
    if raw.problem is not None and any(each.index is None for each in lost):
        raise raw.problem
    known = [(each.entry, each.index) for each in lost if each.index is not None]
    wanted: dict[str, set[str]] = defaultdict(set)
    for entry, index in known:
        wanted[entry.split].update(index.keys())
    items = raw.items(wanted, {each.entry.split for each in lost if each.index is None})
    source = raw.source
    tasks: list[RemakeTask | BuildTask] = [
        RemakeTask(
            entry=entry,
            index=index,
            items=_items_of_index(items[entry.split], index),
            source=source,
            compression=manifest.compression,
            folder=folder,
            stage=stage,
        )
        for entry, index in known
    ]
    for each in lost:
        if each.index is None and source is not None:
            maker = Maker(stage, source, manifest.digest, manifest.compression)
            planned = _planned(each.entry, manifest, items[each.entry.split], raw.backup)
            tasks.append(BuildTask(maker, planned))
    try:
        made = engine.map(
            remake,
            tasks,
            cost=lambda _, shard: (shard.entry.records, shard.entry.bytes),
            label=f"repairing {manifest.dataset}",
            total=sum(each.entry.records for each in lost),
            progress=progress,
        )
    finally:
        close_source()
    remove_leftovers(stage)
    return made


def _items_of_index(items: Mapping[str, Item], index: Index) -> dict[str, Item]:
    return {key: items[key] for key in index.keys() if key in items}  # noqa: SIM118 - no mapping


def _planned(
    entry: ShardEntry, manifest: Manifest, items: Mapping[str, Item], backup: str
) -> PlannedShard:
    """The shard as the plan of the build had it: a build that grew is not planned like that."""
    if manifest.base is None and items:
        shards = sum(each.split == entry.split for each in manifest.shards)
        plan = make_plan(manifest.dataset, items.values(), ShardPolicy(shards=shards), {})
        for shard in plan.shards:
            if shard.path == entry.path:
                return shard
    raise RefusedError(
        f"the index of `{safe(entry.path)}` is lost, so the contents of the shard are unknown",
        hint=f"restore `{safe(entry.index)}` from {backup}: it is small",
    )
