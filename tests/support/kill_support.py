"""A process that dies at the n-th call of the storage."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from child_support import Child, apart

from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.writer import LocalWriter

WATCHED = {
    LocalStorage: (
        *("stat", "list", "open", "read", "create", "put_if_absent", "rename_dir"),
        *("replace_dir", "sync_dir", "link", "remove"),
    ),
    LocalWriter: ("write", "close"),
}


@contextmanager
def killing(at: int) -> Iterator[Callable[[], int]]:
    """Die at the call number `at` of the storage; half of the trials before it, half behind it."""
    calls = 0
    originals: list[tuple[type, str, Any]] = []

    def watched(original: Any) -> Any:
        @functools.wraps(original)
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            mine = calls
            if mine == at and at % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return original(*arguments, **named)
            finally:  # also of a call that fails, such as one for a file that is not there
                if mine == at:
                    os.kill(os.getpid(), signal.SIGKILL)

        return call

    for kind, names in WATCHED.items():
        for name in names:
            originals.append((kind, name, kind.__dict__[name]))
            setattr(kind, name, watched(kind.__dict__[name]))
    try:
        yield lambda: calls
    finally:
        for kind, name, original in originals:
            setattr(kind, name, original)


def in_child(work: Callable[[], object], at: int) -> bool:
    """Run `work` in a forked child that dies at its call `at`; whether it lived to the end."""

    def killed(tell: object) -> None:
        with killing(at):
            work()

    ended = Child(killed).join()
    assert ended.failure is None, ended.failure.trace if ended.failure else ""
    return not ended.killed


def calls_of(work: Callable[[], object]) -> int:
    """How many calls of the storage some work makes. It is done, in a process of its own."""

    def counted() -> int:
        with killing(0) as count:
            work()
            return count()

    total: int = apart(counted)
    return total
