"""The locks of a registry, by which the commands of one machine take turns.

A change of a dataset holds its lock, and shares that of the registry. Garbage collection holds the
registry's lock exclusively, so no other change is in progress.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.flock import exclusive, exclusive_if_free, held_shared
from tfrecreg.core.storage.paths import advice, path_text
from tfrecreg.core.values.errors import StorageError, UsageError

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
