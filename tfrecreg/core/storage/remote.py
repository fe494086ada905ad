"""Files in a store that fsspec supports: a bucket, a web server, memory.

Files are read, and new files are added under unused names. No file is ever replaced. The store
decides whether a name is unused (`If-None-Match: *` on S3), so only one of two simultaneous writers
wins.
"""

from __future__ import annotations

import inspect
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from blake3 import blake3

from tfrecreg.core.storage.file_systems import connect, error_code, invoke, patiently, request
from tfrecreg.core.storage.interface import Entry, Follow, Readable, Reader
from tfrecreg.core.storage.paths import (
    INDEX_SUFFIX,
    Info,
    expect_small,
    is_web,
    locate,
    query_of,
    remember_query,
    remembered,
    split_url,
)
from tfrecreg.core.storage.remote_reader import (
    BLOCK_BYTES,
    HeldReader,
    ReadAhead,
    RemoteReader,
    active,
    taken,
)
from tfrecreg.core.values.errors import MissingFileError, StorageError

_TOGETHER = 4
"""Minimum number of shards for which one listing replaces one request per shard."""
_PART = 8 << 20
_PARTS_AT_ONCE = 2
"""Number of parts that are sent at once, and so are in memory at once."""
_SLOWEST = 1 << 20
"""A request that sends a file may take one second longer for each MiB."""

