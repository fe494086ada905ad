"""Locks that keep two commands from doing the same work. Correctness never rests on them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

from tfrecreg.errors import StorageError
from tfrecreg.registry import layout
from tfrecreg.registry.registry import Registry
from tfrecreg.storage.flock import exclusive
from tfrecreg.storage.paths import advice, path_text

__all__ = ["locked", "locked_settings"]

_held: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())
"""The locks that whoever runs this holds: it need not wait for itself."""


@contextlib.contextmanager
def locked(
    registry: Registry, dataset: str, waiting: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold the lock of `dataset` on this machine; wait for whoever has it.

    Who holds it may take it again, so that several operations can be made one.

    Whoever takes it is about to write, so what git and DVC are to ignore says so from then on: a
    registry that was cloned comes without `.tfrecreg/` and `versions/`.

    Args:
        registry: the registry.
        dataset: its name.
        waiting: called once if somebody else has the lock.

    Raises:
        StorageError: the registry cannot be written.
    """
    path = Path(registry.storage.root) / layout.lock_path(dataset)
    held = _held.get()
    if path in held:
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(exclusive(str(path), waiting))
        except OSError as error:
            raise StorageError(
                f"the registry `{path_text(registry.storage.root)}` cannot be written: "
                f"{error.strerror}",
                hint=advice(error) or "check the permissions of the folder",
            ) from None
        for name in layout.IGNORES:
            registry.storage.put_if_absent(name, layout.IGNORE_ALL)
        before = _held.set(held | {path})
        try:
            yield
        finally:
            _held.reset(before)


@contextlib.contextmanager
def locked_settings(registry: Registry) -> Iterator[None]:
    """Hold the lock of what all datasets share, while `tfrecreg.toml` is read and written anew.

    Whoever wants the lock of a dataset too takes that one first.

    Raises:
        StorageError: the registry cannot be written.
    """
    with locked(registry, layout.SETTINGS):
        yield
