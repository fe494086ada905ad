"""Fetches the bytes of releases to this machine, and sends them to a DVC remote."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tfrecreg.builtin.dvc import cloud, dvc
from tfrecreg.builtin.dvc.cache import (
    DIR_SUFFIX,
    RemoteObjects,
    Verified,
    in_threads,
    remote_objects,
)
from tfrecreg.builtin.dvc.cloud import Folder, ObjectFault, Objects
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.absence import bring_command, expect_dataset, named_hash
from tfrecreg.core.registry.data import Release, open_release, resolve
from tfrecreg.core.registry.history import altered, manifest_fault
from tfrecreg.core.registry.manifest import MANIFEST_NAME, Manifest
from tfrecreg.core.registry.registry import Dataset, Registry, not_yanked
from tfrecreg.core.registry.transaction import transaction
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import (
    FailureError,
    MissingFileError,
    RefusedError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.progress import SILENT, Progress, working
from tfrecreg.core.values.reference import parse_reference, parse_version
from tfrecreg.core.values.text import ShortRepr, safe


def _release(registry: Registry, reference: str) -> Release:
    """The release named by a reference. The reference must have a selector."""
    found = resolve(registry, reference)
    assert isinstance(found, Release)  # a selector excludes builds
    return found


def dvc_folder(dataset: Dataset, manifest: Manifest) -> Folder:
    """The folder that DVC keeps for a release."""
    release = manifest.release
    assert release is not None
    name = f"{dataset}@{release.version}"
    if not release.dvc:
        raise UsageError(f"DVC does not keep `{name}`: it was released outside a DVC repository")
    sizes: dict[str, int | None] = {path: each.bytes for path, each in manifest.entries.items()}
    root = dataset.registry.storage.root
    copies = (
        layout.version_folder(dataset.name, parse_version(release.version)),
        layout.build_folder(dataset.name),
    )
    return Folder(
        name=name,
        value=release.dvc,
        sizes=sizes | {MANIFEST_NAME: None},
        copies=tuple(f"{root}/{folder}" for folder in copies),
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PushResult(ShortRepr):
    """Result of a push."""

    releases: tuple[str, ...]
    """The releases, such as ``mnist@1.0.0``, in order. The remote has all their objects now."""
    objects: int
    """Number of DVC objects that were sent. Objects that the remote already had do not count."""
    replaced: int = 0
    """Number of sent objects that replaced damaged ones."""
    verified: Verified = field(default_factory=Verified)
    """How many objects were verified in the remote."""


def push(
    registry: Registry,
    names: Sequence[str] = (),
    *,
    remote: str | None = None,
    verify: bool = False,
    repair: bool = False,
    progress: Progress = SILENT,
) -> PushResult:
    """Find which objects of releases are missing in a remote, and send them. Lists the remote
    before and afterwards, and compares sizes. Raises an error if objects are still missing or
    damaged at the end.

    Missing objects are taken from DVC's cache, from `data/` or from `versions/`. Each object is
    hashed before it is sent. The list of a folder is sent after the folder's files, because DVC
    takes the list as proof that the files are there.
    """
    releases = {each.name: each for each in _releases(registry, names)}
    folders = [dvc_folder(each.dataset, each.manifest) for each in releases.values()]
    progress.note(f"dvc push: {', '.join(releases)}")
    root = registry.storage.root
    with dvc.locked(root), dvc.opened(root, "dvc push") as repo:
        there, name = remote_objects(repo, remote, "push")
        objects = Objects(repo, there)
        unknown = [each for each in folders if not objects.add(each, heal=True)]
        sizes = objects.sizes
        faults = there.faults(sizes, content=verify or repair, progress=progress)
        wanted = [oid for oid, fault in faults.items() if repair or not fault]
        sources = _sources(objects, wanted, progress)
        files = {oid: path for oid, path in sources.items() if not oid.endswith(DIR_SUFFIX)}
        _put(there, files, faults, progress)
        left = faults.keys() - files.keys()
        lists = {
            oid: sources[oid]
            for oid in sources.keys() - files.keys()
            if left.isdisjoint(objects.lists[oid].values())
        }
        _put(there, lists, faults, progress)
    left -= lists.keys()
    found = [ObjectFault(each.name, "", "") for each in unknown]
    # A list that waits for its files is not missing.
    for oid in (oid for oid in left if faults[oid] or oid not in sources):
        found += objects.faults(oid, faults[oid])
    sent = len(files) + len(lists)
    if found:
        raise _incomplete(name, sent, found, repair=repair)
    return PushResult(
        releases=tuple(each.name for each in folders),
        objects=sent,
        replaced=sum(1 for oid in (*files, *lists) if faults[oid]),
        verified=there.verified,
    )


def _incomplete(
    remote: str, sent: int, left: Sequence[ObjectFault], *, repair: bool
) -> TfrecregError:
    """The error for objects that are still missing or damaged in a remote."""
    # The missing ones, which this machine cannot supply, come first.
    first = min(left, key=lambda each: (bool(each.what), each.name, each.path))
    alike = sum(bool(each.what) == bool(first.what) for each in left)
    more = f" and {alike - 1} more" if alike > 1 else ""
    others = f"all others were sent ({sent})" if sent else "nothing was sent"
    if not first.what:
        lacks = f"the remote `{remote}` lacks {first}{more}"
        return first.lost(f"{lacks}, and this machine has no intact copy, so {others}")
    message = f"the remote `{remote}` has {first} damaged{more}: it {first.what}; {others}"
    if not repair:
        return RefusedError(message, hint=f"tfrecreg push --repair {first.name}")
    return first.lost(f"{message}, and this machine has no intact copy to replace it")


def _sources(objects: Objects, oids: Sequence[str], progress: Progress) -> dict[str, str]:
    """For each object that this machine has, the path of a local file with its bytes."""
    found = {}
    with working(progress, "hashing", len(oids), "objects"):
        for oid, path in in_threads(objects.source, oids):
            progress.advance(1, objects.sizes[oid] or 0)
            if path is not None:
                found[oid] = path
    return found


def _put(
    there: RemoteObjects, sources: Mapping[str, str], faults: Mapping[str, str], progress: Progress
) -> None:
    """Send objects and verify that they arrived. Read back objects that replaced damaged ones."""
    if not sources:
        return
    with working(progress, "sending", len(sources), "objects"):
        for oid, _ in in_threads(lambda each: there.put(each, sources[each]), sources):
            progress.advance(1, Path(sources[oid]).stat().st_size)
    for replaced in (False, True):
        sizes = {
            oid: Path(path).stat().st_size
            for oid, path in sources.items()
            if bool(faults[oid]) == replaced
        }
        wrong = there.faults(sizes, content=replaced, progress=progress) if sizes else {}
        for oid, fault in wrong.items():
            raise FailureError(
                f"the remote did not store what was sent: its object `{oid}` "
                f"{fault or 'is missing'}"
            )


def _releases(registry: Registry, names: Sequence[str]) -> list[Release]:
    if not names:
        every = (each for dataset in registry.datasets() for each in _all_of(dataset))
        kept = [each for each in every if _in_dvc(each)]
        if not kept:
            raise UsageError("no release is stored in DVC")
        return kept
    found: list[Release] = []
    for name in names:
        if "@" in name or "#" in name:
            found.append(_release(registry, name))
            continue
        expect_dataset(registry.dataset(name))
        releases = _all_of(registry.dataset(name))
        if not releases:
            raise UsageError(f"`{name}` has no release")
        found += releases
    return found


def _all_of(dataset: Dataset) -> list[Release]:
    return [open_release(dataset, version) for version in dataset.versions]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PullResult(ShortRepr):
    """Where the bytes of a release are after a pull."""

    name: str
    """``mnist@1.0.0``."""
    folder: str
    """Folder of the release, relative to the registry."""
    files: int
    """Number of files fetched; 0 if all were present."""
    bytes: int
    verified: int = 0
    """Number of files that were hashed and compared with the release."""
    fetched: int = 0
    """Number of objects that came from the DVC remote."""


def pull(
    registry: Registry, reference: str, *, remote: str | None = None, progress: Progress = SILENT
) -> PullResult:
    """Fetch the bytes of a release to this machine.

    They are copied from DVC's cache. Objects that are missing there or damaged are fetched first.
    DVC does not verify its cache, so each file is hashed while it is copied.
    """
    named = parse_reference(reference)
    if named.selector is None:
        dataset = registry.dataset(named.name)
        expect_dataset(dataset)
        if not dataset.versions:
            command = bring_command(registry.storage.root, layout.build_folder(dataset.name))
            hint = command or f"tfrecreg release {dataset} makes one"
            raise UsageError(f"`{dataset}` has no release to pull", hint=hint)
        reference = f"{reference}@latest"
    release = _release(registry, reference)
    target = layout.version_folder(release.dataset.name, release.version)
    if release.folder is not None and release.proven:
        target = release.folder
    return _pull(release, target, remote, progress)


def pull_needed(
    registry: Registry, *, remote: str | None = None, progress: Progress = SILENT
) -> list[PullResult]:
    """Fetch the data that the working tree needs: builds that are missing on this machine, and for
    each dataset the newest release that is not yanked.

    A build is fetched into `data/` if DVC's pointer to it, or `dvc.lock`, names a release.
    """
    results = []
    for dataset in registry.datasets():
        build = _missing_build(dataset)
        if build is not None:
            folder = layout.build_folder(dataset.name)
            results.append(_pull(build, folder, remote, progress))
        for version in not_yanked(dataset)[-1:]:
            newest = open_release(dataset, version)
            if _in_dvc(newest) is not None and (build is None or build.version != version):
                results.append(pull(registry, newest.name, remote=remote, progress=progress))
    return results


def _missing_build(dataset: Dataset) -> Release | None:
    """Find the release of a missing build, by the hash in DVC's pointer or in `dvc.lock`. None if
    the folder of the build exists, or if no release has this hash.
    """
    storage, folder = dataset.registry.storage, layout.build_folder(dataset.name)
    if storage.stat(folder) is not None:
        return None
    value = named_hash(storage.root, folder)
    if not value:
        return None
    found = (open_release(dataset, version) for version in reversed(dataset.versions))
    return next((each for each in found if _in_dvc(each) == value), None)


def _in_dvc(release: Release) -> str | None:
    """DVC's hash of a release; None if DVC does not keep it."""
    return release.manifest.release.dvc if release.manifest.release is not None else None


