"""Storage of local POSIX files. Files behind URLs can be copied to unnamed local files."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import FileIO

from tfrecreg.core.storage.interface import Entry, EntryKind, Follow, Readable, Reader, Storage
from tfrecreg.core.storage.paths import (
    expect_small,
    leaves,
    locate,
    no_folder,
    refusal,
    translated,
)
from tfrecreg.core.storage.renames import move_to_free_name, replace
from tfrecreg.core.storage.writer import (
    LINKLESS,
    LOCKLESS,
    LocalWriter,
    make_folders,
    sync_folder,
)
from tfrecreg.core.values.errors import MissingFileError, StorageError, UsageError

# Descriptors, exact flags, links, and names that are not UTF-8 need os, not pathlib.


class LocalReader(Reader):
    """A regular file, open for reading."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            # O_NONBLOCK avoids waiting for a FIFO.
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            handle = os.open(path, flags)
            status = os.fstat(handle)
        except NotADirectoryError as error:
            raise MissingFileError(f"`{path}` does not exist") from error
        except OSError as error:
            raise refusal("read", path, error) from error
        if not stat.S_ISREG(status.st_mode):
            os.close(handle)
            raise StorageError(f"cannot read `{path}`: it is not a regular file")
        self._file = FileIO(handle)
        self.size, self.mtime_ns = status.st_size, status.st_mtime_ns

    def read_at(self, start: int, length: int) -> bytes:
        # A hot path: a context manager around the call would take longer than the system call.
        try:
            handle = self._file.fileno()
            if start + length > self.size:
                # pread(2) in Python allocates the requested size: never request more than the file
                # has.
                length = min(length, os.fstat(handle).st_size - start)
            if length <= 0:
                return b""
            data = os.pread(handle, length, start)
            if len(data) == length or not data:
                return data
            pieces = [data]
            missing = length - len(data)
            while missing and (data := os.pread(handle, missing, start + length - missing)):
                pieces.append(data)
                missing -= len(data)
        except OSError as error:
            raise refusal("read", self.path, error) from error
        return b"".join(pieces)

    def located(self, start: int, length: int) -> tuple[int, int, object] | None:
        return (self._file.fileno(), start, self) if start + length <= self.size else None

    def sync(self) -> None:
        """Make the file's bytes durable, even bytes that another process wrote."""
        with translated("sync", self.path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


_CHUNK = 1 << 22
_LINKLESS = LINKLESS | {errno.EXDEV}


@dataclass(frozen=True, slots=True, init=False)
class LocalStorage(Storage):
    """Files below one local folder."""

    root: str

    def __init__(self, root: str | os.PathLike[str]) -> None:
        text = os.fsdecode(root)
        if not text or "\0" in text:
            raise UsageError(f"`{text}` does not name a folder")
        try:
            object.__setattr__(self, "root", os.path.abspath(text))
        except FileNotFoundError as error:
            raise StorageError(
                f"`{text}` is relative to a current folder that no longer exists"
            ) from error

    def local_path(self, path: str = "") -> str:
        return locate(self.root, path)

    def below(self, path: str) -> LocalStorage:
        return LocalStorage(locate(self.root, path))

    def may_refuse(self) -> bool:
        return not os.access(self.root, os.X_OK)

    def stat(self, path: str, *, follow: Follow = "inside") -> Entry | None:
        full = locate(self.root, path)
        # A hot path: a context manager around the call would take as long as a system call.
        own = None
        try:
            status = own = os.lstat(full)
            if stat.S_ISLNK(own.st_mode):
                status = os.stat(full)
        except OSError as error:
            if own is None and isinstance(error, (FileNotFoundError, NotADirectoryError)):
                return None
            if own is None or error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise refusal("look at", full, error) from error
            return _entry_of(path, own)  # a link whose target is missing
        # An entry that is not a link may lie below a link.
        above = path if status is not own else path.rpartition("/")[0]
        if follow == "inside" and above and leaves(self.root, above):
            return Entry(path, "link", 0, own.st_mtime_ns, own.st_ino, own.st_dev)
        return _entry_of(path, status)

    def list(self, path: str = "", *, recursive: bool = True) -> Iterator[Entry]:
        return _walk(locate(self.root, path), path, recursive)

    def open(self, path: str) -> LocalReader:
        return LocalReader(locate(self.root, path))

    def read(self, path: str, *, limit: int = 1 << 28) -> bytes:
        with self.open(path) as reader:
            expect_small(reader.size, limit, reader.path)
            data = reader.read_at(0, limit + 1)
            expect_small(len(data), limit, reader.path)
        return data

    def create(self, path: str, *, durable: bool = True) -> LocalWriter:
        return LocalWriter(self._own(path), durable=durable)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        full = self._own(path)
        if os.path.lexists(full):
            return False
        writer = LocalWriter(full)
        try:
            writer.write(data)
            return writer.close_new()
        finally:
            writer.abort()

    def rename_dir(self, source: str, target: str) -> bool:
        old, new = self._pair(source, target)
        with translated("move", old, f" to `{new}`"):
            return move_to_free_name(old, new, self.root)

    def replace_dir(self, source: str, target: str) -> None:
        new, old = self._pair(source, target)
        with translated("put", new, f" in the place of `{old}`"):
            replace(new, old, self.root)

    def sync_dir(self, path: str) -> None:
        full = locate(self.root, path)
        with translated("sync", full):
            sync_folder(full)

    def link(
        self, source: str, target: str, *, origin: Readable | None = None, follow: bool = True
    ) -> None:
        new = self._own(target)
        full = locate(self.root if origin is None else origin.root, source)
        if not (follow or stat.S_ISREG(_mode(full) or 0)):
            with translated("link", new):
                make_folders(os.path.dirname(new))
                if os.path.islink(full):
                    os.symlink(os.readlink(full), new)
                else:
                    os.link(full, new)
                sync_folder(os.path.dirname(new))
            return
        with LocalReader(full) as reader:
            try:
                make_folders(os.path.dirname(new))
                # link(2) of a symbolic link links the link itself; objects in DVC's cache may be
                # symbolic links.
                os.link(os.path.realpath(full), new)
            except FileExistsError as error:
                raise _taken(new) from error
            except OSError as error:
                if error.errno not in _LINKLESS:
                    raise refusal("link", new, error) from error
                if os.path.lexists(new):
                    raise _taken(new) from None
                with self.create(target) as writer:
                    position = 0
                    while chunk := reader.read_at(position, _CHUNK):
                        writer.write(chunk)
                        position += len(chunk)
                return
            reader.sync()
        with translated("link", new):
            sync_folder(os.path.dirname(new))

    def remove(self, path: str) -> None:
        full = self._own(path)
        with translated("remove", full):
            while (mode := _mode(full)) is not None:
                # If another process removes the same files, the next round lists the rest.
                with suppress(FileNotFoundError):
                    if stat.S_ISDIR(mode):
                        shutil.rmtree(full)
                    else:
                        os.unlink(full)
                    sync_folder(os.path.dirname(full))

    def remove_abandoned(self, path: str) -> bool:
        full = self._own(path)
        with translated("remove", full):
            try:
                handle = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.remove(path)
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno in LOCKLESS:
                    return False
                raise
            finally:
                os.close(handle)
        return True

    def _own(self, path: str) -> str:
        """The absolute path of an entry to write, move or remove."""
        full = locate(self.root, path)
        if not path:
            raise UsageError(f"`{self.root}` is the root of the storage, not a name in it")
        folder = path.rpartition("/")[0]
        if folder and leaves(self.root, folder):
            end = os.path.realpath(os.path.join(self.root, folder))
            raise UsageError(
                f"`{full}` is not below `{self.root}`, because a symbolic link on "
                f"the way leads to `{end}`; nothing is changed there"
            )
        return full

    def _pair(self, source: str, target: str) -> tuple[str, str]:
        old, new = self._own(source), self._own(target)
        if f"{old}/".startswith(f"{new}/") or f"{new}/".startswith(f"{old}/"):
            raise UsageError(
                f"`{source}` cannot take the place of `{target}`: one folder contains the other"
            )
        return old, new


def _entry_of(path: str, status: os.stat_result) -> Entry:
    kind: EntryKind = "other"
    if stat.S_ISREG(status.st_mode):
        kind = "file"
    elif stat.S_ISDIR(status.st_mode):
        kind = "dir"
    elif stat.S_ISLNK(status.st_mode):
        kind = "link"
    size = status.st_size if kind == "file" else 0
    return Entry(path, kind, size, status.st_mtime_ns, status.st_ino, status.st_dev)


def _walk(full: str, path: str, recursive: bool) -> Iterator[Entry]:
    base = os.path.join(os.fsencode(full), b"")
    start = f"{path}/" if path else ""
    try:
        try:
            levels = [(b"", _names(base, recursive))]
        except (FileNotFoundError, NotADirectoryError):
            if os.path.lexists(full):
                raise no_folder(full) from None
            return
        while levels:
            folder, names = levels[-1]
            if not names:
                levels.pop()
                continue
            name = folder + names.pop()
            found: Entry | None = None
            # An entry that was removed since its folder was read is not an error.
            with suppress(FileNotFoundError, NotADirectoryError):
                if name.endswith(b"/"):
                    levels.append((name, _names(base + name, recursive)))
                else:
                    found = _entry_of(start + os.fsdecode(name), os.lstat(base + name))
            if found is not None:
                yield found
    except OSError as error:
        where = os.fsdecode(error.filename) if error.filename else full
        raise refusal("list", where, error) from error


def _names(folder: bytes, recursive: bool) -> list[bytes]:
    """The names in a folder, in descending order, because the caller takes them from the end.

    Each folder is in the list twice. Its name stands for the folder, and its name with a slash
    stands for its content. So `a`, `a-b` and `a/b` come in the order of their bytes.
    """
    names: list[bytes] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            names.append(entry.name)
            if recursive and entry.is_dir(follow_symlinks=False):
                names.append(entry.name + b"/")
    names.sort(reverse=True)
    return names


def _mode(full: str) -> int | None:
    try:
        return os.lstat(full).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _taken(full: str) -> StorageError:
    return StorageError(f"`{full}` exists already")


def user_cache() -> LocalStorage | None:
    """This user's folder for caches: `XDG_CACHE_HOME`, by default ``~/.cache``. It need not exist
    yet. None if the user has no home folder.
    """
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):  # the specification ignores relative paths
        folder = os.path.join(os.path.expanduser("~"), ".cache")
        if not os.path.isabs(folder):
            return None
    return LocalStorage(folder)


