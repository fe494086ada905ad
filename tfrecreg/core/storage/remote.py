"""Files in a store that fsspec reaches: buckets, web servers, memory.

They are read, and new ones are added. None is replaced, but by a repair.

Writing to a store: whole files, and only under names that are free.

The store decides whether a name is free (`If-None-Match: *` on S3), so of two writers at once one
wins.

Verified copies of shards behind a URL: in the user's cache, for readers that take paths.

A copy is a folder in ``tfrecreg/remote`` below `XDG_CACHE_HOME` or ``~/.cache``, named by the
digest of the manifest. A file appears there when its digest is that of the manifest, so one that is
there is not fetched again. Nothing removes them: the folder may be deleted at any time.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any

from blake3 import blake3

from tfrecreg.core.registry.history import copy_verified
from tfrecreg.core.registry.manifest import MANIFEST_NAME, SCHEMA_NAME, Manifest, ShardEntry
from tfrecreg.core.storage.file_systems import connect, invoke, patiently, request
from tfrecreg.core.storage.interface import Entry, Follow, Readable, Reader, Store
from tfrecreg.core.storage.local import LocalStorage, user_cache
from tfrecreg.core.storage.paths import (
    Info,
    is_web,
    locate,
    looked,
    path_text,
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
from tfrecreg.core.values.errors import MissingFileError, StorageError, UsageError
from tfrecreg.core.values.text import safe

_PART = 8 << 20
_PARTS_AT_ONCE = 2
"""Size of the parts of a file, and number sent at once: memory does not grow with the file."""
_SLOWEST = 1 << 20
"""Bytes per second that an upload may count on, beyond the time of any request."""
_CREATE = "create"


def put_bytes(system: Any, full: str, shown: str, data: bytes) -> bool:
    """Create a small file unless its name is taken; False if it is."""
    return _unless_taken(system, "pipe_file", full, shown, len(data), full, data)


def put_file(system: Any, full: str, shown: str, source: str) -> bool:
    """Create a file with the bytes of a local one unless its name is taken; False if it is."""
    known = inspect.signature(getattr(system, "_put_file", system.put_file)).parameters
    limits = {"chunksize": _PART, "max_concurrency": _PARTS_AT_ONCE}
    options = {name: value for name, value in limits.items() if name in known}
    size = Path(source).stat().st_size
    return _unless_taken(system, "put_file", full, shown, size, source, full, **options)


def _unless_taken(
    system: Any, method: str, full: str, shown: str, size: int, *arguments: Any, **options: Any
) -> bool:
    def attempt(timeout: float) -> bool:
        try:
            invoke(timeout + size / _SLOWEST, system, method, *arguments, mode=_CREATE, **options)
        except Exception as error:
            if _is_taken(error):
                return False
            unknown = isinstance(error, TypeError) and "mode" in str(error)
            if unknown or isinstance(error, NotImplementedError):
                raise _unconditional(shown) from error
            raise
        return True

    # Its directory listing may be cached from before.
    system.invalidate_cache(full)
    return patiently("write", shown, attempt)


def _is_taken(error: BaseException) -> bool:
    """Whether the error means that the condition does not hold."""
    if isinstance(error, FileExistsError):
        return True
    cause: BaseException | None = error
    while cause is not None:
        response = getattr(cause, "response", None)
        if isinstance(response, dict):
            code = response.get("Error", {}).get("Code")
            return code in ("PreconditionFailed", "412")
        cause = cause.__cause__
    return False


def _unconditional(shown: str) -> StorageError:
    return StorageError(
        f"`{safe(shown, limit=1000)}` is in a store that overwrites files although it was asked "
        "not to",
        hint="S3, Google Cloud Storage and MinIO support conditional writes; update the store or "
        "its library",
    )


_ETAGS = ("ETag", "etag", "md5Hash", "content_md5", "Content-MD5", "crc32c", "generation")
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "Last-Modified", "created")
_S3 = ("s3://", "s3a://")
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RemoteStorage:
    """Files below one URL. See :class:`tfrecreg.core.storage.interface.Store` for the methods.

    Connections are made when they are needed, and options come from the environment and the
    configuration of fsspec. Its pickle holds neither: it is the URL, and the query of a presigned
    one, which a worker process needs.
    """

    root: str
    """The URL, without credentials, query and slash at its end."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", self.root.rstrip("/"))

    @property
    def is_local(self) -> bool:
        return False

    def below(self, path: str) -> RemoteStorage:
        return RemoteStorage(locate(self.root, path))

    def stat(self, path: str, *, follow: Follow = "inside") -> Entry | None:  # noqa: ARG002 - no links
        info = self._known(path)
        return None if info is None else entry_of(path, info)

    def list(self, path: str = "", *, recursive: bool = True) -> Iterator[Entry]:
        system, full, shown = self._place(path)
        method = "find" if recursive else "ls"
        try:
            found = request("list", shown, system, method, full, detail=True)
        except MissingFileError:
            return
        infos = found.values() if isinstance(found, Mapping) else found
        yield from self._entries(infos)

    def glob(self, pattern: str) -> Iterator[Entry]:
        system, full, shown = self._place("")
        try:
            found = request("list", shown, system, "glob", f"{full}/{pattern}", detail=True)
        except MissingFileError:
            return
        yield from (each for each in self._entries(found.values()) if each.kind == "file")

    def open(self, path: str) -> Reader:
        data = taken(self.root, path)
        if data is None:
            return self._open(path)
        return HeldReader(locate(self.root, path), data, partial(self._open, path))

    def _open(self, path: str) -> Reader:
        _, full, shown = self._place(path)

        def look() -> tuple[int, str] | None:
            info = self._info(path)
            return None if info is None else (size_of(info, shown), _version(info))

        info = self._known(path)
        if info is None:
            raise MissingFileError(
                f"`{path_text(shown)}` does not exist", hint="it was removed, or the URL is wrong"
            )
        if info.get("type") == "directory":
            raise StorageError(
                f"cannot read `{path_text(shown)}`: expected a file, found a folder",
                hint="name a file",
            )
        reader = RemoteReader(
            lambda: self._place(path)[0], full, shown, size_of(info, shown), _version(info), look
        )
        reader.expect_ranges()
        return reader

    def read(self, path: str, *, limit: int = 1 << 28) -> bytes:
        with self.open(path) as reader:
            if reader.size > limit:
                raise StorageError(
                    f"`{path_text(locate(self.root, path))}` has {reader.size} bytes, more than "
                    f"the {limit} that are read at once",
                    hint="it is not the expected file",
                )
            if isinstance(reader, RemoteReader) and 0 < reader.size <= BLOCK_BYTES:
                return reader.read_range(0, reader.size)
            return reader.read_at(0, reader.size)

    def read_object(self, path: str, size: int) -> bytes:
        """A whole file by one request: its size is known from a listing."""
        _, full, shown = self._place(path)

        def look() -> tuple[int, str] | None:
            info = self._info(path)
            return None if info is None else (size_of(info, shown), "")

        reader = RemoteReader(lambda: self._place(path)[0], full, shown, size, "", look)
        return reader.read_whole()

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
        return self._fetching((path, sizes[path]) for path in wanted if path in sizes)

    def _fetching(self, sized: Iterable[tuple[str, int]]) -> AbstractContextManager[None]:
        return active(ReadAhead(self.root, self.read_object, sized))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        system, full, shown = self._place(path)
        return put_bytes(system, full, shown, data)

    def put_file_if_absent(self, path: str, source: str) -> bool:
        system, full, shown = self._place(path)
        return put_file(system, full, shown, source)

    def remove(self, path: str) -> None:
        system, full, shown = self._place(path)
        with suppress(MissingFileError):
            request("remove", shown, system, "rm_file", full)

    def __getstate__(self) -> tuple[str, str]:
        return self.root, query_of(self.root)

    def __setstate__(self, state: tuple[str, str]) -> None:
        object.__setattr__(self, "root", state[0])
        remember_query(*state)

    def _place(self, path: str) -> tuple[Any, str, str]:
        """The file system, the name of `path` there, and its URL."""
        shown = locate(self.root, path)
        top, inside = split_url(shown)
        system, start = connect(top)
        full = f"{start}/{inside}" if inside else start
        return system, full + query_of(shown), shown

    def look_ahead(self, start: str) -> bool:
        if self._from_listings() is None:
            return False
        folder, _, prefix = start.rpartition("/")
        system, full, shown = self._place(folder)
        try:
            found = request("list", shown, system, "find", full, prefix=prefix, detail=True)
        except StorageError:  # reading needs no right to list
            return False
        deque(self._entries(found.values()), 0)
        return True

    def _from_listings(self) -> dict[str, Info] | None:
        """Where to remember what a listing says of files; None for nowhere.

        Of S3 alone it is known that a listing says the same of a file as a question about it.
        """
        return remembered() if self.root.startswith(_S3) else None

    def _known(self, path: str) -> Mapping[str, Any] | None:
        """As :meth:`_info`; of the same state where looks are remembered."""
        return looked(locate(self.root, path), lambda: self._info(path))

    def _info(self, path: str) -> Mapping[str, Any] | None:
        system, full, shown = self._place(path)
        try:
            found: Mapping[str, Any] = request("look at", shown, system, "info", full)
        except MissingFileError:
            return None
        return found

    def _entries(self, infos: Any) -> Iterator[Entry]:
        _, full, _ = self._place("")
        start = f"{full}/"
        found: dict[str, Entry] = {}
        known = self._from_listings()
        for info in infos:
            name = str(info["name"])
            inside = name[len(start) :] if name.startswith(start) else ""
            parts = inside.rstrip("/").split("/")
            # A store may hold names that are not paths; the names of folders end in a slash.
            if {"", ".", ".."}.isdisjoint(parts) and not (
                inside.endswith("/") and info.get("type") == "file"
            ):
                path = "/".join(parts)
                entry = found[path] = entry_of(path, info)
                if known is not None and entry.kind == "file" and entry.mtime_ns:
                    known.setdefault(locate(self.root, path), info)
        for path in sorted(found, key=lambda each: each.encode("utf-8", "surrogateescape")):
            yield found[path]


