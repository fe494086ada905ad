"""Removes unreferenced files. Removes copies of releases that are complete in the DVC remote."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfrecreg.builtin.dvc import cache, cloud, dvc
from tfrecreg.builtin.dvc.transfer import dvc_folder
from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.indexes import CATALOGS, unreferenced
from tfrecreg.core.registry.manifest import MANIFEST_NAME, Manifest, parse_manifest
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.registry.transaction import Removal, removal
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.storage.writer import is_temporary
from tfrecreg.core.values.errors import ManifestError, NewerFormatError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import safe

_Kind = Literal["stage", "temporary", "version", "index", "dvc", "catalog"]

_WRITING = "a killed command was writing it"
_TREES = (layout.BUILDS, layout.DATASETS, layout.RELEASES, layout.VERSIONS, layout.REPORTS)
"""Folders in which a command writes a file under a temporary name and then renames it."""


@dataclass(frozen=True, slots=True)
class Unneeded:
    """Something that may be removed."""

    kind: _Kind
    path: str
    """Path relative to the registry; for objects in DVC's cache, the absolute path."""
    bytes: int
    why: str
    verified: int = 0
    """For a copy of a release, the number of its objects that were found in the remote."""


def gc(
    registry: Registry,
    *,
    apply: bool = False,
    remote: str | None = None,
    progress: Progress = SILENT,
) -> list[Unneeded]:
    """Find files that are no longer needed, and remove them if `apply` is set.

    - `stage`: files that killed commands left in the staging folder
    - `temporary`: partly written files of killed commands, in the registry or in DVC's cache
    - `version`: copies of releases that are complete in the DVC remote; the bytes in the remote are
      verified before a copy is removed
    - `index`: cached indexes that no manifest names
    - `catalog`: catalogs whose shard is in no manifest
    - `dvc`: objects of unreferenced builds in DVC's cache. A build is referenced if a release, a
      pointer or a pipeline names the build, in the working tree or in a branch, tag or stash. An
      object is also kept if a link in `data/` or `versions/` leads to the object. Objects of
      other data are kept. Nothing is removed from a cache outside the repository, because other
      repositories may use such a cache.

    The locks of all datasets and of DVC are held from the search to the removal, so that no other
    command changes this registry in between.
    """
    with removal(registry, progress) as change:
        manifests = list(_manifests(registry))
        in_cache = list(_in_cache(registry, manifests, remote, progress))
        doomed = [
            *_left_behind(registry),
            *_versions(registry, remote, content=apply, progress=progress),
            *_unnamed(registry, manifests),
        ]
        if apply:
            doomed = [each for each in doomed if _removed(change, each)]
            cache.remove_objects(Path(each.path) for each in in_cache)
    return doomed + in_cache


def _removed(change: Removal, doomed: Unneeded) -> bool:
    if doomed.kind == "version":
        return change.remove_copy(doomed.path)
    if doomed.kind == "temporary":
        return change.remove_temporary(doomed.path)
    change.remove(doomed.path)
    return True


def _manifests(registry: Registry) -> Iterator[Manifest]:
    """The manifests of all builds and releases here, and of the releases in all git refs."""
    for dataset in registry.datasets():
        build = dataset.build_manifest()
        if build is not None:
            yield build
        for version in dataset.versions:
            yield dataset.release_manifest(version)
    root = registry.storage.root
    for data in git.blobs_of_refs(root, layout.RELEASES, MANIFEST_NAME):
        try:
            yield parse_manifest(data, f"{layout.RELEASES}/…/{MANIFEST_NAME} in git")
        except (ManifestError, NewerFormatError) as error:
            error.hint = "gc removes nothing as long as it cannot read all manifests"
            raise