def open_local(storage: Readable, path: str) -> Reader:
    """Open a file to read it at many offsets.

    A file behind a URL is copied once to a temporary file in `TMPDIR`. The copy has no name, so it
    disappears with the reader or the process.

    Raises:
        StorageError: the file cannot be read, or the disk has no room for the copy.
    """
    reader = storage.open(path)
    if storage.local_path(path) is not None:
        return reader
    with reader:
        try:
            with ExitStack() as unless_copied:
                # No buffer: a buffer that cannot be written would fail again when it is closed.
                file = tempfile.TemporaryFile(buffering=0, prefix="tfrecreg-")  # noqa: SIM115
                unless_copied.callback(file.close)
                at = 0
                while piece := memoryview(reader.read_at(at, _CHUNK)):
                    at += len(piece)
                    while piece:
                        piece = piece[file.write(piece) :]
                unless_copied.pop_all()
        except OSError as error:
            raise StorageError(
                f"cannot copy `{locate(storage.root, path)}` into a temporary file of "
                f"{reader.size} bytes, in `TMPDIR`: {error.strerror or error}"
            ) from error
    return _CopyReader(file, reader.size)


class _CopyReader(LocalReader):
    def __init__(self, file: FileIO, size: int) -> None:
        self.path, self._file, self.size, self.mtime_ns = str(file.name), file, size, 0