def _pull(release: Release, target: str, remote: str | None, progress: Progress) -> PullResult:
    """Fetch a release into a folder of the registry, unless it is already there."""
    files = release.manifest.entries
    result = PullResult(name=release.name, folder=target, files=0, bytes=0, verified=len(files) + 1)
    if _is_here(release, target, progress):
        return result
    dvc_folder(release.dataset, release.manifest)  # raises before anything is done
    with transaction(release.dataset, progress) as change, change.stage("pull") as staged:
        fetched = _take_from_dvc(release, staged, remote, progress)
        change.carry_over(target, staged, release.manifest)
        change.replace(target, staged, release.manifest)
    size = sum(each.bytes for each in files.values())
    return replace(result, files=len(files) + 1, bytes=size, fetched=fetched)


def _is_here(release: Release, folder: str, progress: Progress) -> bool:
    """Whether a folder has all files of a release, unchanged."""
    if release.folder != folder or not release.proven:
        return False
    with working(progress, f"verifying {release.name}", 0):
        first = next(altered(release.manifest, release.storage(), progress), None)
    if first is not None:
        progress.note(
            f"`{folder}/{safe(first.path)}` {first.fault}: fetching the whole release again"
        )
    return first is None


def _take_from_dvc(
    release: Release, staged: Storage, remote: str | None, progress: Progress
) -> int:
    """Copy a release from DVC's cache or remote. Returns how many objects came from the remote."""
    root, name, files = release.registry.storage.root, release.name, release.manifest.entries
    # From the fetch to the copy: the objects must stay in DVC's cache.
    with dvc.locked(root, partial(progress.note, "waiting for DVC")):
        progress.note(f"dvc fetch: {name}")
        with working(progress, f"bringing {name}", 0):
            paths = [*files, MANIFEST_NAME]
            fetched = obtain(release.dataset, release.manifest, paths, staged, remote, progress)
    if fetched.lost:
        first = max(fetched.lost, key=lambda each: bool(each.what))
        more = f" and {len(fetched.lost) - 1} more" if len(fetched.lost) > 1 else ""
        fault = f"{first} is damaged in the remote" if first.what else f"the remote lacks {first}"
        raise first.lost(f"{fault}{more}, and this machine has no intact copy")
    for path in files:
        if staged.stat(path) is None:
            raise RefusedError(f"DVC's folder for `{name}` has no `{path}`")
    return fetched.objects


