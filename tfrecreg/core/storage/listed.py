"""Raw data behind a URL: folders are listed once.

The process that opens such a storage lists a folder when it is first asked for it, and keeps names,
sizes and stamps, about 120 bytes per object. A worker process, which gets the storage in a pickle,
lists nothing.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from urllib.parse import unquote

from blake3 import blake3

from tfrecreg.core.storage.file_systems import DaemonThreads, at_once, awaited, invoke, patiently
from tfrecreg.core.storage.interface import Entry, Follow
from tfrecreg.core.storage.paths import is_web, locate, named_url, path_text, without_secrets
from tfrecreg.core.storage.raw import RawStorage
from tfrecreg.core.storage.remote import RemoteStorage, entry_of, size_of
from tfrecreg.core.values.errors import MissingFileError, RawDataError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress, Ticker
from tfrecreg.core.values.text import DOCS

_THREADS = 8
_WALKED = 3
"""Number of folders of one folder that are listed before the following ones are listed ahead."""
_AHEAD = 16
"""Maximum number of folders that are listed ahead."""
_PAGES = 10
"""This many times as long as a request may a listing take: it is a request for each 1,000 names."""
_NO_SIZE = -1
"""In place of the size of a folder."""


def listed_storage(url: str, progress: Progress = SILENT) -> RawStorage:
    """The storage of raw data behind a URL, as a user wrote it."""
    shown = without_secrets(url)
    if shown != url:
        raise UsageError(
            f"raw data are not read from `{path_text(shown)}`: the URL holds a password or a query",
            hint="name a folder without either, and put credentials into the environment: "
            f"{DOCS}/remote-data.md",
        )
    return ListedStorage(named_url(url), progress)


class _Folder(NamedTuple):
    """What a folder holds, in the order of the names' bytes."""

    names: list[str]
    sizes: Sequence[int]
    """In bytes; :data:`_NO_SIZE` for a folder."""
    stamps: Sequence[int]
    """Of a file as in :class:`Entry`; of a folder, its number."""

    def find(self, name: str) -> int | None:
        """The place of a name; None if it is not there."""
        at = bisect_left(self.names, _order(name), key=_order)
        return at if at < len(self.names) and self.names[at] == name else None

    def is_folder(self, name: str) -> bool:
        """Whether there is a folder of that name."""
        at = self.find(name)
        return at is not None and self.sizes[at] == _NO_SIZE


