"""Rebuilds shards from their indexes, their sound records and the raw data."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfrecreg.core.build.request import BuildRequest, Prepared, prepare
from tfrecreg.core.build.shard import close_source, make_payload
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.build.sources.interface import Item, Skipped
from tfrecreg.core.build.state import remove_leftovers
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.gzip_writer import Compression
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import Index
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.registry.data import Resolved
from tfrecreg.core.registry.manifest import (
    BUILD_AGAIN,
    FileEntry,
    Manifest,
    ShardEntry,
    is_adopted,
    is_python_data,
)
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
from tfrecreg.core.workers.interface import Engine


def _open_raw(
    resolved: Resolved, manifest: Manifest, raw: str | None, backup: str
) -> Prepared | TfrecregError:
    """The source of a build with its raw data, or the error that says why these are not available.
    The caller raises the error only if it needs the raw data.
    """
    name = resolved.name
    if is_python_data(manifest) or is_adopted(manifest) or not manifest.source.name:
        return UsageError(
            f"no source can make the records of `{manifest.dataset}` again",
            hint=f"restore the files from {backup}, or save the undamaged records with "
            f"`tfrecreg salvage`; for the data of a program, {BUILD_AGAIN}",
        )
    options = dict(manifest.source.options)
    if manifest.parents:  # the versions that a reference such as `street@2.*` named then
        options["inputs"] = ",".join(each.reference for each in manifest.parents)
    request = BuildRequest(
        name=manifest.dataset,
        source=manifest.source.plugin,
        raw=raw,
        options=options,
        compression=manifest.compression,
    )
    try:
        return prepare(resolved.registry, request)
    except UntrustedPluginError:
        raise
    except UsageError as error:
        error.hint = (
            f"name the raw data: tfrecreg repair {name} --raw PATH; without them, `{name}` cannot "
            f"be repaired here, but only restored from {backup}"
        )
        return error
    except PluginError as error:
        return error


@dataclass(frozen=True, slots=True, kw_only=True)
class RemakeTask:
    """Everything that a worker needs to rebuild one shard. Picklable."""

    entry: ShardEntry
    """The shard's entry in the manifest."""
    index: Index
    items: Mapping[str, Item]
    """The items that the raw data still have, by key."""
    source: bytes | None
    """The pickled source; None if the raw data are not available."""
    compression: Compression
    folder: Readable
    """The folder of the damaged shard, which may be missing."""
    stage: Storage
    """The unfinished folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemadeShard:
    """A rebuilt shard."""

    entry: ShardEntry
    """The rebuilt shard."""
    index: FileEntry
    """The entry of the index."""
    taken: int
    """Number of records kept from the damaged shard."""
    first: str = ""
    """The key of the first record that is missing or differs, and the reason; else empty."""

    @property
    def made(self) -> int:
        """Number of records made from the raw data."""
        return self.entry.records - self.taken


def remake(task: RemakeTask) -> RemadeShard:
    """Rebuild the shard, record by record.

    The caller compares the result with the original's digest.
    """
    source: GuardedSource | None = None if task.source is None else pickle.loads(task.source)
    entry, index = task.entry, task.index
    members = {stream for _, stream in index.members}
    offsets = index.offsets()
    found = _intact(task)
    number, payload = next(found, (-1, b""))
    taken = 0
    first = ""
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
                first = first or f"`{key}`: {made}"
                continue
            new = record_digest(made)
            if new != digest:
                first = first or f"`{key}`: its item now gives a different record"
            writer.write(made, digest=new, key=key)
    written = writer.written
    assert written.index is not None
    return RemadeShard(
        entry=ShardEntry.of(entry.path, written, split=entry.split, index=entry.index),
        index=FileEntry.of(entry.index, written.index),
        taken=taken,
        first=first,
    )


def _made(task: RemakeTask, source: GuardedSource | None, key: str) -> bytes | str:
    """The record of an item, or the reason why it cannot be made."""
    if source is None:
        return "the raw data are not available"
    item = task.items.get(key)
    if item is None:
        return "the raw data no longer have this item"
    made = make_payload(source, item)
    if isinstance(made, Skipped):
        return f"the source now skips its item: {made.code} {made.detail}"
    return made


def _intact(task: RemakeTask) -> Iterator[tuple[int, bytes]]:
    """Number and payload of each intact record, in order."""
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
                # Records at another number are rebuilt, which costs only time.
                here = following <= number < len(index)
                if here and record_digest(canonical(payload)) == index.digests[number].tobytes():
                    following = number + 1
                    yield number, payload
    except StorageError:
        return  # the shard is missing or unreadable: the rest is rebuilt


def make_again(
    resolved: Resolved,
    manifest: Manifest,
    lost: Sequence[tuple[ShardEntry, Index]],
    raw: str | None,
    backup: str,
    *,
    folder: Readable,
    stage: Storage,
    engine: Engine,
    progress: Progress,
) -> list[RemadeShard]:
    """Rebuild shards and their indexes in the stage, with the original bytes."""
    if not lost:
        return []
    opened = _open_raw(resolved, manifest, raw, backup)
    problem = opened if isinstance(opened, TfrecregError) else None
    source = None
    items: dict[tuple[str, str], Item] = {}
    if not isinstance(opened, TfrecregError):
        source = pickle.dumps(opened.source)
        wanted = {(entry.split, key) for entry, index in lost for key in set(index.keys())}
        for item in opened.source.items():
            if isinstance(item, Item) and (item.split, item.key) in wanted:
                items[item.split, item.key] = item
    tasks = [
        RemakeTask(
            entry=entry,
            index=index,
            items={
                key: items[entry.split, key]
                for key in set(index.keys())
                if (entry.split, key) in items
            },
            source=source,
            compression=manifest.compression,
            folder=folder,
            stage=stage,
        )
        for entry, index in lost
    ]
    try:
        made = engine.map(
            remake,
            tasks,
            cost=lambda _, shard: (shard.entry.records, shard.entry.bytes),
            label=f"repairing {manifest.dataset}",
            total=sum(entry.records for entry, _ in lost),
            progress=progress,
        )
    finally:
        close_source()
    remove_leftovers(stage)
    then = manifest.entries
    wrong = [
        each
        for each in made
        if each.entry.blake3 != then[each.entry.path].blake3
        or each.index.blake3 != then[each.index.path].blake3
    ]
    if wrong:
        raise problem or _refusal(resolved.name, manifest, wrong, backup)
    return made


def _refusal(
    name: str, manifest: Manifest, wrong: Sequence[RemadeShard], backup: str
) -> RefusedError:
    """The error for shards that were rebuilt with different bytes."""
    first = wrong[0]
    why = f"; its first wrong record is {first.first}" if first.first else ""
    made = f"{manifest.source.distribution} {manifest.source.version}"
    codecs = [f"{codec} {version}" for codec, version in sorted(manifest.codecs.items())]
    return RefusedError(
        f"`{name}` cannot be repaired, and nothing was changed: the rebuilt "
        f"`{first.entry.path}` has other bytes{why}",
        hint=f"it was made from {manifest.raw.files:,} raw files with "
        f"{', '.join((made, *codecs))}: restore these files and versions, or the shards from "
        f"{backup}",
    )
