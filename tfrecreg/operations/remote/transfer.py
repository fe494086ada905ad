"""The bytes of releases to a DVC remote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from blake3 import blake3

from tfrecreg.errors import MissingFileError, RefusedError, UsageError
from tfrecreg.manifest import MANIFEST_NAME, Manifest, parse_manifest
from tfrecreg.operations.url_copy import copy_verified
from tfrecreg.progress import SILENT, Progress
from tfrecreg.reference import parse_reference
from tfrecreg.registry import (
    Dataset,
    Registry,
    Release,
    expect_dataset,
    layout,
    open_release,
    resolve,
)
from tfrecreg.registry.transaction import transaction
from tfrecreg.registry.verify import altered, below, expect_intact
from tfrecreg.storage import LocalStorage, Storage, is_temporary
from tfrecreg.storage.locations import storage_at
from tfrecreg.storage.remote import reading_ahead
from tfrecreg.text import safe
from tfrecreg.tracking import cloud, dvc
from tfrecreg.tracking.pointers import bring_command


@dataclass(frozen=True, slots=True, kw_only=True)
class PushResult:
    """Result of a push."""

    releases: tuple[str, ...]
    """``mnist@1.0.0``, in order."""
    objects: int
    """Number of DVC objects sent; objects that the remote already had are not counted."""
    stored: int = 0
    """Number of releases whose bytes are in a bucket, so that there is nothing to send."""


def push(
    registry: Registry,
    names: Sequence[str] = (),
    *,
    remote: str | None = None,
    progress: Progress = SILENT,
) -> PushResult:
    """Send releases to a remote.

    Args:
        registry: where they are.
        names: references to releases, or datasets, which stand for all their releases; empty for
            all there are.
        remote: DVC's name of it; None for its default one.
        progress: updated during the push.

    Raises:
        UsageError: no such release, none that DVC keeps, or no such remote.
        FailureError: DVC refused.
    """
    found = {each.name: each for each in _releases(registry, names)}
    stored = {name: each.location for name, each in found.items()}
    for name, url in stored.items():
        if url is not None:
            progress.note(f"nothing to push of {name}: its bytes are in {safe(url, limit=1000)}")
    kept = [name for name, url in stored.items() if url is None]
    hashes = [kept_hash(found[name]) for name in kept]
    sent = 0
    if hashes:
        progress.note(f"dvc push: {', '.join(kept)}")
        sent = cloud.send(registry.storage.root, hashes, remote)
    return PushResult(releases=tuple(kept), objects=sent, stored=len(found) - len(kept))


def _releases(registry: Registry, names: Sequence[str]) -> list[Release]:
    if not names:
        every = [each for dataset in registry.datasets() for each in _all_of(dataset)]
        kept = [
            each
            for each in every
            if (each.manifest.release and each.manifest.release.dvc) or each.location is not None
        ]
        if not kept:
            raise UsageError(
                "no release is stored in DVC",
                hint="tfrecreg release NAME, in a DVC repository",
            )
        return kept
    found: list[Release] = []
    for name in names:
        if "@" in name or "#" in name:
            found.append(_release(registry, name))
            continue
        expect_dataset(registry.dataset(name))
        releases = _all_of(registry.dataset(name))
        if not releases:
            raise UsageError(f"`{name}` has no release", hint=f"tfrecreg release {name}")
        found += releases
    return found


def _all_of(dataset: Dataset) -> list[Release]:
    return [open_release(dataset, version) for version in dataset.versions()]


def _release(registry: Registry, reference: str) -> Release:
    found = resolve(registry, reference)
    assert isinstance(found, Release)  # a reference with a selector names no build
    return found


def kept_hash(release: Release) -> str:
    """DVC's hash of a release's folder.

    Raises:
        UsageError: DVC does not keep it.
    """
    frozen = release.manifest.release
    if frozen is None or not frozen.dvc:
        raise UsageError(
            f"DVC does not keep `{release.name}`: it was released outside a DVC repository",
            hint="`dvc init`, then release it under a new number",
        )
    return frozen.dvc


_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PullResult:
    """Where a release's bytes are."""

    name: str
    """``mnist@1.0.0``."""
    folder: str
    """Folder of the release, relative to the registry."""
    files: int
    """Number of files fetched; 0 if all were present."""
    bytes: int