class ListedStorage(RemoteStorage):
    """Raw data below one URL. See :class:`tfrecreg.core.storage.raw.RawStorage` for the methods."""

    __slots__ = ("_folders", "_listed", "_threads", "_ticker")

    _folders: dict[str, Future[_Folder | None]] | None
    """By path. None in a worker, which asks for single objects."""
    _listed: dict[str, int]
    """Number of the folders in each folder that were asked for."""
    _threads: list[DaemonThreads[_Folder | None]]
    """At most one element, as the class is frozen."""
    _ticker: Ticker

    def __init__(self, root: str, progress: Progress = SILENT) -> None:
        RemoteStorage.__init__(self, root)
        self._begin({}, progress)

    def __setstate__(self, state: tuple[str, str]) -> None:
        RemoteStorage.__setstate__(self, state)
        self._begin(None, SILENT)

    def _begin(self, folders: dict[str, Future[_Folder | None]] | None, progress: Progress) -> None:
        # The base class is frozen.
        object.__setattr__(self, "_folders", folders)
        object.__setattr__(self, "_listed", {})
        object.__setattr__(self, "_threads", [])
        object.__setattr__(self, "_ticker", Ticker(progress))

    def told_in(self, folder: str, *, relative: bool) -> str:
        del folder, relative
        return self.root

    def objects(self, paths: Iterable[str]) -> tuple[Entry, ...]:
        entries = (self.stat(path) for path in paths)
        return tuple(each for each in entries if each is not None and each.kind == "file")

    def forget(self) -> None:
        if self._folders is not None:
            self._begin({}, SILENT)

    def reading_ahead(
        self, paths: Iterable[str], listed: Iterable[Entry]
    ) -> AbstractContextManager[None]:
        sizes = {entry.path: entry.size for entry in listed}  # also by web servers
        return self._fetching((path, sizes[path]) for path in paths if path in sizes)

    def expect_folder(self) -> None:
        shown = path_text(self.root)
        found = self._folder("")
        if found is not None and found.names:
            return
        if is_web(self.root):
            raise UsageError(
                f"`{shown}` lists no files: raw data are read from web servers that list folders",
                hint="download them, or name a folder in a bucket",
            )
        if found is None:
            entry = RemoteStorage.stat(self, "")
            is_file = entry is not None and entry.kind == "file"
            what = "is not a folder" if is_file else "does not exist"
            raise UsageError(f"the raw data `{shown}` {what}", hint="name the folder with --raw")

    def stat(self, path: str, *, follow: Follow = "inside") -> Entry | None:
        if self._folders is None:
            return RemoteStorage.stat(self, path, follow=follow)
        if not path:
            return None if self._folder("") is None else Entry("", "dir", 0, 0, 1)
        locate(self.root, path)
        above, _, name = path.rpartition("/")
        folder = self._folder(above)
        at = None if folder is None else folder.find(name)
        return None if folder is None or at is None else _entry_at(folder, above, at)

    def list(self, path: str = "", *, recursive: bool = True) -> Iterator[Entry]:
        if self._folders is None:
            yield from RemoteStorage.list(self, path, recursive=recursive)
            return
        locate(self.root, path)
        folder = self._folder(path)
        if folder is None:
            return
        if not recursive:
            yield from (_entry_at(folder, path, at) for at in range(len(folder.names)))
            return
        # As on a disk: `a`, `a-b` and `a/b` are in order of their bytes.
        below = [
            (f"{name}/", at) for at, name in enumerate(folder.names) if folder.sizes[at] == _NO_SIZE
        ]
        every = [*((name, at) for at, name in enumerate(folder.names)), *below]
        for name, at in sorted(every, key=lambda each: _order(each[0])):
            if name.endswith("/"):
                yield from self.list(_join(path, name[:-1]))
            else:
                yield _entry_at(folder, path, at)

    def _folder(self, path: str) -> _Folder | None:
        """The content of a folder; None if there is no such folder."""
        assert self._folders is not None
        found = self._folders.get(path)
        is_new = path not in self._listed
        if is_new:
            self._listed[path] = 0
            if path:
                above, _, name = path.rpartition("/")
                parent = self._folder(above)
                if parent is None or not parent.is_folder(name):
                    return None
                self._listed[above] += 1
                if self._listed[above] > _WALKED:
                    self._list_ahead(above, parent, name)
                found = self._folders.get(path)
            if found is None:
                found = self._submit(path)
        if found is None:
            return None
        folder = awaited(found)
        if is_new and folder is not None:
            self._ticker.add(len(folder.names), 0)
        return folder

    def _list_ahead(self, above: str, parent: _Folder, name: str) -> None:
        """List the folders that follow one in its folder: they are probably asked for next."""
        assert self._folders is not None
        at = parent.find(name) or 0
        for following in range(at, min(at + _AHEAD, len(parent.names))):
            path = _join(above, parent.names[following])
            if parent.sizes[following] == _NO_SIZE and path not in self._folders:
                self._submit(path)

    def _submit(self, path: str) -> Future[_Folder | None]:
        assert self._folders is not None
        # Threads of its own: a listing waits for requests about its files.
        if not self._threads or self._threads[0].process != os.getpid():
            self._threads[:] = [DaemonThreads(_THREADS, "tfrecreg-list")]
        future = self._folders[path] = self._threads[0].submit(self._load, path)
        return future

    def _load(self, path: str) -> _Folder | None:
        system, full, shown = self._place(path)
        web = is_web(self.root)
        try:
            infos = patiently(
                "list",
                shown,
                lambda timeout: invoke(
                    _PAGES * timeout, system, "ls", f"{full}/" if web else full, detail=True
                ),
            )
        except MissingFileError:
            return None
        if not web and any(
            str(each["name"]) == full and each.get("type") == "file" for each in infos
        ):
            return None  # a file
        names = _web_names(infos, full) if web else _names(infos, full, shown)
        files = [name for name, info in names.items() if info is not None]
        if web:
            looks = at_once(self._look, (_join(path, name) for name in files))
            entries = dict(zip(files, looks, strict=True))
        else:
            entries = {name: entry_of(name, names[name] or {}) for name in files}
        sizes, stamps = array("q"), array("q")
        ordered = sorted(names, key=_order)
        for name in ordered:
            entry = entries.get(name)
            sizes.append(_NO_SIZE if entry is None else entry.size)
            # A folder is identified by its number.
            stamps.append(_number(_join(path, name)) if entry is None else entry.mtime_ns)
        return _Folder(ordered, sizes, stamps)

    def _look(self, path: str) -> Entry:
        """The entry of a file whose server lists names alone."""
        shown = locate(self.root, path)
        info = self._info(path)
        if info is None:
            raise MissingFileError(
                f"`{path_text(shown)}` does not exist, and its folder lists it",
                hint="remove the link to it, or put the file there",
            )
        size_of(info, shown)
        return entry_of(path, info)