_ETAGS = ("ETag", "etag", "md5Hash", "content_md5", "Content-MD5", "crc32c", "generation")
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "Last-Modified", "created")
_S3 = ("s3://", "s3a://")
_FLAT = (*_S3, "gs://", "gcs://", "az://", "abfs://", "abfss://")
"""Stores that list all files below a folder at once."""
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RemoteStorage(Readable):
    """Files below one URL.

    Connections are made when they are needed, with options from the environment and from fsspec's
    configuration. The pickle has neither connections nor options. It has the URL. It also
    has the query of a presigned URL, because worker processes need the query.
    """

    root: str
    """The URL without credentials, query and final slash."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", self.root.rstrip("/"))

    def below(self, path: str) -> RemoteStorage:
        return RemoteStorage(locate(self.root, path))

    def stat(self, path: str, *, follow: Follow = "inside") -> Entry | None:  # noqa: ARG002 - no links
        info = self._known(path)
        return None if info is None else entry_of(path, info)

    def list(self, path: str = "", *, recursive: bool = True) -> Iterator[Entry]:
        if not recursive or self.root.startswith(_FLAT):
            return self._found(path, "find" if recursive else "ls")
        return iter(sorted(self._below(path), key=_place))

    def listing(self) -> frozenset[str] | None:
        if is_web(self.root):  # a web server need not list its files
            return None
        return frozenset(entry.path for entry in self.list() if entry.kind != "dir")

    def glob(self, pattern: str) -> Iterator[Entry]:
        found = sorted(self._matches("", pattern.split("/")), key=_place)
        yield from (each for each in found if each.kind == "file")

    # `find` and `glob` of fsspec go on without a folder that they could not list.

    def _below(self, folder: str) -> Iterator[Entry]:
        start = f"{folder}/" if folder else ""
        for entry in self._found(folder, "ls"):
            if entry.path.startswith(start):  # an empty name stands for the folder itself
                yield entry
                if entry.kind == "dir":
                    yield from self._below(entry.path)

    def _matches(self, folder: str, parts: Sequence[str]) -> Iterator[Entry]:
        """The files and folders below a folder that match the parts of a glob."""
        part, rest = parts[0], parts[1:]
        start = f"{folder}/" if folder else ""
        stem = re.split(r"[*?[]", part, maxsplit=1)[0]
        if stem == part:
            if rest:
                yield from self._matches(start + part, rest)
            elif (entry := self.stat(start + part)) is not None:
                yield entry
        elif part == "**" or (stem and not rest and self.root.startswith(_S3)):
            found = self._found(folder, "find", prefix=stem) if stem else self.list(folder)
            yield from (each for each in found if _fits(each.path[len(start) :].split("/"), parts))
        else:
            for entry in self._found(folder, "ls"):
                if entry.path.startswith(start) and fnmatchcase(entry.path[len(start) :], part):
                    if not rest:
                        yield entry
                    elif entry.kind == "dir":
                        yield from self._matches(entry.path, rest)

    def open(self, path: str) -> Reader:
        data = taken(self.root, path)
        if data is None:
            return self._open(path)
        return HeldReader(locate(self.root, path), data, partial(self._open, path))

    def _open(self, path: str) -> Reader:
        shown = locate(self.root, path)
        info = self._known(path)
        if info is None:
            raise MissingFileError(f"`{shown}` does not exist")
        if info.get("type") == "directory":
            raise StorageError(f"cannot read `{shown}`: expected a file, found a folder")
        reader = RemoteReader(self, path, size_of(info, shown), _version(info))
        reader.expect_ranges()
        return reader

    def state(self, path: str) -> tuple[int, str] | None:
        """The size of a file, and a value that changes with the file. The value is empty if the
        store provides no such value. None if there is no file.
        """
        info = self._info(path)
        return None if info is None else (size_of(info, locate(self.root, path)), _version(info))

    def read(self, path: str, *, limit: int = 1 << 28) -> bytes:
        with self.open(path) as reader:
            expect_small(reader.size, limit, locate(self.root, path))
            if isinstance(reader, RemoteReader) and reader.size <= BLOCK_BYTES:
                return reader.read_range(0, reader.size)
            return reader.read_at(0, reader.size)

    def read_object(self, path: str, size: int) -> bytes:
        """Read a file with one request. `size` is its size in a listing."""
        return RemoteReader(self, path, size, "").read_range(0, size)

    def reading_ahead(
        self, paths: Iterable[str], listed: Iterable[Entry]
    ) -> AbstractContextManager[None]:
        wanted = [] if is_web(self.root) else list(paths)
        if not wanted:
            return nullcontext()
        try:
            sizes = {entry.path: entry.size for entry in listed}
        except StorageError:
            return nullcontext()
        sized = ((path, sizes[path]) for path in wanted if path in sizes)
        return active(ReadAhead(self.root, self.read_object, sized))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._put_unless_taken("pipe_file", path, data, len(data))

    def put_file_if_absent(self, path: str, source: str) -> bool:
        """Like :meth:`put_if_absent`, but sends the bytes of the local file `source`, in parts."""
        return self._put_unless_taken("put_file", path, source, Path(source).stat().st_size)

    def _put_unless_taken(self, method: str, path: str, content: str | bytes, size: int) -> bool:
        system, full, shown = self.place(path)
        arguments: tuple[str | bytes, ...] = full, content
        options: dict[str, int] = {}
        if method == "put_file":
            arguments = content, full
            known = inspect.signature(getattr(system, "_put_file", system.put_file)).parameters
            limits = {"chunksize": _PART, "max_concurrency": _PARTS_AT_ONCE}
            options = {name: value for name, value in limits.items() if name in known}

        def attempt(timeout: float) -> bool:
            seconds = timeout + size / _SLOWEST
            try:
                invoke(seconds, system, method, *arguments, mode="create", **options)
            except Exception as error:
                is_taken = error_code(error) in ("PreconditionFailed", "412")
                if is_taken or isinstance(error, FileExistsError):
                    return False
                unknown = isinstance(error, TypeError) and "mode" in str(error)
                if unknown or isinstance(error, NotImplementedError):
                    raise StorageError(
                        f"`{shown}` cannot be written: its store has no conditional writes, so an "
                        "existing file could be overwritten",
                    ) from error
                raise
            return True

        return patiently("write", shown, attempt)

    def __getstate__(self) -> tuple[str, str]:
        return self.root, query_of(self.root)

    def __setstate__(self, state: tuple[str, str]) -> None:
        object.__setattr__(self, "root", state[0])
        remember_query(*state)

    def place(self, path: str) -> tuple[Any, str, str]:
        shown = locate(self.root, path)
        top, inside = split_url(shown)
        system, start = connect(top)
        full = f"{start}/{inside}" if inside else start
        return system, full + query_of(shown), shown

    def look_ahead(self, paths: Sequence[str]) -> None:
        known = self._from_listings()
        if known is None:
            return
        new = [path for path in paths if locate(self.root, path) not in known]
        if len(new) < _TOGETHER:
            return
        folder, _, prefix = os.path.commonprefix(new).rpartition("/")  # noqa: RUF071 - of texts
        system, full, shown = self.place(folder)
        try:
            found = request("list", shown, system, "find", full, prefix=prefix, detail=True)
        except StorageError:  # reading does not need the right to list
            return
        deque(self._entries(found.values()), 0)
        for path in new:
            if path.endswith(INDEX_SUFFIX):  # records can be read without an index
                known.setdefault(locate(self.root, path), None)

    def _from_listings(self) -> dict[str, Info] | None:
        """The mapping that remembers facts from listings; None if such facts must not be used.

        Only S3 is known to give the same facts about a file in a listing and in a request.
        """
        return remembered() if self.root.startswith(_S3) else None

    def _known(self, path: str) -> Mapping[str, Any] | None:
        """Like :meth:`_info`, but inside `looks_remembered` each file is requested only once."""
        known, url = remembered(), locate(self.root, path)
        if known is None:
            return self._info(path)
        if url not in known:
            known[url] = self._info(path)
        return known[url]

    def _info(self, path: str) -> Mapping[str, Any] | None:
        system, full, shown = self.place(path)
        try:
            found: Mapping[str, Any] = request("look at", shown, system, "info", full)
        except MissingFileError:
            return None
        return found

    def _found(self, path: str, method: str, **options: str) -> Iterator[Entry]:
        system, full, shown = self.place(path)
        try:
            found = request("list", shown, system, method, full, detail=True, **options)
        except MissingFileError:
            return
        yield from self._entries(found.values() if isinstance(found, Mapping) else found)

    def _entries(self, infos: Any) -> Iterator[Entry]:
        _, full, _ = self.place("")
        start = f"{full}/"
        found: dict[str, Entry] = {}
        known = self._from_listings()
        for info in infos:
            name = str(info["name"])
            inside = name[len(start) :] if name.startswith(start) else ""
            parts = inside.rstrip("/").split("/")
            # A store may hold names that are not paths. Names of folders end with a slash.
            if {"", ".", ".."}.isdisjoint(parts) and not (
                inside.endswith("/") and info.get("type") == "file"
            ):
                path = "/".join(parts)
                entry = found[path] = entry_of(path, info)
                if known is not None and entry.kind == "file" and entry.mtime_ns:
                    known.setdefault(locate(self.root, path), info)
        yield from sorted(found.values(), key=_place)


def _place(entry: Entry) -> bytes:
    return entry.path.encode("utf-8", "surrogateescape")


def _fits(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether the names of a path match the parts of a glob."""
    if not parts or not names:
        return not names and all(part == "**" for part in parts)
    if parts[0] == "**":
        return _fits(names, parts[1:]) or _fits(names[1:], parts)
    return fnmatchcase(names[0], parts[0]) and _fits(names[1:], parts[1:])