def pull(
    registry: Registry, reference: str, *, remote: str | None = None, progress: Progress = SILENT
) -> PullResult:
    """Fetch the bytes of a release to this machine.

    Those of a release in a bucket are copied from there. Others are taken from DVC's cache, and
    fetched into it where they are missing. DVC does not look at what its cache holds; here each
    file is hashed while it is copied.

    Args:
        registry: where the release is.
        reference: of a release; the name of a dataset stands for its latest one.
        remote: DVC's name of it; None for its default one.
        progress: updated with the bytes.

    Raises:
        UsageError: no such release, DVC does not keep it, or no such remote.
        RefusedError: the bytes in DVC differ from the release. Nothing is put in its place.
        FailureError: DVC or the disk failed.
    """
    named = parse_reference(reference)
    if named.selector is None:
        _expect_release(registry.dataset(named.name))
        reference = f"{reference}@latest"
    release = _release(registry, reference)
    url = release.location
    if url is not None:
        return _pull_stored(release, url, progress)
    folder = _here(release, progress)
    if folder is not None:
        return PullResult(name=release.name, folder=folder, files=0, bytes=0)
    value = kept_hash(release)
    with (
        transaction(release.dataset, progress) as change,
        # From fetching to copying: it must not be removed from DVC's cache meanwhile.
        dvc.locked(registry.storage.root, partial(progress.note, "waiting for DVC")),
        change.stage("pull") as staged,
    ):
        progress.note(f"dvc fetch: {release.name}")
        held = {
            each.path: each.cached for each in cloud.fetch(registry.storage.root, value, remote)
        }
        target = layout.version_folder(release.dataset.name, release.version)
        if release.folder is not None and release.proven:
            target = release.folder  # it is damaged
        progress.start(f"bringing {release.name}", 0)
        try:
            size = _bring(release, held, staged, progress)
        finally:
            progress.stop()
        _keep_strays(registry.storage, target, staged)
        change.replace(target, staged, release.manifest)
    return PullResult(
        name=release.name, folder=target, files=len(_expected(release.manifest)) + 1, bytes=size
    )


def _pull_stored(release: Release, url: str, progress: Progress) -> PullResult:
    """Copy a release from a bucket to `versions/`, unless a sound copy is there.

    Raises:
        RefusedError: the bytes in the bucket are not those that were released.
        StorageError: they cannot be read.
    """
    target = layout.version_folder(release.dataset.name, release.version)
    storage = release.registry.storage
    with transaction(release.dataset, progress) as change, change.stage("pull") as staged:
        local = storage.below(target)
        if local.stat(MANIFEST_NAME) is not None:
            progress.start(f"verifying {release.name}", 0)
            try:
                first = next(altered(release.manifest, below(local), progress), None)
            finally:
                progress.stop()
            if first is None:
                return PullResult(name=release.name, folder=target, files=0, bytes=0)
            progress.note(f"`{target}/{safe(first.path)}` {first.fault}: fetching all of it again")
        expected = _expected(release.manifest)
        progress.start(f"bringing {release.name}", 0)
        try:
            remote = storage_at(url)
            with reading_ahead(remote, remote.list(), expected):
                for path, (size, digest) in expected.items():
                    copy_verified(remote, staged, path, size, digest)
                    progress.advance(0, size)
            with staged.create(MANIFEST_NAME) as writer:
                writer.write(remote.read(MANIFEST_NAME))
        finally:
            progress.stop()
        expect_intact(
            release.manifest,
            below(staged),
            what=f"the files of `{release.name}` in `{safe(url, limit=1000)}`",
            hint=f"`tfrecreg check {safe(url, limit=1000)}` names the damaged records",
            progress=progress,
        )
        _keep_strays(storage, target, staged)
        change.replace(target, staged, release.manifest, verified=True)
    total = sum(size for size, _ in expected.values())
    return PullResult(name=release.name, folder=target, files=len(expected) + 1, bytes=total)


