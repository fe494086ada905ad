"""The chain of a dataset's releases, and the comparison of files with a manifest."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

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

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

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
    """The link for a release's manifest."""
    release = manifest.release
    if release is None:
        raise ValueError("a build's manifest has no release")
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


Place = Callable[[str], tuple[Readable, str] | None]
"""Returns where a file of the build is stored: the storage, and the path in it. None if the file is
not stored.
"""

_MISSING = "is missing"
_THREADS = min(4, os.cpu_count() or 1)
"""Number of threads: blake3 releases the GIL, and a disk reads faster than one core hashes."""


@dataclass(frozen=True, slots=True)
class Altered:
    """A file that differs from the manifest."""

    path: str
    fault: str
    """What is wrong with the file, as the end of a sentence: ``"is missing"``."""
    refusal: StorageError | None = None


def below(storage: Readable) -> Place:
    """The :data:`Place` of a build whose files are all in one folder."""
    return lambda path: (storage, path)


def altered(manifest: Manifest, place: Place, progress: Progress = SILENT) -> Iterator[Altered]:
    """The files that differ from a manifest. Every byte is hashed."""
    from concurrent.futures import ThreadPoolExecutor

    entries = manifest.entries.values()
    with (
        ThreadPoolExecutor(_THREADS) as pool,
        # If a caller needs only the first fault, closing the generator cancels the pending work.
        closing(_faults(pool, entries, place)) as faults,
    ):
        for entry, fault in zip(entries, faults, strict=True):
            if isinstance(entry, ShardEntry):
                progress.advance(entry.records, entry.bytes)
            if fault is not None:
                yield fault
    fault = manifest_fault(manifest, place)
    if fault is not None:
        yield fault


def copy_verified(
    source: Readable, target: Storage, entry: ShardEntry | FileEntry, *, hint: str = ""
) -> None:
    """Copy a file of a build and verify it. If `target` has a file of this path and size, do
    nothing."""
    path = entry.path
    found = target.stat(path)
    if found is not None and found.size == entry.bytes:
        return
    with target.create(path) as writer:
        if hash_file(source, path, expected=entry.blake3, copy=writer)[1] != entry.blake3:
            shown = safe(source.root, limit=1000)
            raise RefusedError(
                f"`{safe(f'{source.root}/{path}', limit=1000)}` does not match its digest in the "
                "manifest",
                hint=hint or f"`tfrecreg check {shown}` names the damaged records",
            )


def expect_intact(
    manifest: Manifest,
    place: Place,
    *,
    what: str,
    hint: str = "",
    error: type[TfrecregError] = RefusedError,
    progress: Progress = SILENT,
) -> None:
    """Refuse files that differ from a manifest."""
    records = sum(entry.records for entry in manifest.shards)
    with working(progress, f"verifying {manifest.dataset}", records):
        first = next(altered(manifest, place, progress), None)
    if first is None:
        return
    if first.refusal is not None:
        raise first.refusal
    path = safe(first.path, limit=1000)
    raise error(f"{what} do not match the manifest: `{path}` {first.fault}", hint=hint)


def repair_hint(reference: str) -> str:
    """The hint for files that differ from the manifest."""
    return f"tfrecreg repair {reference}"


def _faults(
    pool: ThreadPoolExecutor, entries: Iterable[ShardEntry | FileEntry], place: Place
) -> Generator[Altered | None, None, None]:
    yield from pool.map(lambda entry: _fault(entry, place), entries)


def _fault(entry: ShardEntry | FileEntry, place: Place) -> Altered | None:
    found = place(entry.path)
    if found is None:
        return Altered(entry.path, _MISSING)
    storage, path = found
    try:
        size, digest = hash_file(storage, path, expected=entry.blake3)
    except MissingFileError:
        return Altered(entry.path, _MISSING)
    except StorageError as error:
        return Altered(entry.path, f"cannot be read: {error.message}", error)
    if size != entry.bytes:
        return Altered(entry.path, f"should have {entry.bytes} bytes, but it has {size}")
    return _unequal(entry.path, "blake3", entry.blake3, digest)


def manifest_fault(manifest: Manifest, place: Place) -> Altered | None:
    """The fault of the manifest beside the files of a build or release; None if it has no fault."""
    expected = manifest.digest if manifest.release is None else manifest.release.build
    found = place(MANIFEST_NAME)
    if found is None:
        return Altered(MANIFEST_NAME, _MISSING)
    storage, path = found
    try:
        digest = parse_manifest(storage.read(path), MANIFEST_NAME).digest
    except MissingFileError:
        return Altered(MANIFEST_NAME, _MISSING)
    except StorageError as error:
        return Altered(MANIFEST_NAME, f"cannot be read: {error.message}", error)
    except (ManifestError, NewerFormatError) as error:
        return Altered(MANIFEST_NAME, f"cannot be read: {error.message}")
    return _unequal(MANIFEST_NAME, "digest", expected, digest)


def _unequal(path: str, what: str, expected: str, found: str) -> Altered | None:
    if found == expected:
        return None
    return Altered(path, f"should have the {what} {expected[:16]}…, but it has {found[:16]}…")