def _left_behind(registry: Registry) -> Iterator[Unneeded]:
    """All staged or partly written files. They are leftovers, because no command is running."""
    storage = registry.storage
    for entry in storage.list(layout.STAGE, recursive=False):
        size = entry.size if entry.kind == "file" else _size(storage, entry.path)
        yield Unneeded("stage", entry.path, size, "a killed command left it")
    schemas = {posixpath.dirname(each.schema_path) for each in registry.datasets()}
    listings = [storage.list(path, recursive=False) for path in sorted({"", *schemas})]
    listings += [storage.list(path) for path in (*_TREES, layout.STATE)]
    for listing in listings:
        for entry in listing:
            staged = entry.path.startswith(f"{layout.STAGE}/")
            if entry.kind == "file" and is_temporary(entry.path) and not staged:
                yield Unneeded("temporary", entry.path, entry.size, _WRITING)


def _size(storage: Readable, path: str) -> int:
    return sum(entry.size for entry in storage.list(path) if entry.kind == "file")


def _versions(
    registry: Registry, remote: str | None, *, content: bool, progress: Progress
) -> Iterator[Unneeded]:
    """Copies of each release that is complete in the DVC remote. Looks for every object there."""
    root = registry.storage.root
    copies: dict[str, cloud.Folder] = {}
    for dataset in registry.datasets():
        for version in dataset.versions:
            path = layout.version_folder(dataset.name, version)
            if registry.storage.stat(f"{path}/{MANIFEST_NAME}") is None:
                continue
            manifest = dataset.release_manifest(version)
            if manifest.release is not None and manifest.release.dvc:
                copies[path] = dvc_folder(dataset, manifest)
    if not copies or not dvc.usable(root):
        return
    faults = cloud.look_for(root, list(copies.values()), remote, content=content, progress=progress)
    for path, folder in sorted(copies.items()):
        fault = faults.get(folder.value)
        if fault is None:
            size = _size(registry.storage, path)
            yield Unneeded("version", path, size, "the DVC remote has it", len(folder.sizes) + 1)
        elif fault.what:
            progress.note(
                f"`{path}` is kept, because `{safe(fault.path)}` is damaged in the remote: "
                f"`tfrecreg push --repair {folder.name}` replaces the damaged file"
            )


def _unnamed(registry: Registry, manifests: list[Manifest]) -> Iterator[Unneeded]:
    """Indexes and catalogs that no manifest needs."""
    indexes = {layout.cached_index(entry.blake3) for each in manifests for entry in each.files}
    for entry in registry.storage.list(layout.INDEXES):
        if entry.kind == "file" and entry.path not in indexes:
            yield Unneeded("index", entry.path, entry.size, "no manifest names it")
    shards = {shard.blake3 for each in manifests for shard in each.shards}
    for entry in unreferenced(registry.storage.below(CATALOGS), shards):
        path = f"{CATALOGS}/{entry.path}"
        yield Unneeded("catalog", path, entry.size, "no manifest names its shard")


def _in_cache(
    registry: Registry, manifests: list[Manifest], remote: str | None, progress: Progress
) -> Iterator[Unneeded]:
    """Temporary files of killed commands in DVC's cache, and the cache's unreferenced objects."""
    root = registry.storage.root
    if not dvc.usable(root):
        return
    kept = {each.release.dvc for each in manifests if each.release and each.release.dvc}
    # DVC may have put links to its cache into builds without a release or a pointer.
    linked = {
        os.path.realpath(Path(root, entry.path))
        for folder in (layout.BUILDS, layout.VERSIONS)
        for entry in registry.storage.list(folder)
        if entry.kind == "link"
    }
    with dvc.opened(root, "dvc gc") as repo:
        folder = Path(repo.cache.local.path).resolve()
        is_own = Path(repo.root_dir).resolve() in folder.parents
        if is_own:
            temporary = cache.abandoned(repo)
            refs = git.commits_of_refs(root)
            stale = cache.stale(repo, kept, linked, refs, MANIFEST_NAME, remote)
    if not is_own:
        progress.note(
            f"nothing is removed from DVC's cache `{safe(str(folder), limit=1000)}`: it is outside "
            "this repository, so others may use it"
        )
        return
    for path in temporary:
        yield Unneeded("temporary", str(path), path.lstat().st_size, _WRITING)
    for path in stale:
        yield Unneeded("dvc", str(path), path.stat().st_size, "no release and no pointer")
