"""The chain of a dataset's releases, and the comparison of files with a manifest."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.registry.manifest import (
    MANIFEST_NAME,
    FileEntry,
    Manifest,
    ShardEntry,
    parse_manifest,
)
from tfrecreg.core.registry.registry import Dataset
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.values.errors import (
    ManifestError,
    MissingFileError,
    NewerFormatError,
    RefusedError,
    StorageError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.findings import Code, Location
from tfrecreg.core.values.progress import SILENT, Progress, working
from tfrecreg.core.values.reference import Version, parse_version
from tfrecreg.core.values.text import safe

RANK: Mapping[str, int] = {"initial": 0, "patch": 1, "minor": 2, "major": 3}


@dataclass(frozen=True, slots=True)
class Link:
    """One release in the chain of a dataset's releases."""

    version: Version
    digest: str
    content: str
    parent: Version | None
    parent_digest: str
    """Digest of the parent's manifest as recorded in this release; empty without a parent."""
    level: Literal["initial", "patch", "minor", "major"]
    build: str = ""
    dvc: str | None = None


def link_of(manifest: Manifest) -> Link:
    release = manifest.release
    assert release is not None
    parent = release.parent
    return Link(
        version=parse_version(release.version),
        digest=manifest.digest,
        content=manifest.content,
        parent=parse_version(parent.version) if parent is not None else None,
        parent_digest=parent.digest if parent is not None else "",
        level=release.change.level,
        build=release.build,
        dvc=release.dvc,
    )


def step(before: Version, after: Version) -> Literal["patch", "minor", "major"]:
    """The level of change between two version numbers."""
    if after.major != before.major:
        return "major"
    return "minor" if after.minor != before.minor else "patch"


def links_of(dataset: Dataset) -> dict[Version, Link]:
    """The links of all releases with a valid manifest, by version."""
    found = {}
    for version in dataset.versions:
        with suppress(UsageError, MissingFileError):
            found[version] = link_of(dataset.release_manifest(version))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """A fault of one or several releases."""

    code: Code
    versions: frozenset[Version]
    path: str
    """The file or folder with the fault, relative to the registry."""
    message: str
    command: str = ""
    places: tuple[Location, ...] = ()
    """All files whose faults have the same cause; empty if `path` is the only one."""


_THREADS = min(4, os.cpu_count() or 1)
"""Number of threads: blake3 releases the GIL, and a disk reads faster than one core hashes."""


@dataclass(frozen=True, slots=True)
class Altered:
    path: str
    fault: str
    """What is wrong with the file, as the end of a sentence: ``"is missing"``."""
    refusal: StorageError | None = None


def altered(
    manifest: Manifest,
    storage: Readable,
    progress: Progress = SILENT,
    places: Mapping[str, str] | None = None,
) -> Iterator[Altered]:
    """The files in `storage` that differ from a manifest. Every byte is hashed.

    `places` maps paths in the manifest to paths in `storage`. Missing files are not in `places`.
    Without `places`, the paths in `storage` are those in the manifest.
    """
    from concurrent.futures import ThreadPoolExecutor

    entries = manifest.entries.values()
    found = (each.path if places is None else places.get(each.path) for each in entries)
    pool = ThreadPoolExecutor(_THREADS)
    try:
        faults = pool.map(lambda *each: _fault(storage, *each), entries, found)
        for entry, fault in zip(entries, faults, strict=True):
            if isinstance(entry, ShardEntry):
                progress.advance(entry.records, entry.bytes)
            if fault is not None:
                yield fault
    finally:
        # If a caller needs only the first fault, the pending work is cancelled.
        pool.shutdown(cancel_futures=True)
    path = MANIFEST_NAME if places is None else places.get(MANIFEST_NAME)
    fault = manifest_fault(manifest, storage, path)
    if fault is not None:
        yield fault


def copy_verified(source: Readable, target: Storage, entry: FileEntry) -> None:
    """Copy a file of a build and verify it, unless `target` has a file of this path and size."""
    path = entry.path
    found = target.stat(path)
    if found is not None and found.size == entry.bytes:
        return
    with target.create(path) as writer:
        if hash_file(source, path, expected=entry.blake3, copy=writer)[1] != entry.blake3:
            root = safe(source.root, limit=1000)
            raise RefusedError(
                f"`{root}/{safe(path, limit=1000)}` does not match its digest in the manifest",
                hint=f"`tfrecreg check {root}` names the damaged records",
            )


def expect_intact(
    manifest: Manifest,
    storage: Readable,
    *,
    what: str,
    hint: str = "",
    error: type[TfrecregError] = RefusedError,
    progress: Progress = SILENT,
    places: Mapping[str, str] | None = None,
) -> None:
    """Refuse files in `storage` that differ from a manifest; `places` as in :func:`altered`."""
    records = sum(entry.records for entry in manifest.shards)
    with working(progress, f"verifying {manifest.dataset}", records):
        first = next(altered(manifest, storage, progress, places), None)
    if first is None:
        return
    if first.refusal is not None:
        raise first.refusal
    path = safe(first.path, limit=1000)
    raise error(f"{what} do not match the manifest: `{path}` {first.fault}", hint=hint)


def repair_hint(reference: str) -> str:
    return f"tfrecreg repair {reference}"


def _fault(storage: Readable, entry: FileEntry, path: str | None) -> Altered | None:
    with _reported(entry.path) as faults:
        size, digest, _ = hash_file(storage, _stored(path), expected=entry.blake3)
        if size != entry.bytes:
            return Altered(entry.path, f"should have {entry.bytes} bytes, but it has {size}")
        return _unequal(entry.path, "blake3", entry.blake3, digest)
    return faults[0]


def manifest_fault(
    manifest: Manifest, storage: Readable, path: str | None = MANIFEST_NAME
) -> Altered | None:
    """The fault of the manifest next to the files of a build or release; None if it is sound."""
    expected = manifest.digest if manifest.release is None else manifest.release.build
    with _reported(MANIFEST_NAME) as faults:
        digest = parse_manifest(storage.read(_stored(path)), MANIFEST_NAME).digest
        return _unequal(MANIFEST_NAME, "digest", expected, digest)
    return faults[0]


@contextmanager
def _reported(path: str) -> Iterator[list[Altered]]:
    """A list of faults, to which errors in the ``with`` block are added."""
    faults: list[Altered] = []
    try:
        yield faults
    except MissingFileError:
        faults.append(Altered(path, "is missing"))
    except (StorageError, ManifestError, NewerFormatError) as error:
        refusal = error if isinstance(error, StorageError) else None
        faults.append(Altered(path, f"cannot be read: {error.message}", refusal))


def _stored(path: str | None) -> str:
    if path is None:
        raise MissingFileError("the file is not stored")
    return path


def _unequal(path: str, what: str, expected: str, found: str) -> Altered | None:
    if found == expected:
        return None
    return Altered(path, f"should have the {what} {expected[:16]}…, but it has {found[:16]}…")
