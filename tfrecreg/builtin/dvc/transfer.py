"""The bytes of releases, fetched to this machine and sent to a DVC remote."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tfrecreg.builtin.dvc import cloud, dvc
from tfrecreg.builtin.dvc.cache import Verified
from tfrecreg.builtin.dvc.cloud import Folder, ObjectFault
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.absence import bring_command, expect_dataset, named_hash
from tfrecreg.core.registry.history import altered, below, manifest_fault, repair_hint
from tfrecreg.core.registry.lookup import Release, open_release, resolve
from tfrecreg.core.registry.manifest import MANIFEST_NAME, Manifest
from tfrecreg.core.registry.registry import Dataset, Registry, not_yanked
from tfrecreg.core.registry.transaction import transaction
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.writer import is_temporary
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


def release_of(registry: Registry, reference: str) -> Release:
    """The release that a reference with a selector names."""
    found = resolve(registry, reference)
    assert isinstance(found, Release)  # a reference with a selector names no build
    return found


def dvc_folder(dataset: Dataset, manifest: Manifest) -> Folder:
    """The folder of a release as DVC keeps it."""
    release = manifest.release
    assert release is not None
    name = f"{dataset}@{release.version}"
    if not release.dvc:
        raise UsageError(
            f"DVC does not keep `{name}`: it was released outside a DVC repository",
            hint="`dvc init`, then release it under a new number",
        )
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
    """``mnist@1.0.0``, in order. Each object of them was found in the remote by this push."""
    objects: int
    """Number of DVC objects sent; objects that the remote already had are not counted."""
    replaced: int = 0
    """Number of the sent objects that took the place of damaged ones."""
    verified: Verified = field(default_factory=Verified)
    """The objects that were verified in the remote."""


def push(
    registry: Registry,
    names: Sequence[str] = (),
    *,
    remote: str | None = None,
    verify: bool = False,
    repair: bool = False,
    progress: Progress = SILENT,
) -> PushResult:
    """Send releases to a remote.

    Each object is looked for in the remote, and its size compared. Missing ones are sent from DVC's
    cache, `data/` or `versions/`, after their bytes were hashed.
    """
    found = {each.name: each for each in _releases(registry, names)}
    folders = [dvc_folder(each.dataset, each.manifest) for each in found.values()]
    progress.note(f"dvc push: {', '.join(found)}")
    sent = cloud.send(
        registry.storage.root, folders, remote, verify=verify, repair=repair, progress=progress
    )
    if sent.lost or sent.damaged:
        raise _incomplete(sent, {each.name: each for each in folders}, repair=repair)
    return PushResult(
        releases=tuple(found),
        objects=sent.objects,
        replaced=sent.replaced,
        verified=sent.verified,
    )


def _incomplete(
    sent: cloud.Sent, folders: dict[str, cloud.Folder], *, repair: bool
) -> TfrecregError:
    """The error for objects that the remote still lacks, or has damaged."""
    others = f"all others were sent ({sent.objects})" if sent.objects else "nothing was sent"
    remote = safe(sent.remote)
    if sent.lost:
        first = sent.lost[0]
        return FailureError(
            f"the remote `{remote}` lacks {_fault_text(first)}{_more(sent.lost)}, and this machine "
            f"has no sound copy, so {others}",
            hint=_elsewhere(first, folders, "push"),
        )
    first = sent.damaged[0]
    message = (
        f"the remote `{remote}` has {_fault_text(first)} damaged: it {first.what}"
        f"{_more(sent.damaged)}; {others}"
    )
    if not repair:
        return RefusedError(message, hint=f"tfrecreg push --repair {first.name}")
    return RefusedError(
        f"{message}, and this machine has no sound copy to replace it",
        hint=_elsewhere(first, folders, "push --repair"),
    )


def _fault_text(fault: ObjectFault) -> str:
    if not fault.path:
        return f"DVC's list of the files of `{safe(fault.name)}`"
    return f"`{safe(fault.path)}` of `{safe(fault.name)}`"


def _more(faults: Sequence[ObjectFault]) -> str:
    return f" and {len(faults) - 1} more" if len(faults) > 1 else ""


def _elsewhere(fault: ObjectFault, folders: dict[str, cloud.Folder], command: str) -> str:
    there = f"on a machine that has it: `tfrecreg {command} {fault.name}`"
    if fault.path and fault.path not in folders[fault.name].sizes:
        return f"{there}; no manifest names this file, so that nothing rebuilds it"
    return f"`{repair_hint(fault.name)}` rebuilds it here; or {there}"


def _releases(registry: Registry, names: Sequence[str]) -> list[Release]:
    if not names:
        every = [each for dataset in registry.datasets() for each in _all_of(dataset)]
        kept = [each for each in every if each.manifest.release and each.manifest.release.dvc]
        if not kept:
            raise UsageError(
                "no release is stored in DVC", hint="tfrecreg release NAME, in a DVC repository"
            )
        return kept
    found: list[Release] = []
    for name in names:
        if "@" in name or "#" in name:
            found.append(release_of(registry, name))
            continue
        expect_dataset(registry.dataset(name))
        releases = _all_of(registry.dataset(name))
        if not releases:
            raise UsageError(f"`{name}` has no release", hint=f"tfrecreg release {name}")
        found += releases
    return found


def _all_of(dataset: Dataset) -> list[Release]:
    return [open_release(dataset, version) for version in dataset.versions]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PullResult(ShortRepr):
    """The place of a release's bytes after a pull."""

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

    They are taken from DVC's cache, and fetched into it where they are missing or damaged. DVC does
    not verify its cache; here each file is hashed while it is copied.
    """
    named = parse_reference(reference)
    if named.selector is None:
        _expect_release(registry.dataset(named.name))
        reference = f"{reference}@latest"
    release = release_of(registry, reference)
    target = layout.version_folder(release.dataset.name, release.version)
    if release.folder is not None and release.proven:
        target = release.folder
    return _pull(release, target, remote, progress)


def pull_needed(
    registry: Registry, *, remote: str | None = None, progress: Progress = SILENT
) -> list[PullResult]:
    """Fetch the data that the working tree needs: builds that are not on this machine, and the
    newest release of each dataset that is not yanked.

    A build is fetched into `data/` if DVC's pointer to it or `dvc.lock` names a release.
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
    """The release that a build is by DVC's pointer or lock file, where its folder is not there."""
    storage, folder = dataset.registry.storage, layout.build_folder(dataset.name)
    if storage.stat(folder) is not None:
        return None
    value = named_hash(storage.root, folder)
    if not value:
        return None
    found = (open_release(dataset, version) for version in reversed(dataset.versions))
    return next((each for each in found if _in_dvc(each) == value), None)