def _expect_release(dataset: Dataset) -> None:
    """Refuse a dataset without a release, with the command that fetches its build.

    Raises:
        UsageError: it has none.
    """
    expect_dataset(dataset)
    if dataset.versions():
        return
    name = dataset.name
    command = bring_command(dataset.registry.storage.root, layout.build_folder(name))
    raise UsageError(
        f"`{name}` has no release to pull", hint=command or f"tfrecreg release {name} makes one"
    )


def _keep_strays(storage: Storage, folder: str, staged: Storage) -> None:
    """Copy files that no manifest lists: they are not ours to remove."""
    for entry in list(storage.list(folder)):
        path = entry.path.removeprefix(f"{folder}/")
        if entry.kind == "file" and staged.stat(path) is None and not is_temporary(path):
            staged.link(entry.path, path, origin=storage)


def _here(release: Release, progress: Progress) -> str | None:
    """The folder of the bytes, if all of them are present and as released."""
    if release.folder is None or not release.proven:
        return None
    progress.start(f"verifying {release.name}", 0)
    try:
        first = next(altered(release.manifest, below(release.storage()), progress), None)
    finally:
        progress.stop()
    if first is None:
        return release.folder
    progress.note(f"`{release.folder}/{safe(first.path)}` {first.fault}: fetching all of it again")
    return None


def _expected(manifest: Manifest) -> dict[str, tuple[int, str]]:
    """Each file but the manifest, with its bytes and its blake3."""
    shards = {entry.path: (entry.bytes, entry.blake3) for entry in manifest.shards}
    return shards | {entry.path: (entry.bytes, entry.blake3) for entry in manifest.files}


def _bring(release: Release, held: dict[str, str], staged: Storage, progress: Progress) -> int:
    total = 0
    for path, (_, digest) in _expected(release.manifest).items():
        found, size = _copy(release, held, path, staged)
        if found != digest:
            raise _other(release, path, held[path], digest, found)
        progress.advance(0, size)
        total += size
    _copy(release, held, MANIFEST_NAME, staged)
    frozen = release.manifest.release
    assert frozen is not None
    manifest = parse_manifest(staged.read(MANIFEST_NAME), MANIFEST_NAME)
    if manifest.digest != frozen.build:
        raise _other(release, MANIFEST_NAME, held[MANIFEST_NAME], frozen.build, manifest.digest)
    return total


def _copy(release: Release, held: dict[str, str], path: str, staged: Storage) -> tuple[str, int]:
    """Copy a file out of the cache; its blake3 and its bytes."""
    if path not in held:
        raise RefusedError(
            f"the folder that DVC keeps of `{release.name}` has no `{safe(path)}`",
            hint="the manifest was changed: `tfrecreg check --registry` has the details",
        )
    source = Path(held[path])
    cache = LocalStorage(source.parent)
    hasher = blake3()
    done = 0
    try:
        with cache.open(source.name) as reader, staged.create(path) as writer:
            while piece := reader.read_at(done, _CHUNK):
                hasher.update(piece)
                writer.write(piece)
                done += len(piece)
    except MissingFileError:
        raise RefusedError(
            f"`{safe(path)}` of `{release.name}` is missing from DVC's cache", hint="pull again"
        ) from None
    return hasher.hexdigest(), done


def _other(release: Release, path: str, cached: str, expected: str, found: str) -> RefusedError:
    return RefusedError(
        f"`{safe(path)}` of `{release.name}` differs from the release: its blake3 should be "
        f"{expected[:16]}…, in DVC's cache it is {found[:16]}…",
        hint=f"remove the damaged `{safe(cached)}` and pull again; if it is the same then, the "
        "remote is damaged",
    )
