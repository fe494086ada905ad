"""The files of a build or release, copied to a folder or sent to a store, the manifest last.

A file is verified in the store after it was sent. None there is replaced. One that has the bytes
already is kept, so a command that was interrupted goes on where it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from tfrecreg.core.plugins.exporters.interface import ExportedDataset
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.registry.history import copy_verified
from tfrecreg.core.registry.manifest.file import render_manifest
from tfrecreg.core.registry.manifest.model import MANIFEST_NAME, FileEntry, ShardEntry
from tfrecreg.core.storage.interface import Readable, Storage, Store
from tfrecreg.core.storage.remote.remote import open_store
from tfrecreg.core.storage.remote.urls import is_web, named_url
from tfrecreg.core.values.errors import RefusedError, StorageError, UsageError
from tfrecreg.core.values.progress import working
from tfrecreg.core.values.text import safe


@dataclass(frozen=True, slots=True)
class _FileToSend:
    """One file, for a worker to send. Picklable."""

    reference: str
    source: Readable
    store: Store
    entry: ShardEntry | FileEntry


def store_to_fill(url: str) -> Store:
    """The folder behind a URL."""
    url = named_url(url)
    if is_web(url):
        raise UsageError(
            f"`{safe(url, limit=1000)}` is on a web server, and files are sent to buckets only",
            hint="name the folder by the protocol of its store: `s3://bucket/folder`",
        )
    return open_store(url)


def copy_beside(dataset: ExportedDataset, folder: Storage) -> None:
    """Copy the files beside the shards to a folder that has the shards."""
    source, manifest = dataset.resolved.storage(), dataset.manifest
    for entry in manifest.files:
        copy_verified(source, folder, entry)
    with folder.create(MANIFEST_NAME) as writer:
        writer.write(render_manifest(manifest))


def send_files(dataset: ExportedDataset, store: Store) -> list[str]:
    """Send all files of a build or release; returns their paths, sorted."""
    source, manifest, progress = dataset.resolved.storage(), dataset.manifest, dataset.progress
    data = render_manifest(manifest)
    files: list[ShardEntry | FileEntry] = [*manifest.shards, *manifest.files]
    sizes = {MANIFEST_NAME: len(data), **{each.path: each.bytes for each in files}}
    _expect_nothing_else(store, sizes, dataset.reference)
    tasks = [_FileToSend(dataset.reference, source, store, each) for each in files]
    total = sum(each.records for each in manifest.shards)
    label = f"exporting {dataset.reference}"
    with working(progress, label, total), closing(dataset.engine.run(_send, tasks)) as sent:
        for task, _ in zip(tasks, sent, strict=True):
            records = task.entry.records if isinstance(task.entry, ShardEntry) else 0
            progress.advance(records, task.entry.bytes)
    if not store.put_if_absent(MANIFEST_NAME, data) and store.read(MANIFEST_NAME) != data:
        raise _taken(store, MANIFEST_NAME, dataset.reference)
    return sorted(sizes)


def _expect_nothing_else(store: Store, sizes: Mapping[str, int], reference: str) -> None:
    for found in store.list():
        if found.kind != "dir" and found.size != sizes.get(found.path):
            raise _taken(store, found.path, reference)


def _send(task: _FileToSend) -> None:
    """Send one file unless its bytes are there, in a worker."""
    path, wanted = task.entry.path, (task.entry.bytes, task.entry.blake3)
    place = f"{task.source.root}/{path}"
    if task.source.stat(path) is None or hash_file(task.source, path) != wanted:
        raise RefusedError(
            f"`{safe(path)}` is missing or not what `{task.reference}` has registered",
            hint=f"tfrecreg check {task.reference}",
        )
    is_new = task.store.stat(path) is None and task.store.put_file_if_absent(path, place)
    if hash_file(task.store, path, expected=task.entry.blake3) == wanted:
        return
    if not is_new:
        raise _taken(task.store, path, task.reference)
    raise StorageError(
        f"`{safe(f'{task.store.root}/{path}', limit=1000)}` has other bytes than were sent",
        hint="remove it, and run the command again",
    )


def _taken(store: Store, path: str, reference: str) -> UsageError:
    return UsageError(
        f"`{safe(f'{store.root}/{path}', limit=1000)}` exists, and is not of `{reference}`",
        hint="name an empty folder: an export never overwrites",
    )