def _in_dvc(release: Release) -> str | None:
    """DVC's hash of a release, None if DVC does not keep it."""
    return release.manifest.release.dvc if release.manifest.release is not None else None


def _pull(release: Release, target: str, remote: str | None, progress: Progress) -> PullResult:
    """Fetch a release into a folder of the registry, if it is not there."""
    registry, files = release.registry, release.manifest.entries
    result = PullResult(name=release.name, folder=target, files=0, bytes=0, verified=len(files) + 1)
    if _is_here(release, target, progress):
        return result
    dvc_folder(release.dataset, release.manifest)  # refused before anything is done
    with transaction(release.dataset, progress) as change, change.stage("pull") as staged:
        fetched = _take_from_dvc(release, staged, remote, progress)
        _keep_strays(registry.storage, target, staged)
        change.replace(target, staged, release.manifest)
    size = sum(each.bytes for each in files.values())
    return replace(result, files=len(files) + 1, bytes=size, fetched=fetched)


def _take_from_dvc(
    release: Release, staged: Storage, remote: str | None, progress: Progress
) -> int:
    """Copy a release from DVC's cache or remote; the number of objects that the remote gave."""
    root, files = release.registry.storage.root, release.manifest.entries
    # From fetching to copying: it must stay in DVC's cache.
    with dvc.locked(root, partial(progress.note, "waiting for DVC")):
        progress.note(f"dvc fetch: {release.name}")
        with working(progress, f"bringing {release.name}", 0):
            paths = [*files, MANIFEST_NAME]
            fetched = obtain(release.dataset, release.manifest, paths, staged, remote, progress)
    if fetched.lost:
        raise _unobtainable(release, fetched.lost)
    for path in files:
        if staged.stat(path) is None:
            raise RefusedError(
                f"the folder that DVC keeps of `{release.name}` has no `{safe(path)}`",
                hint="the manifest was changed: `tfrecreg audit` has the details",
            )
    return fetched.objects