def open_store(url: str) -> Store:
    """What :func:`tfrecreg.core.storage.raw.store_at` opens."""
    return RemoteStorage(url)


def entry_of(path: str, info: Mapping[str, Any]) -> Entry:
    """The entry of a file or a folder, from the store's metadata."""
    if info.get("type") == "directory":
        return Entry(path, "dir", 0, 0, 0)
    etag = next((str(info[key]) for key in _ETAGS if info.get(key)), "")
    bits = int.from_bytes(blake3(etag.encode()).digest(8), "little") >> 1 if etag else 0
    stamp = _time(info)
    if etag:
        # Stores have times in seconds. The rest of a second holds bits of the ETag, so that times
        # differ after every change.
        stamp += bits % _SECOND - stamp % _SECOND
    return Entry(path, "file", int(info.get("size") or 0), stamp, bits)


def _version(info: Mapping[str, Any]) -> str:
    """A value that differs between two states of a file, as far as the store shows them."""
    parts = [str(info[key]) for key in _ETAGS if info.get(key)]
    return " ".join(parts) or next((str(info[key]) for key in _TIMES if info.get(key)), "")


def _time(info: Mapping[str, Any]) -> int:
    """Modification time in nanoseconds; 0 if the store has none."""
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
    """The size of a file in bytes."""
    size = info.get("size")
    if not isinstance(size, int):
        raise StorageError(
            f"cannot read `{path_text(shown)}`: the server does not say its size",
            hint="download it first",
        )
    return size


def local_copy(
    name: str, manifest: Manifest, remote: Readable, shards: Sequence[ShardEntry]
) -> LocalStorage:
    """A local copy of a build's shards behind a URL, with their indexes and the schema."""
    cache = user_cache()
    if cache is None:
        raise UsageError(
            f"`{name}` is copied before it is loaded, and there is no folder for it",
            hint="set `HOME` or `XDG_CACHE_HOME`",
        )
    folder = blake3(remote.read(MANIFEST_NAME)).hexdigest(16)
    local = LocalStorage(f"{cache.root}/tfrecreg/remote/{folder}")
    files = {each.path: each for each in manifest.files}
    for shard in shards:
        copy_verified(remote, local, shard)
        index = files.get(shard.index)
        if index is not None:
            copy_verified(remote, local, index)
    if SCHEMA_NAME in files:
        copy_verified(remote, local, files[SCHEMA_NAME])
    return local