def entry_of(path: str, info: Mapping[str, Any]) -> Entry:
    """The entry of a file or folder, from the store's metadata."""
    if info.get("type") == "directory":
        return Entry(path, "dir", 0, 0, 0)
    etag = next((str(info[key]) for key in _ETAGS if info.get(key)), "")
    bits = int.from_bytes(blake3(etag.encode()).digest(8), "little") >> 1 if etag else 0
    stamp = _time(info)
    if etag:
        # Stores have times in seconds. The nanoseconds hold bits of the ETag, so that the time
        # differs after every change.
        stamp += bits % _SECOND - stamp % _SECOND
    return Entry(path, "file", int(info.get("size") or 0), stamp, bits)


def _version(info: Mapping[str, Any]) -> str:
    """A value that changes with the file; empty if the store shows no such value."""
    parts = [str(info[key]) for key in _ETAGS if info.get(key)]
    return " ".join(parts) or next((str(info[key]) for key in _TIMES if info.get(key)), "")


def _time(info: Mapping[str, Any]) -> int:
    value = next((info[key] for key in _TIMES if info.get(key)), None)
    try:
        if isinstance(value, str):
            value = (
                datetime.fromisoformat(value.replace("Z", "+00:00"))
                if value[:1].isdigit()
                else parsedate_to_datetime(value)
            )
        if isinstance(value, datetime):
            value = (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
        return max(0, int(value * _SECOND)) if isinstance(value, int | float) else 0
    except (ValueError, TypeError, OverflowError):
        return 0


def size_of(info: Mapping[str, Any], shown: str) -> int:
    size = info.get("size")
    if not isinstance(size, int):
        raise StorageError(
            f"cannot read `{shown}`, because the server does not send the file's size: "
            "download the file first"
        )
    return size
