"""The locks of a registry, by which the commands of one machine take turns.

A change of a dataset holds its lock, and shares that of the registry. Garbage collection holds the
registry's lock exclusively, so no other change is in progress.

A new folder for the user: its name has to be free, and it appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import advice, expect_no_url, path_text
from tfrecreg.core.storage.renames import exclusive, exclusive_if_free, held_shared
from tfrecreg.core.storage.writer import make_folders
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.values.text import safe

_held: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())
"""The locks held by the current context, which need not wait for itself."""
_copies: dict[Path, int] = {}
"""The locks on copies of releases that this process reads, with their descriptors, latest last."""
_MOST_COPIES = 64
"""No command reads more at a time, and a process may have few files open: 256 on macOS."""


@contextlib.contextmanager
def dataset_lock(
    registry: Registry, dataset: str, waiting: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold the lock of `dataset` on this machine; wait for the current holder.

    The lock is reentrant, so that several operations can be combined.

    The holder is about to write, so the files for git and DVC to ignore are listed from then on: a
    registry that was cloned comes without `.tfrecreg/` and `versions/`.
    """
    with (
        _lock(registry, layout.EVERYTHING, waiting, shared=True),
        _lock(registry, dataset, waiting),
    ):
        yield


@contextlib.contextmanager
def locked_registry(registry: Registry, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of all datasets, including future ones."""
    with _lock(registry, layout.EVERYTHING, waiting):
        yield


@contextlib.contextmanager
def _lock(
    registry: Registry,
    name: str,
    waiting: Callable[[], None] | None = None,
    *,
    shared: bool = False,
) -> Iterator[None]:
    _expect_no_starting_worker()
    path = Path(registry.storage.root) / layout.lock_path(name)
    held = _held.get()
    if path in held:
        yield
        return
    with contextlib.ExitStack() as stack:
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
    """Refuse a lock to a worker process that is importing the script of its parent.

    The parent may hold the lock, and waits for the worker.
    """
    processes = sys.modules.get("multiprocessing.process")
    # Set while a new process imports the main module, as multiprocessing's own check has it.
    if processes is not None and getattr(processes.current_process(), "_inheriting", False):
        raise UsageError(
            "a worker process is importing this script, which changes a registry",
            hint="a script that asks for more than one job keeps its code under "
            '`if __name__ == "__main__":`',
        )


def hold_copy(registry: Registry, folder: str) -> None:
    """Keep the copy of a release from being removed for as long as this process lives.

    Of a process that goes over many releases, the last 64 are kept so.
    """
    path = _copy_lock(registry, folder)
    if path in _copies:
        _copies[path] = _copies.pop(path)
        return
    if not path.parent.is_dir():
        return
    handle = held_shared(str(path))
    if handle is not None:
        _copies[path] = handle
    while len(_copies) > _MOST_COPIES:
        os.close(_copies.pop(next(iter(_copies))))


@contextlib.contextmanager
def copy_unless_read(registry: Registry, folder: str) -> Iterator[bool]:
    """Keep other processes from beginning to read the copy of a release, in order to remove it."""
    path = _copy_lock(registry, folder)
    handle = _copies.pop(path, None)
    if handle is not None:
        os.close(handle)
    with contextlib.ExitStack() as stack:
        try:
            free = stack.enter_context(exclusive_if_free(str(path)))
        except OSError as error:
            raise _refused(registry, error) from None
        yield free


def _copy_lock(registry: Registry, folder: str) -> Path:
    return Path(registry.storage.root) / layout.lock_path(folder.replace("/", "@"))


def _refused(registry: Registry, error: OSError) -> StorageError:
    return StorageError(
        f"the registry `{path_text(registry.storage.root)}` cannot be written: {error.strerror}",
        hint=advice(error) or "check the permissions of the folder",
    )


_OURS = (layout.BUILDS, layout.RELEASES, layout.VERSIONS, layout.STATE)
"""Folders of a registry whose files manifests and DVC vouch for."""

_PREFIX, _SUFFIX = ".tfrecreg-", ".tmp"
_HIDDEN = re.compile(r"\.tfrecreg-(export|plan|salvage|site)\.[0-9a-f]{16}\.tmp")

_HINT = "name a folder that does not exist yet, or an empty one: {} never overwrites"


def free_folder(
    folder: str | os.PathLike[str], registry: Registry | None, what: str = "an export"
) -> Path:
    """The absolute path of `folder`, which is empty or does not exist."""
    text = os.fsdecode(folder)
    shown = safe(text, limit=1000)
    expect_no_url(text, "a folder")
    try:
        path = Path(text).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"`{shown}` does not name a folder: {safe(str(error))}", hint=_HINT.format(what)
        ) from None
    if not text:
        raise UsageError("`` does not name a folder", hint=_HINT.format(what))
    if registry is not None:
        _require_strange(path, Path(registry.storage.root).resolve(), shown)
    _require_free(path, shown, _HINT.format(what))
    return path


def _require_strange(path: Path, root: Path, shown: str) -> None:
    if path.is_relative_to(root) and path.relative_to(root).parts[:1] in {(p,) for p in _OURS}:
        raise UsageError(
            f"`{shown}` is in `{path.relative_to(root).parts[0]}/` of the registry, which holds "
            "only builds and releases",
            hint=f"name a folder elsewhere: {safe(str(root.parent / path.name))}",
        )


@contextmanager
def new_folder(path: Path, what: str = "export") -> Iterator[LocalStorage]:
    """An unfinished folder beside `path`, renamed to it if the block succeeds.

    Left by an exception, it is removed without a trace, with the folders above it that were made
    for it. After a kill it stays, hidden and with a name that ends in ``.tmp``, until the next
    folder is made beside it: it is locked as long as somebody fills it.
    """
    import secrets  # with `hmac` and more, which most readers of locks do not need

    missing = [each for each in path.parents if not each.exists()]
    name = f"{_PREFIX}{what}.{secrets.token_hex(8)}{_SUFFIX}"
    beside = LocalStorage(path.parent)
    _remove_abandoned(beside)
    try:
        with _locked_folder(path.parent / name):
            yield LocalStorage(path.parent / name)
            _put_in_place(beside, name, path, _HINT.format(f"this {what}"))
    except BaseException:
        # Report the original failure, not that of the cleanup.
        with suppress(StorageError):
            beside.remove(name)
        with suppress(OSError):
            for each in missing:
                each.rmdir()
        raise


@contextmanager
def _locked_folder(path: Path) -> Iterator[None]:
    """Make a folder and lock it for as long as it is being filled."""
    try:
        handle = _make_locked(str(path))
    except OSError as error:
        raise StorageError(
            f"`{safe(str(path), limit=1000)}` cannot be made: {error.strerror}",
            hint=advice(error) or "check the permissions of the folder above it",
        ) from error
    try:
        yield
    finally:
        os.close(handle)


def _make_locked(path: str) -> int:
    while True:
        make_folders(path)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with suppress(OSError):  # a file system without locks: it is not removed there
            fcntl.flock(handle, fcntl.LOCK_EX)
        # Between the two calls it had no owner, and may have been removed.
        if os.fstat(handle).st_nlink:
            return handle
        os.close(handle)


def _remove_abandoned(beside: LocalStorage) -> None:
    """Remove unfinished folders of killed processes."""
    for entry in list(beside.list(recursive=False)):
        if entry.kind != "dir" or not _HIDDEN.fullmatch(entry.path):
            continue
        try:
            handle = os.open(Path(beside.root, entry.path), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue  # it was removed, or belongs to another user
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            beside.remove(entry.path)
        except (OSError, StorageError):
            continue  # it is being filled, or not ours to remove
        finally:
            os.close(handle)


def _require_free(path: Path, shown: str, hint: str) -> None:
    entry = LocalStorage(path.parent).stat(path.name) if path.name else None
    if path.name and entry is None:
        return
    if entry is not None and entry.kind != "dir":
        raise UsageError(f"`{shown}` is not a folder", hint=hint)
    if next(LocalStorage(path).list(recursive=False), None) is not None:
        with suppress(StorageError):
            # The process that filled it may have been killed before its name was durable.
            LocalStorage(path.parent).sync_dir("")
        raise UsageError(f"`{shown}` is not empty", hint=hint)
    # An empty folder gives way to the new one, which these cannot.
    if path.is_mount():
        raise UsageError(f"`{shown}` is a mount point", hint="name a new folder in it")
    if path == Path.cwd():
        raise UsageError(f"`{shown}` is the current folder", hint="name a new folder in it")


def _put_in_place(beside: LocalStorage, name: str, path: Path, hint: str) -> None:
    shown = safe(str(path), limit=1000)
    try:
        # rmdir(2) removes empty folders only, so nothing that was added is lost.
        path.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise UsageError(f"`{shown}` was written to by another process", hint=hint) from None
        raise StorageError(f"`{shown}` cannot be replaced: {error.strerror}", hint=hint) from error
    if not beside.rename_dir(name, path.name):
        raise UsageError(f"`{shown}` was created by another process", hint=hint)