def _names(
    infos: Iterable[Mapping[str, Any]], full: str, shown: str
) -> dict[str, Mapping[str, Any] | None]:
    """Names in a folder, with size and stamp of each file; None for a folder."""
    start = f"{full}/"
    found: dict[str, Mapping[str, Any] | None] = {}
    for info in infos:
        name = str(info["name"])
        is_folder = info.get("type") == "directory"
        # Consoles of stores put an empty object into a folder, for the folder itself, which gcsfs
        # lists as a folder. S3 lists the start of a key with two slashes in the same way.
        is_prefix = is_folder and ("kind" not in info or info.get("storageClass") == "DIRECTORY")
        if name.rstrip("/") == full and not is_prefix:
            continue
        inside = name[len(start) :] if name.startswith(start) else ""
        if inside in ("", ".", "..") or "/" in inside or "\0" in inside:
            raise RawDataError(
                f"`{path_text(shown)}` holds the key `{path_text(inside)}/…`, which is not a path",
                hint="raw data are files in folders: rename the objects, or remove them",
            )
        if inside in found:
            sizes = [each for each in (found[inside], info) if each is not None]
            if any(int(each.get("size") or 0) for each in sizes):
                raise RawDataError(
                    f"`{path_text(f'{shown}/{inside}')}` is both an object and a folder",
                    hint="raw data are files in folders: rename the object, or remove it",
                )
            found[inside] = None
        else:
            found[inside] = None if is_folder else info
    return found


def _web_names(
    infos: Iterable[Mapping[str, Any]], full: str
) -> dict[str, Mapping[str, Any] | None]:
    """As :func:`_names`, of the links on a page that lists a folder. Others are left out."""
    found: dict[str, Mapping[str, Any] | None] = {}
    for info in infos:
        link = str(info["name"]).removeprefix(f"{full}/")
        name = unquote(link.removesuffix("/"))
        # Links for sorting have a query; names with these marks could not be asked for.
        if name not in ("", ".", "..") and not any(mark in name for mark in "/?#\0"):
            found[name] = None if link.endswith("/") else info
    return found


def _entry_at(folder: _Folder, path: str, at: int) -> Entry:
    size, stamp = folder.sizes[at], folder.stamps[at]
    inside = _join(path, folder.names[at])
    if size == _NO_SIZE:
        return Entry(inside, "dir", 0, 0, stamp)
    return Entry(inside, "file", size, stamp, 0)


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _order(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _number(path: str) -> int:
    return int.from_bytes(blake3(_order(path)).digest(8), "little") >> 1
