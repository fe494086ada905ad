"""Looks for objects in the file system of a DVC remote, and for unused files in DVC's cache.

DVC keeps an index of the objects in a remote. If the list of a folder is in the index, DVC assumes
that the remote has all files of that folder. This module neither reads nor writes that index. One
listing covers all objects whose hashes begin with the same two digits.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from tfrecreg.builtin.dvc.dvc import cached_list, digest_of, files_in, is_object
from tfrecreg.core.values.errors import FailureError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress, working

DIR_SUFFIX = ".dir"
"""Suffix of the hash of a folder. Its object lists the files of the folder."""

_CHUNK = 1 << 20
_LIST_LIMIT = 1 << 28
"""Maximum number of bytes to read from the list of a folder."""
_THREADS = 16
_MD5 = re.compile(r'"?([0-9a-f]{32})"?')
_T = TypeVar("_T")


class RemoteObject(NamedTuple):
    """An object that a listing of a remote contains."""

    size: int | None
    """Size in bytes; None if the store does not state it."""
    md5: str | None
    """The checksum that the store states, if it looks like an MD5. It may not match the bytes."""


@dataclass(frozen=True, slots=True)
class Verified:
    """How many objects of a remote were verified."""

    listed: int = 0
    """Number of objects that were looked up in listings."""
    checksums: int = 0
    """Number of objects whose checksum in the store was compared."""
    read: int = 0
    """Number of objects that were read."""
    bytes: int = 0
    """Size of the objects that were read."""


class RemoteObjects:
    """The objects of a remote."""

    def __init__(self, odb: Any) -> None:
        self._odb = odb
        self._fs = odb.fs
        self._listed: set[str] = set()
        self._checksums: set[str] = set()
        self._read: dict[str, int] = {}

    @property
    def verified(self) -> Verified:
        """How many objects were verified so far."""
        return Verified(
            listed=len(self._listed),
            checksums=len(self._checksums),
            read=len(self._read),
            bytes=sum(self._read.values()),
        )

    def listed(self, oids: Collection[str]) -> dict[str, RemoteObject]:
        """The subset of `oids` that exists in the remote. Each call asks the remote again."""
        if hasattr(self._fs.fs, "invalidate_cache"):
            self._fs.fs.invalidate_cache()
        wanted = set(oids)
        self._listed |= wanted
        if not self._fs.CAN_TRAVERSE:  # a web server: one request for each object
            infos = in_threads(self._info, sorted(wanted))
            return {oid: found for oid, found in infos if found is not None}
        prefixes: dict[str, set[str]] = defaultdict(set)
        for oid in wanted:
            prefixes[oid[:2]].add(oid)
        found: dict[str, RemoteObject] = {}
        for prefix, some in in_threads(self._list, list(prefixes)):
            found.update((oid, some[oid]) for oid in prefixes[prefix] & some.keys())
        return found

    def _list(self, prefix: str) -> dict[str, RemoteObject]:
        try:
            infos = self._fs.ls(self._fs.join(self._odb.path, prefix), detail=True)
        except FileNotFoundError:
            return {}
        files = (each for each in infos if each.get("type") != "directory")
        return {prefix + self._fs.name(each["name"]): _listed(each) for each in files}

    def _info(self, oid: str) -> RemoteObject | None:
        try:
            return _listed(self._fs.info(self._odb.oid_to_path(oid)))
        except FileNotFoundError:
            return None

    def faults(
        self, sizes: Mapping[str, int | None], *, content: bool, progress: Progress = SILENT
    ) -> dict[str, str]:
        """What is wrong with each damaged object; an empty text for each missing object."""
        found = self.listed(sizes)
        faults = dict.fromkeys(sizes.keys() - found.keys(), "")
        doubtful = []
        for oid, each in found.items():
            size = sizes[oid]
            known = None not in (size, each.size)
            if known and each.size != size:
                faults[oid] = f"has {each.size} bytes but should have {size}"
            elif content or not known:
                if each.md5 is not None:
                    self._checksums.add(oid)
                # An equal checksum proves that the bytes are right. Another one proves nothing:
                # stores that encrypt, or take files in parts, state other values as the MD5.
                if each.md5 != digest_of(oid):
                    doubtful.append(oid)
        if not doubtful:
            return faults
        with working(progress, "reading the remote", len(doubtful), "objects"):
            for oid, digest in in_threads(self.digest, doubtful):
                size = found[oid].size or sizes[oid] or 0
                self._read[oid] = size
                progress.advance(1, size)
                if digest is None:
                    faults[oid] = ""
                elif digest != digest_of(oid):
                    faults[oid] = f"should have the MD5 {digest_of(oid)} but has {digest}"
        return faults

    def digest(self, oid: str) -> str | None:
        """The hex MD5 of the bytes of an object; None if the remote lacks the object."""
        try:
            with self._fs.open(self._odb.oid_to_path(oid), "rb") as stream:
                return _md5_of(stream)
        except FileNotFoundError:
            return None

    def get(self, oid: str, path: str) -> bool:
        """Copy an object to a local file; False if the object is missing or damaged."""
        try:
            self._fs.get_file(self._odb.oid_to_path(oid), path)
        except FileNotFoundError:
            return False
        # Not `has_object`: an unreadable local file says nothing about the remote.
        return md5_of(path) == digest_of(oid)

    def read_list(self, oid: str) -> bytes | None:
        """The list of a folder's files, as bytes; None if the list is missing or damaged."""
        try:
            with self._fs.open(self._odb.oid_to_path(oid), "rb") as stream:
                data: bytes = stream.read(_LIST_LIMIT)
        except FileNotFoundError:
            return None
        self._read[oid] = len(data)
        return data if is_object(data, oid) else None

    def put(self, oid: str, path: str) -> None:
        """Send an object. Replaces an existing one."""
        target = self._odb.oid_to_path(oid)
        self._fs.makedirs(self._fs.parent(target))
        self._fs.put_file(path, target)
        self._odb.protect(target)


