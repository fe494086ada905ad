"""Finds, fetches and verifies folders in DVC's remotes. A folder is identified by its hash.

DVC's hash of a folder, ``<md5>.dir``, names an object that lists the folder's files with their
hashes. DVC verifies neither its cache nor a remote, so each call looks for every object in the
remote, and hashes every object that it fetches.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tfrecreg.builtin.dvc.cache import (
    RemoteObjects,
    has_object,
    in_threads,
    md5_of,
    remote_names,
    remote_objects,
)
from tfrecreg.builtin.dvc.dvc import cached_list, files_in, is_object, opened
from tfrecreg.core.registry.history import repair_hint
from tfrecreg.core.values.errors import FailureError, RefusedError, TfrecregError
from tfrecreg.core.values.progress import SILENT, Progress


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder in DVC, and what the manifest says about its files."""

    name: str
    """The name in messages: ``mnist@1.0.0``."""
    value: str
    """DVC's hash of the folder."""
    sizes: Mapping[str, int | None]
    """Size in bytes for each path in the folder; None if unknown. Omits files that a user added."""
    copies: tuple[str, ...] = ()
    """Absolute paths of local folders that may contain its files."""


class ObjectFault(NamedTuple):
    """A missing or damaged object, and the file in a folder that needs this object."""

    name: str
    """The name of the folder: ``mnist@1.0.0``."""
    path: str
    """Path of a file in the folder; empty if the object is the folder's list of files."""
    what: str
    """The fault of the remote object, such as "is damaged"; empty if the object is missing."""

    def __str__(self) -> str:
        if not self.path:
            return f"DVC's list of the files of `{self.name}`"
        return f"`{self.path}` of `{self.name}`"

    def lost(self, message: str) -> TfrecregError:
        """The error for an object without an intact copy on this machine or in the remote."""
        kind, command = (RefusedError, "push --repair") if self.what else (FailureError, "push")
        hint = (
            f"`{repair_hint(self.name)}` rebuilds it here; `tfrecreg {command} {self.name}` "
            "sends it from a machine that has it"
        )
        return kind(message, hint=hint)


@dataclass(slots=True, kw_only=True)
class Fetched:
    """Files of a folder that are in DVC's cache."""

    files: dict[str, str] = field(default_factory=dict)
    """For each path in the folder, the absolute path of its object in the cache."""
    objects: int = 0
    """Number of objects that came from the remote."""
    lost: tuple[ObjectFault, ...] = ()
    """Files that neither this machine nor the remote has. An empty path means all files."""


def fetch(
    root: str,
    folder: Folder,
    remote: str | None,
    paths: Collection[str],
    *,
    distrusted: Collection[str] = (),
    required: bool = True,
) -> Fetched:
    """Ensure that files of a folder are in the cache.

    Missing files come from copies of the folder on this machine or from the remote. The caller must
    hold DVC's lock until it has used the files.
    """
    with opened(root, "dvc fetch") as repo:
        objects = Objects(repo, None)
        lacking = set[str]()
        if known := objects.add(folder, heal=True):
            lacking = objects.lacking(folder, paths, distrusted)
            if not lacking:
                return Fetched(files=objects.places(folder, paths))
        there = remote_objects(repo, remote, "fetch")[0] if required or remote_names(repo) else None
        objects.there = there
        if not known:
            if there is None or not objects.add(folder, heal=True):
                return Fetched(lost=(ObjectFault(folder.name, "", ""),))
            lacking = objects.lacking(folder, paths)
        listed = sorted(there.listed(lacking)) if there is not None else []
        got = dict(in_threads(objects.take, listed))
        faults = {oid: "is damaged" if oid in got else "" for oid in lacking if not got.get(oid)}
    lost = (each for oid, what in faults.items() for each in objects.faults(oid, what))
    return Fetched(
        files=objects.places(folder, paths, faults),
        objects=sum(got.values()),
        lost=tuple(sorted(lost, key=lambda each: each.path)),
    )


def look_for(
    root: str,
    folders: Sequence[Folder],
    remote: str | None,
    *,
    content: bool,
    progress: Progress = SILENT,
) -> dict[str, ObjectFault]:
    """Find the first fault of each folder in the remote. The result maps the hash of a folder to
    the fault. If the result omits a folder, the remote has all objects of this folder. Changes
    nothing.
    """
    with opened(root, "dvc status --cloud") as repo:
        if not remote_names(repo):
            return {each.value: ObjectFault(each.name, "", "") for each in folders}
        there, _ = remote_objects(repo, remote, "status")
        objects = Objects(repo, there)
        unknown = [each for each in folders if not objects.add(each, heal=False)]
        found = there.faults(objects.sizes, content=content, progress=progress)
    faults = {each.value: ObjectFault(each.name, "", "") for each in unknown}
    for folder in folders:
        files = objects.lists.get(folder.value, {})
        for path in folder.sizes.keys() - files.keys():
            faults.setdefault(folder.value, ObjectFault(folder.name, path, ""))
        for path, oid in {"": folder.value, **files}.items():
            if oid in found:
                faults.setdefault(folder.value, ObjectFault(folder.name, path, found[oid]))
    return faults


