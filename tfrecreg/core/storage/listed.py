"""Raw data behind a URL. Each folder is listed only once.

All listings are made by the process that opened the storage. A folder is listed when the folder is
first needed. The process keeps the names, sizes and stamps of objects, about 120 bytes per object.
A worker process gets the storage as a pickle and lists nothing.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from urllib.parse import unquote

from blake3 import blake3

from tfrecreg.core.storage.file_systems import at_once, awaited, invoke, patiently, shared_threads
from tfrecreg.core.storage.interface import Entry, Follow
from tfrecreg.core.storage.paths import is_web, locate, named_url, without_secrets
from tfrecreg.core.storage.remote import RemoteStorage, entry_of, size_of
from tfrecreg.core.storage.remote_reader import ReadAhead, active
from tfrecreg.core.values.errors import MissingFileError, RawDataError, UsageError
from tfrecreg.core.values.text import DOCS

_THREADS = 8
_WALKED = 3
"""Number of subfolders of a folder to list before further subfolders are listed ahead."""
_AHEAD = 16
_PAGES = 10
"""A listing may take this many times as long as a request, because it needs one request per 1,000
names.
"""
_NO_SIZE = -1


def listed_storage(url: str) -> ListedStorage:
    """The storage of raw data behind a URL that a user wrote."""
    shown = without_secrets(url)
    if shown != url:
        raise UsageError(
            f"raw data are not read from `{shown}`: the URL holds a password or a query",
            hint="give the folder's URL without it, and put credentials into the environment: "
            f"{DOCS}/remote-data.md",
        )
    return ListedStorage(named_url(url))


class _Folder(NamedTuple):
    """The content of a folder, in the order of the names' bytes."""

    names: list[str]
    sizes: Sequence[int]
    """The size of each file in bytes; :data:`_NO_SIZE` for a folder."""
    stamps: Sequence[int]
    """For a file, the time as in :class:`Entry`. For a folder, its number."""

    def find(self, name: str) -> int | None:
        at = bisect_left(self.names, _order(name), key=_order)
        return at if at < len(self.names) and self.names[at] == name else None

    def is_folder(self, name: str) -> bool:
        at = self.find(name)
        return at is not None and self.sizes[at] == _NO_SIZE


class ListedStorage(RemoteStorage):
    """Raw data below one URL."""

    __slots__ = ("_folders", "_listed")

    _folders: dict[str, Future[_Folder | None]] | None
    """Folders by path. None in a worker process, which asks for single objects."""
    _listed: dict[str, int]
    """Number of subfolders that were requested, by the path of their parent folder."""

    def __init__(self, root: str) -> None:
        RemoteStorage.__init__(self, root)
        self._begin({})

    def __setstate__(self, state: tuple[str, str]) -> None:
        RemoteStorage.__setstate__(self, state)
        self._begin(None)

    def _begin(self, folders: dict[str, Future[_Folder | None]] | None) -> None:
        # The base class is frozen.
        object.__setattr__(self, "_folders", folders)
        object.__setattr__(self, "_listed", {})

    def forget(self) -> None:
        """Forget all facts about files, so that the next call asks the store again."""
        if self._folders is not None:
            self._begin({})

    def reading_ahead(
        self, paths: Iterable[str], listed: Iterable[Entry]
    ) -> AbstractContextManager[None]:
        sizes = {entry.path: entry.size for entry in listed}  # works for web servers as well
        sized = ((path, sizes[path]) for path in paths if path in sizes)
        return active(ReadAhead(self.root, self.read_object, sized))

    def expect_folder(self) -> None:
        shown = self.root
        found = self._folder("")
        if found is not None and found.names:
            return
        if is_web(self.root):
            raise UsageError(
                f"`{shown}` lists no files: a web server with raw data must list its folders",
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
        # The same order as on a disk: `a`, `a-b` and `a/b` are in order of their bytes.
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
        assert self._folders is not None
        found = self._folders.get(path)
        if path not in self._listed:
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
        return awaited(found)

    def _list_ahead(self, above: str, parent: _Folder, name: str) -> None:
        assert self._folders is not None
        at = parent.find(name) or 0
        for following in range(at, min(at + _AHEAD, len(parent.names))):
            path = _join(above, parent.names[following])
            if parent.sizes[following] == _NO_SIZE and path not in self._folders:
                self._submit(path)

    def _submit(self, path: str) -> Future[_Folder | None]:
        assert self._folders is not None
        # Separate threads, because a listing waits for requests about its files.
        threads = shared_threads("tfrecreg-list", _THREADS)
        future = self._folders[path] = threads.submit(self._load, path)
        return future

    def _load(self, path: str) -> _Folder | None:
        system, full, shown = self.place(path)
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
            # The number stands for the folder's identity.
            number = int.from_bytes(blake3(_order(_join(path, name))).digest(8), "little") >> 1
            stamps.append(number if entry is None else entry.mtime_ns)
        return _Folder(ordered, sizes, stamps)

    def _look(self, path: str) -> Entry:
        """Ask the server for the entry of a file, because the listing has no sizes."""
        shown = locate(self.root, path)
        info = self._info(path)
        if info is None:
            raise MissingFileError(f"`{shown}` does not exist, although its folder lists it")
        size_of(info, shown)
        return entry_of(path, info)


def _names(
    infos: Iterable[Mapping[str, Any]], full: str, shown: str
) -> dict[str, Mapping[str, Any] | None]:
    """The store's facts about each file in a folder, by name. The value for a subfolder is None."""
    start = f"{full}/"
    found: dict[str, Mapping[str, Any] | None] = {}
    for info in infos:
        name = str(info["name"])
        is_folder = info.get("type") == "directory"
        # Consoles of stores create an empty object for a folder, which gcsfs lists as a folder in
        # itself. S3 lists the start of a key with two slashes in the same way.
        is_prefix = is_folder and ("kind" not in info or info.get("storageClass") == "DIRECTORY")
        if name.rstrip("/") == full and not is_prefix:
            continue
        inside = name[len(start) :] if name.startswith(start) else ""
        if inside in ("", ".", "..") or "/" in inside or "\0" in inside:
            raise RawDataError(
                f"`{shown}` holds the key `{inside}/…`, which is not a path",
            )
        if inside in found:
            sizes = [each for each in (found[inside], info) if each is not None]
            if any(int(each.get("size") or 0) for each in sizes):
                raise RawDataError(
                    f"`{shown}/{inside}` is both an object and a folder",
                )
            found[inside] = None
        else:
            found[inside] = None if is_folder else info
    return found


def _web_names(
    infos: Iterable[Mapping[str, Any]], full: str
) -> dict[str, Mapping[str, Any] | None]:
    """Like :func:`_names`, but for links on a page that lists a folder. Ignores other links."""
    found: dict[str, Mapping[str, Any] | None] = {}
    for info in infos:
        link = str(info["name"]).removeprefix(f"{full}/")
        name = unquote(link.removesuffix("/"))
        # Links that sort the page have a query. Names with these characters cannot be requested.
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