def has_object(path: str | Path, oid: str) -> bool:
    """Whether a local file exists and has the bytes of an object."""
    try:
        return md5_of(path) == digest_of(oid)
    except OSError:
        return False


def md5_of(path: str | Path) -> str:
    """The MD5 of a local file, as hex."""
    with Path(path).open("rb") as stream:
        return _md5_of(stream)


def _md5_of(stream: BinaryIO) -> str:
    found = hashlib.md5(usedforsecurity=False)
    while piece := stream.read(_CHUNK):
        found.update(piece)
    return found.hexdigest()


def _listed(info: Mapping[str, Any]) -> RemoteObject:
    size = info.get("size")
    return RemoteObject(None if size is None else int(size), _stated_md5(info))


def _stated_md5(info: Mapping[str, Any]) -> str | None:
    if match := _MD5.fullmatch(str(info.get("ETag", ""))):
        return match[1]
    try:
        return base64.b64decode(info.get("md5Hash", ""), validate=True).hex() or None
    except (TypeError, binascii.Error):
        return None


def in_threads(call: Callable[[str], _T], oids: Collection[str]) -> Iterator[tuple[str, _T]]:
    """Each object with the result of a call, in order. Several calls run in parallel."""
    pool = ThreadPoolExecutor(_THREADS)
    try:
        yield from zip(oids, pool.map(call, oids), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


def remote_names(repo: Any) -> list[str]:
    """The names of the remotes of a DVC repository, the default one first."""
    default = repo.config["core"].get("remote")
    return sorted(repo.config["remote"], key=lambda name: (name != default, name))


def remote_objects(repo: Any, remote: str | None, command: str) -> tuple[RemoteObjects, str]:
    """The objects of a remote, and its name."""
    known = remote_names(repo)
    if not known or (remote is not None and remote not in known):
        named = f" `{remote}`" if remote is not None else " to push to or fetch from"
        raise UsageError(
            f"DVC has no remote{named}",
            hint=f"available: {', '.join(known)}" if known else "dvc remote add -d NAME URL",
        )
    return RemoteObjects(repo.cloud.get_remote_odb(remote, command)), remote or known[0]


_TEMPORARY = re.compile(r"\.[A-Za-z0-9_-]{22}\.tmp")
"""The temporary name of a file that DVC is writing."""


def stale(
    repo: Any,
    kept: Collection[str],
    linked: Collection[str],
    refs: Sequence[str],
    mark: str,
    remote: str | None,
) -> list[Path]:
    """The cached objects of each unreferenced folder that contains the file `mark`. To remove the
    objects, take DVC's lock before this call, and release it after the removal.

    If the cache lacks the list of a referenced folder, the list is read from the remote. If the
    remote lacks it as well, the result is empty.
    """
    cache, marked = repo.cache.local, {*kept}
    for _ in repo.brancher(revs=list(refs)):  # the workspace, then each of `refs`
        infos = (out.hash_info for out in repo.index.outs if out.use_cache)
        marked |= {str(info.value) for info in infos if info and info.value}
    for value in [value for value in marked if value.endswith(DIR_SUFFIX)]:
        data = cached_list(cache, value)
        if data is None and remote_names(repo):
            data = remote_objects(repo, remote, "fetch")[0].read_list(value)
        if data is None:
            return []  # its files are unknown
        marked.update(files_in(data).values())
    unmarked = set(cache.all()) - marked
    doomed: set[str] = set()
    for value in (value for value in unmarked if value.endswith(DIR_SUFFIX)):
        data = cached_list(cache, value)
        files = files_in(data) if data is not None else {}
        if mark in files:
            doomed |= {value, *files.values()} & unmarked
    ordered = sorted(doomed, key=lambda oid: (oid.endswith(DIR_SUFFIX), oid))
    paths = map(cache.oid_to_path, ordered)
    return [Path(path) for path in paths if os.path.realpath(path) not in linked]


def abandoned(repo: Any) -> list[Path]:
    """Files that a killed command was writing into the cache. To remove them, take DVC's lock
    before this call, and release it after the removal, so that no command is writing them.
    """
    return [
        path
        for path in sorted(Path(repo.cache.local.path).rglob(".*.tmp"))
        if _TEMPORARY.fullmatch(path.name) and not path.is_dir()
    ]


def remove_objects(paths: Iterable[Path]) -> None:
    """Remove objects of the cache."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise FailureError(f"`{path}` cannot be removed: {error.strerror}") from error


def remove_corrupt(objects: Mapping[str, str]) -> int:
    """Remove cached objects whose bytes do not match their names. Returns how many."""
    removed = 0
    for file, cached in objects.items():
        path = Path(cached)
        try:
            found = md5_of(path)
            linked = Path(file).is_symlink() and Path(file).resolve() == path.resolve()
            if found != path.parent.name + path.name and not linked:
                path.unlink()
                removed += 1
        except OSError as error:
            raise FailureError(f"`{cached}` cannot be removed: {error.strerror}") from error
    return removed
