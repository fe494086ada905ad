"""The objects of a DVC remote, as its file system shows them now.

DVC keeps an index of the objects in a remote: the list of a folder counts for all files of the
folder, which are not looked up again. This module asks the file system of the remote, and neither
reads nor writes that index. One listing covers all objects whose hashes begin with the same two
digits.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.progress import SILENT, Progress, working
from tfrecreg.core.values.text import safe

DIR_SUFFIX = ".dir"
"""Suffix of the hash of a folder: that object is the list of its files."""

_CHUNK = 1 << 20
_LIST_LIMIT = 1 << 28
"""Most bytes of the list of a folder that are read."""
_THREADS = 16
_MD5 = re.compile(r'"?([0-9a-f]{32})"?')
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """An object of a remote, from a listing."""

    size: int
    """In bytes."""
    md5: str | None
    """What the store states as a checksum, if that may be an MD5; it need not be that of the
    bytes."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The verified objects of a remote."""

    listed: int = 0
    """Number of objects that were looked for in listings."""
    checksums: int = 0
    """Number of objects whose checksum, as the store states it, was compared."""
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
        """The objects verified so far."""
        return Verified(
            listed=len(self._listed),
            checksums=len(self._checksums),
            read=len(self._read),
            bytes=sum(self._read.values()),
        )

    def listed(self, oids: Collection[str]) -> dict[str, RemoteObject]:
        """The objects that are there. Each call asks the remote again."""
        if hasattr(self._fs.fs, "invalidate_cache"):
            self._fs.fs.invalidate_cache()
        wanted = set(oids)
        self._listed |= wanted
        if not self._fs.CAN_TRAVERSE:  # a web server: one request for each object
            single = sorted(wanted)
            infos = zip(single, in_threads(self._info, single), strict=True)
            return {oid: found for oid, found in infos if found is not None}
        prefixes: dict[str, set[str]] = defaultdict(set)
        for oid in wanted:
            prefixes[oid[:2]].add(oid)
        found: dict[str, RemoteObject] = {}
        for prefix, some in zip(prefixes, in_threads(self._list, list(prefixes)), strict=True):
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
        """The objects that are missing or damaged."""
        found = self.listed(sizes)
        faults = dict.fromkeys(sizes.keys() - found.keys(), "")
        doubtful = []
        for oid, each in found.items():
            size = sizes[oid]
            if size is not None and each.size != size:
                faults[oid] = f"has {each.size} bytes, it should have {size}"
            elif size is None or content:
                if each.md5 is not None:
                    self._checksums.add(oid)
                # An equal checksum is proof. Another one is not: stores that encrypt, or that take
                # files in parts, state other things under the same name.
                if each.md5 != _digest_of(oid):
                    doubtful.append(oid)
        if not doubtful:
            return faults
        with working(progress, "reading the remote", len(doubtful), "objects"):
            for oid, digest in zip(doubtful, in_threads(self.digest, doubtful), strict=True):
                size = found[oid].size
                self._read[oid] = size
                progress.advance(1, size)
                if digest is None:
                    faults[oid] = ""
                elif digest != _digest_of(oid):
                    faults[oid] = f"should have the MD5 {_digest_of(oid)}, it has {digest}"
        return faults

    def digest(self, oid: str) -> str | None:
        """The MD5 of the bytes of an object, as hex; None if it is not there."""
        try:
            with self._fs.open(self._odb.oid_to_path(oid), "rb") as stream:
                return _md5_of(stream)
        except FileNotFoundError:
            return None

    def get(self, oid: str, path: str) -> bool:
        """Copy an object to a local file; False if it is not there, or damaged."""
        try:
            self._fs.get_file(self._odb.oid_to_path(oid), path)
        except FileNotFoundError:
            return False
        # Not `has_object`: an unreadable local file says nothing about the remote.
        return md5_of(path) == _digest_of(oid)

    def read_list(self, oid: str) -> bytes | None:
        """The bytes of the list of a folder; None if it is not there, or damaged."""
        try:
            with self._fs.open(self._odb.oid_to_path(oid), "rb") as stream:
                data: bytes = stream.read(_LIST_LIMIT)
        except FileNotFoundError:
            return None
        self._read[oid] = len(data)
        return data if is_object(data, oid) else None

    def put(self, oid: str, path: str) -> None:
        """Send an object, in the place of one that is there."""
        target = self._odb.oid_to_path(oid)
        self._fs.makedirs(self._fs.parent(target))
        self._fs.put_file(path, target)
        self._odb.protect(target)


def is_object(data: bytes, oid: str) -> bool:
    """Whether bytes are those of an object."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest() == _digest_of(oid)


def has_object(path: str | Path, oid: str) -> bool:
    """Whether a local file is there, and has the bytes of an object."""
    try:
        return md5_of(path) == _digest_of(oid)
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


def _digest_of(oid: str) -> str:
    return oid.partition(".")[0]


def _listed(info: Mapping[str, Any]) -> RemoteObject:
    return RemoteObject(int(info.get("size") or 0), _stated_md5(info))


def _stated_md5(info: Mapping[str, Any]) -> str | None:
    if match := _MD5.fullmatch(str(info.get("ETag", ""))):
        return match[1]
    try:
        return base64.b64decode(info.get("md5Hash", ""), validate=True).hex() or None
    except (TypeError, binascii.Error):
        return None


def in_threads(call: Callable[[str], _T], oids: Collection[str]) -> Iterator[_T]:
    """The result for each object, in order; several are at work at once."""
    pool = ThreadPoolExecutor(_THREADS)
    try:
        yield from pool.map(call, oids)
    finally:
        pool.shutdown(cancel_futures=True)


def remote_names(repo: Any) -> list[str]:
    """The names of the remotes of a DVC repository, the default one first."""
    default = repo.config["core"].get("remote")
    return sorted(repo.config["remote"], key=lambda name: (name != default, name))


def remote_objects(repo: Any, remote: str | None, command: str) -> tuple[RemoteObjects, str]:
    """The objects of a remote, and its name."""
    known = remote_names(repo)
    if remote is not None and remote not in known:
        raise UsageError(
            f"DVC has no remote `{safe(remote)}`",
            hint=f"available: {', '.join(known)}" if known else "dvc remote add -d NAME URL",
        )
    if not known:
        raise UsageError(
            "DVC has no remote to push to or fetch from", hint="dvc remote add -d NAME URL"
        )
    return RemoteObjects(repo.cloud.get_remote_odb(remote, command)), remote or known[0]
