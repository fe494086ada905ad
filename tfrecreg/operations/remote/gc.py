"""What may go from this machine: what nothing refers to, and what is safe elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tfrecreg.errors import ManifestError, NewerFormatError
from tfrecreg.manifest import MANIFEST_NAME, Manifest, parse_manifest
from tfrecreg.operations.progress import SILENT, Progress
from tfrecreg.reference import parse_version
from tfrecreg.registry import Registry, layout
from tfrecreg.registry.lock import locked
from tfrecreg.storage import Storage
from tfrecreg.tracking import cloud, dvc, git

__all__ = ["Doomed", "gc"]

Kind = Literal["stage", "version", "index", "dvc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doomed:
    """Something that may go."""

    kind: Kind
    path: str
    """In the registry; of DVC's cache the absolute path of the object."""
    bytes: int
    why: str


def gc(
    registry: Registry,
    *,
    apply: bool = False,
    remote: str | None = None,
    progress: Progress = SILENT,
) -> list[Doomed]:
    """Find what may go, and remove it if told to.

    - `stage`: what killed commands left behind
    - `version`: a copy of a release that the DVC remote has as well
    - `index`: kept indexes that no manifest names
    - `dvc`: objects of DVC's cache that belong to builds which nothing refers to: no release in
      any branch, tag or stash, no pointer, no pipeline. What is not ours is left alone.

    Args:
        registry: where to look.
        apply: False only lists.
        remote: which DVC remote a copy has to be in; None for the default one.
        progress: told what is looked at.

    Raises:
        FailureError: git or DVC refused, so nobody knows what is referred to; nothing was removed.
        ManifestError: a manifest is damaged: what it refers to is not known either.
    """
    manifests = list(_manifests(registry))
    doomed = [
        *_stage(registry, progress, apply=False),
        *_versions(registry, remote),
        *_indexes(registry, manifests),
    ]
    objects = _objects(registry, manifests)
    doomed += [
        Doomed(kind="dvc", path=each.cached, bytes=each.bytes, why="no release and no pointer")
        for each in objects
    ]
    if apply:
        list(_stage(registry, progress, apply=True))
        for each in doomed:
            if each.kind in ("version", "index"):
                registry.storage.remove(each.path)
        cloud.remove(objects)
    return doomed


def _manifests(registry: Registry) -> Iterator[Manifest]:
    """Those of all builds and releases that are here, and of every release in any ref."""
    for name in registry.datasets():
        build = registry.build_manifest(name)
        if build is not None:
            yield build
        for version in registry.versions(name):
            yield registry.release_manifest(name, version)
    root = registry.storage.root
    for data in git.blobs_of_refs(root, layout.RELEASES, MANIFEST_NAME):
        try:
            yield parse_manifest(data, f"{layout.RELEASES}/…/{MANIFEST_NAME} in git")
        except (ManifestError, NewerFormatError) as error:
            error.hint = "gc removes nothing while it cannot tell what is referred to"
            raise


def _stage(registry: Registry, progress: Progress, *, apply: bool) -> Iterator[Doomed]:
    """Whatever lies in the stage of a dataset that no command is working on."""
    storage = registry.storage
    for entry in list(storage.list(layout.STAGE, recursive=False)):
        name = entry.path.rpartition("/")[2]
        dataset = _dataset_of(registry, name)
        # Who works on a dataset holds its lock: then this waits until that is done.
        with locked(registry, dataset, lambda: progress.note("waiting for another command")):
            if storage.stat(entry.path) is None:
                continue
            size = _size(storage, entry.path)
            if apply:
                storage.remove(entry.path)
            yield Doomed(kind="stage", path=entry.path, bytes=size, why="a killed command left it")


def _dataset_of(registry: Registry, name: str) -> str:
    """The dataset whose lock guards a folder of the stage."""
    if "-" not in name:
        return name
    known = [
        each
        for each in registry.datasets()
        if name.startswith((f"release-{each}-", f"versions-{each}-"))
    ]
    return max(known, key=len, default=name.split("-")[1])


def _size(storage: Storage, path: str) -> int:
    return sum(entry.size for entry in storage.list(path) if entry.kind == "file")


def _versions(registry: Registry, remote: str | None) -> Iterator[Doomed]:
    """Copies of releases, whose bytes are in DVC's remote as well."""
    root = registry.storage.root
    copies: dict[str, str] = {}
    for entry in registry.storage.list(layout.VERSIONS):
        parts = entry.path.split("/")
        if len(parts) != 4 or parts[3] != MANIFEST_NAME:
            continue
        _, name, number, _ = parts
        if parse_version(number) not in registry.versions(name):
            continue
        release = registry.release_manifest(name, parse_version(number)).release
        if release is not None and release.dvc:
            copies["/".join(parts[:3])] = release.dvc
    if not copies or not _tracked(root) or not cloud.remotes(root):
        return
    lacking = cloud.missing(root, sorted(set(copies.values())), remote)
    for path, value in sorted(copies.items()):
        if value not in lacking:
            size = _size(registry.storage, path)
            yield Doomed(kind="version", path=path, bytes=size, why="the DVC remote has it")


def _indexes(registry: Registry, manifests: list[Manifest]) -> Iterator[Doomed]:
    named = {layout.cached_index(entry.blake3) for each in manifests for entry in each.files}
    for entry in registry.storage.list(layout.INDEXES):
        if entry.kind == "file" and entry.path not in named:
            yield Doomed(
                kind="index", path=entry.path, bytes=entry.size, why="no manifest names it"
            )


def _objects(registry: Registry, manifests: list[Manifest]) -> list[cloud.Stale]:
    root = registry.storage.root
    if not _tracked(root):
        return []
    kept = [each.release.dvc for each in manifests if each.release and each.release.dvc]
    return cloud.stale(root, kept, git.commits_of_refs(root), MANIFEST_NAME)


def _tracked(root: str) -> bool:
    return dvc.available() and dvc.initialised(root)
