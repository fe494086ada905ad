"""The locks of a registry, which make the commands on one machine take turns.

A command that changes a dataset holds the dataset's lock and shares the registry's lock. Garbage
collection holds the registry's lock exclusively, so no other change is in progress.

Also makes new folders for the user, which appear whole or not at all.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import expect_no_url, path_text
from tfrecreg.core.storage.renames import exclusive, exclusive_if_free, held_shared
from tfrecreg.core.storage.writer import make_folders
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.values.text import safe

_held: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())
"""The locks that the current context holds, so that it does not wait for itself."""
_copies: dict[Path, int] = {}
"""Descriptors of this process's locks on copies of releases, by file; the latest used is last."""
_MOST_COPIES = 64
"""Maximum number of copies that a process protects. On macOS, a process can open only 256 files."""


@contextmanager
def dataset_lock(registry: Registry, dataset: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Wait for the lock of `dataset` on this machine, and hold it. The lock is reentrant.

    The holder is about to write, so the ignore files of git and DVC are made first. A cloned
    registry lacks them.
    """
    with (
        registry_lock(registry, layout.EVERYTHING, waiting, shared=True),
        registry_lock(registry, dataset, waiting),
    ):
        yield


@contextmanager
def registry_lock(
    registry: Registry, name: str, waiting: Callable[[], None], *, shared: bool = False
) -> Iterator[None]:
    """Hold the lock of a dataset, or of all datasets, including future ones (`EVERYTHING`)."""
    _expect_no_starting_worker()
    path = Path(registry.storage.root) / layout.lock_path(name)
    held = _held.get()
    if path in held:
        yield
        return
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(exclusive(str(path), waiting, shared=shared))
        except OSError as error:
            raise _refused(registry, error) from None
        for ignored in layout.IGNORES:
            registry.storage.put_if_absent(ignored, layout.IGNORE_ALL)
        before = _held.set(held | {path})
        try:
            yield
        finally:
            _held.reset(before)


def _expect_no_starting_worker() -> None:
    """Refuse a lock to a worker process that is importing its parent's script, because the parent
    may hold the lock while it waits for the worker.
    """
    processes = sys.modules.get("multiprocessing.process")
    # multiprocessing sets `_inheriting` while a new process imports the main module.
    if processes is not None and getattr(processes.current_process(), "_inheriting", False):
        raise UsageError(
            "a worker process is importing this script, which changes a registry: the script "
            'needs an `if __name__ == "__main__":`'
        )


def hold_copy(registry: Registry, folder: str) -> None:
    """Forbid removal of a release's copy until this process ends or has read many other copies."""
    path = _copy_lock(registry, folder)
    if path in _copies:
        _copies[path] = _copies.pop(path)
        return
    with suppress(OSError):  # a registry that cannot be written, or that has no locks yet
        _copies[path] = held_shared(str(path))
    while len(_copies) > _MOST_COPIES:
        os.close(_copies.pop(next(iter(_copies))))


@contextmanager
def copy_unless_read(registry: Registry, folder: str) -> Iterator[bool]:
    """Prevent reads of a release's copy by other processes. Yields False if the copy is in use."""
    path = _copy_lock(registry, folder)
    handle = _copies.pop(path, None)
    if handle is not None:
        os.close(handle)
    with ExitStack() as stack:
        try:
            free = stack.enter_context(exclusive_if_free(str(path)))
        except OSError as error:
            raise _refused(registry, error) from None
        yield free


def _copy_lock(registry: Registry, folder: str) -> Path:
    return Path(registry.storage.root) / layout.lock_path(folder.replace("/", "@"))


def _refused(registry: Registry, error: OSError) -> StorageError:
    return StorageError(
        f"the registry `{path_text(registry.storage.root)}` cannot be written: {error.strerror}"
    )


_OURS = (layout.BUILDS, layout.RELEASES, layout.VERSIONS, layout.STATE)
"""Folders of a registry whose files only tfrecreg and DVC may write."""

_HIDDEN = re.compile(r"\.tfrecreg-(export|plan|salvage|site)\.[0-9a-f]{16}\.tmp")


def free_folder(folder: str | os.PathLike[str], registry: Registry | None) -> Path:
    """The absolute path of `folder`; refuses a folder that exists and is not empty."""
    text = os.fsdecode(folder)
    shown = safe(text, limit=1000)
    expect_no_url(text, "only folders on this machine can be written")
    try:
        path = Path(text).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"`{shown}` does not name a folder: {error!s}") from None
    for folder in _OURS:
        if registry and path.is_relative_to(Path(registry.storage.root).resolve() / folder):
            raise UsageError(
                f"`{shown}` is in `{folder}/` of the registry, but only builds and releases belong "
                "there"
            )
    _require_free(path, shown)
    return path


@contextmanager
def new_folder(path: Path, what: str = "export") -> Iterator[LocalStorage]:
    """An unfinished folder next to `path`, which is renamed to `path` if the ``with`` block
    succeeds, and removed if it fails. If the process is killed, the folder stays until the next
    call that creates one in the same parent folder. It is locked while a process fills it.
    """
    import secrets  # it imports `hmac` and more, which few need

    missing = [each for each in path.parents if not each.exists()]
    name = f".tfrecreg-{what}.{secrets.token_hex(8)}.tmp"  # as in _HIDDEN
    beside = LocalStorage(path.parent)
    for entry in list(beside.list(recursive=False)):
        if entry.kind == "dir" and _HIDDEN.fullmatch(entry.path):
            with suppress(StorageError):  # this user may not remove it
                beside.remove_abandoned(entry.path)
    try:
        handle = _make_locked(str(path.parent / name))
        try:
            yield LocalStorage(path.parent / name)
            _put_in_place(beside, name, path)
        finally:
            os.close(handle)
    except BaseException:
        # Report the original failure, not a failure of the cleanup.
        with suppress(StorageError):
            beside.remove(name)
        with suppress(OSError):
            for each in missing:
                each.rmdir()
        raise


def _make_locked(path: str) -> int:
    while True:
        try:
            make_folders(path)
            handle = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise StorageError(f"`{path}` cannot be made: {error.strerror}") from error
        with suppress(OSError):  # a file system without locks: abandoned folders stay
            fcntl.flock(handle, fcntl.LOCK_EX)
        # Between the two calls the folder was not locked, so another process may have removed it.
        if os.fstat(handle).st_nlink:
            return handle
        os.close(handle)


def _require_free(path: Path, shown: str) -> None:
    entry = LocalStorage(path.parent).stat(path.name) if path.name else None
    if path.name and entry is None:
        return
    if entry is not None and entry.kind != "dir":
        raise UsageError(f"`{shown}` is not a folder")
    if next(LocalStorage(path).list(recursive=False), None) is not None:
        with suppress(StorageError):
            # The process that filled the folder may have been killed before its name was durable.
            LocalStorage(path.parent).sync_dir("")
        raise UsageError(f"`{shown}` is not empty: name an empty or a new folder")
    # An empty folder can be replaced, but not in these two cases.
    if path.is_mount():
        raise UsageError(f"`{shown}` is a mount point")
    if path == Path.cwd():
        raise UsageError(f"`{shown}` is the current folder")


def _put_in_place(beside: LocalStorage, name: str, path: Path) -> None:
    shown = safe(str(path), limit=1000)
    try:
        # rmdir(2) removes only empty folders, so added files are never lost.
        path.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise UsageError(f"`{shown}` was written to by another process") from None
        raise StorageError(f"`{shown}` cannot be replaced: {error.strerror}") from error
    if not beside.rename_dir(name, path.name):
        raise UsageError(f"`{shown}` was created by another process")