def _expect_release(dataset: Dataset) -> None:
    """Refuse a dataset without a release, with the command that fetches its build."""
    expect_dataset(dataset)
    if dataset.versions:
        return
    name = dataset.name
    command = bring_command(dataset.registry.storage.root, layout.build_folder(name))
    raise UsageError(
        f"`{name}` has no release to pull", hint=command or f"tfrecreg release {name} makes one"
    )


def _keep_strays(storage: Readable, folder: str, staged: Storage) -> None:
    """Copy files that no manifest lists: they are not ours to remove."""
    for entry in list(storage.list(folder)):
        path = entry.path.removeprefix(f"{folder}/")
        if entry.kind == "file" and staged.stat(path) is None and not is_temporary(path):
            staged.link(entry.path, path, origin=storage)


def _is_here(release: Release, folder: str, progress: Progress) -> bool:
    """Whether a folder has all of a release, as it was released."""
    if release.folder != folder or not release.proven:
        return False
    with working(progress, f"verifying {release.name}", 0):
        first = next(altered(release.manifest, below(release.storage()), progress), None)
    if first is not None:
        progress.note(f"`{folder}/{safe(first.path)}` {first.fault}: fetching all of it again")
    return first is None


def obtain(
    dataset: Dataset,
    manifest: Manifest,
    paths: Collection[str],
    staged: Storage,
    remote: str | None,
    progress: Progress,
    *,
    required: bool = True,
) -> FetchedFiles:
    """Copy files of a release from DVC, and hash them.

    They come from DVC's cache, and into it from other copies on this machine and from the remote.
    An object of the cache with other bytes than it should have is fetched again. A caller holds
    DVC's lock.
    """
    root = dataset.registry.storage.root
    folder = dvc_folder(dataset, manifest)
    found = cloud.fetch(root, folder, remote, paths, required=required)
    wrong = _copy_all(manifest, found, staged, progress)
    if not wrong:
        return FetchedFiles(found.objects, found.lost)
    again = cloud.fetch(root, folder, remote, wrong, distrusted=wrong, required=required)
    for path in _copy_all(manifest, again, staged, progress):
        raise RefusedError(
            f"`{safe(path)}` of `{folder.name}` differs from the release, and DVC keeps it so",
            hint=f"the manifest was changed: `tfrecreg audit {dataset}` has the details",
        )
    return FetchedFiles(found.objects + again.objects, (*found.lost, *again.lost))


@dataclass(frozen=True, slots=True)
class FetchedFiles:
    """Result of :func:`obtain`."""

    objects: int
    """Number of objects that came from the remote."""
    lost: tuple[cloud.ObjectFault, ...]
    """Files that neither this machine nor the remote has; an empty path means all."""


def _unobtainable(release: Release, lost: Sequence[cloud.ObjectFault]) -> TfrecregError:
    """The error for files that neither this machine nor the remote has."""
    name, first = release.name, lost[0]
    what = f"`{safe(first.path)}`" if first.path else "DVC's list of the files"
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    rebuild = f"`{repair_hint(name)}` rebuilds it here"
    there = "or on a machine that has it: `tfrecreg push"
    if any(each.what for each in lost):
        first = next(each for each in lost if each.what)
        return RefusedError(
            f"`{safe(first.path)}` of `{name}` is damaged in the remote{more}, and this machine "
            "has no sound copy",
            hint=f"{rebuild}; {there} --repair {name}`",
        )
    return FailureError(
        f"the remote lacks {what} of `{name}`{more}, and this machine has no sound copy",
        hint=f"{rebuild}; {there} {name}`",
    )


def _copy_all(
    manifest: Manifest, found: cloud.Fetched, staged: Storage, progress: Progress
) -> list[str]:
    """Copy objects of the cache; those that have other bytes than the release."""
    expected = manifest.entries
    wrong = []
    for path, cached in found.files.items():
        digest = _copy(cached, path, staged)
        if path == MANIFEST_NAME:
            sound = manifest_fault(manifest, below(staged)) is None
        else:
            sound = digest == expected[path].blake3
            progress.advance(0, expected[path].bytes)
        if not sound:
            wrong.append(path)
    return wrong


def _copy(cached: str, path: str, staged: Storage) -> str:
    """Copy a file out of the cache, and return its blake3; empty text if it is not there."""
    source = Path(cached)
    try:
        with staged.create(path) as writer:
            return hash_file(LocalStorage(source.parent), source.name, copy=writer)[1]
    except MissingFileError:
        return ""