class Objects:
    """The objects of folders. For each object, finds local copies, and the files that use it."""

    def __init__(self, repo: Any, there: RemoteObjects | None) -> None:
        self._cache = repo.cache.local
        self.there = there
        self.lists: dict[str, dict[str, str]] = {}
        """Maps the hash of each folder to a map from file paths to objects."""
        self.sizes: dict[str, int | None] = {}
        """Size in bytes by object; None if unknown."""
        self._uses: dict[str, list[tuple[Folder, str]]] = defaultdict(list)

    def add(self, folder: Folder, *, heal: bool) -> bool:
        """Find the list of a folder. Returns whether it was found."""
        value = folder.value
        data = self._list(folder, heal=heal)
        if data is None:
            return False
        files = files_in(data)
        self.lists[value] = files
        self.sizes[value] = len(data)
        self._uses[value].append((folder, ""))
        for path, oid in files.items():
            known = folder.sizes.get(path)
            self.sizes[oid] = self.sizes.get(oid) if known is None else known
            self._uses[oid].append((folder, path))
        return True

    def places(
        self, folder: Folder, paths: Collection[str], without: Collection[str] = ()
    ) -> dict[str, str]:
        """For each file of a folder, its path in the cache. Objects in `without` are left out."""
        return {
            path: self._cache.oid_to_path(oid)
            for path, oid in self.lists[folder.value].items()
            if path in paths and oid not in without
        }

    def lacking(
        self, folder: Folder, paths: Collection[str], distrusted: Collection[str] = ()
    ) -> set[str]:
        """Fill the cache with objects found on this machine. Returns the objects still missing."""
        files = self.lists[folder.value].items()
        wanted = {oid for path, oid in files if path in paths}
        trusted = wanted - {oid for path, oid in files if path in distrusted}
        wanted -= {oid for oid in trusted if self.cached(oid)}
        return {oid for oid in wanted if not self.take_copy(oid)}

    def faults(self, oid: str, what: str) -> list[ObjectFault]:
        """A fault for each file that uses an object."""
        return [ObjectFault(folder.name, path, what) for folder, path in self._uses[oid]]

    def cached(self, oid: str) -> bool:
        """Whether the cache has an object: one of the right size or, if the size is unknown, with
        the right hash.
        """
        path, size = Path(self._cache.oid_to_path(oid)), self.sizes[oid]
        if size is None:
            return has_object(str(path), oid)
        return _may_be(path, size)

    def source(self, oid: str) -> str | None:
        """The path of a local file with exactly the bytes of an object; None if there is no such
        file.
        """
        places = (self._cache.oid_to_path(oid), *self._copies(oid))
        return next((path for path in places if has_object(path, oid)), None)

    def take_copy(self, oid: str) -> bool:
        """Put an intact copy of an object into the cache; False if this machine has none."""
        found = next((path for path in self._copies(oid) if has_object(path, oid)), None)
        if found is None:
            return False
        return self._keep(oid, lambda path: has_object(shutil.copyfile(found, path), oid))

    def take(self, oid: str) -> bool:
        """Fetch an object into the cache; False if the remote has no intact object."""
        assert self.there is not None
        there = self.there
        return self._keep(oid, lambda temporary: there.get(oid, temporary))

    def _copies(self, oid: str) -> list[str]:
        return [
            str(Path(copy, path))
            for folder, path in self._uses[oid]
            if path
            for copy in folder.copies
        ]

    def _list(self, folder: Folder, *, heal: bool) -> bytes | None:
        value = folder.value
        if data := cached_list(self._cache, value):
            return data
        found = self.there.read_list(value) if self.there is not None else None
        found = found or _list_of_copy(folder)
        if found is not None and heal:
            self._keep(value, lambda temporary: bool(Path(temporary).write_bytes(found)))
        return found

    def _keep(self, oid: str, fill: Callable[[str], bool]) -> bool:
        """Put an object into the cache. Replaces a damaged one."""
        target = Path(self._cache.oid_to_path(oid))
        self._cache.makedirs(str(target.parent))
        # Named like DVC's own temporary files.
        temporary = target.with_name(f".{secrets.token_urlsafe(16)}.tmp")
        try:
            if not fill(str(temporary)):
                return False
            self._cache.protect(str(temporary))
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        return True


def _list_of_copy(folder: Folder) -> bytes | None:
    """The list of a folder, computed from a complete local copy; None if there is no such copy."""
    for copy in folder.copies:
        files = {path: Path(copy, path) for path in folder.sizes}
        if all(_may_be(files[path], size) for path, size in folder.sizes.items()):
            listed = [{"md5": md5_of(files[path]), "relpath": path} for path in sorted(files)]
            data = json.dumps(listed, sort_keys=True).encode()
            if is_object(data, folder.value):
                return data
    return None


def _may_be(path: Path, size: int | None) -> bool:
    return path.is_file() and size in (None, path.stat().st_size)