def obtain(
    dataset: Dataset,
    manifest: Manifest,
    paths: Collection[str],
    staged: Storage,
    remote: str | None,
    progress: Progress,
    *,
    required: bool = True,
) -> cloud.Fetched:
    """Copy files of a release from DVC, and hash them.

    DVC's cache gets missing files from other copies on this machine and from the remote. A cached
    object with the wrong bytes is fetched again. The caller must hold DVC's lock.
    """
    root, folder = dataset.registry.storage.root, dvc_folder(dataset, manifest)
    found = cloud.fetch(root, folder, remote, paths, required=required)
    wrong = _copy_all(manifest, found, staged, progress)
    if wrong:
        again = cloud.fetch(root, folder, remote, wrong, distrusted=wrong, required=required)
        for path in _copy_all(manifest, again, staged, progress):
            raise RefusedError(
                f"every copy of `{path}` in DVC differs from the release `{folder.name}`"
            )
        found.objects += again.objects
        found.lost += again.lost
    return found


def _copy_all(
    manifest: Manifest, found: cloud.Fetched, staged: Storage, progress: Progress
) -> list[str]:
    """Copy objects from the cache. Returns the paths whose bytes do not match the release, and
    removes these files.
    """
    expected = manifest.entries
    wrong = []
    for path, cached in found.files.items():
        source, digest = Path(cached), ""
        with suppress(MissingFileError), staged.create(path) as writer:
            digest = hash_file(LocalStorage(source.parent), source.name, copy=writer)[1]
        if path == MANIFEST_NAME:
            sound = manifest_fault(manifest, staged) is None
        else:
            sound = digest == expected[path].blake3
            progress.advance(0, expected[path].bytes)
        if not sound:
            staged.remove(path)
            wrong.append(path)
    return wrong
