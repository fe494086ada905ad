"""What stores were found to have, remembered for a short while.

Opening a dataset asks about each of its files in several places: whether it is a file, whether it
has an index, in which state it is. Inside of :func:`looks_remembered` a store is asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

Info: TypeAlias = "Mapping[str, Any] | None"
"""What fsspec says of a file; None if there is none."""

_looks: ContextVar[dict[str, Info] | None] = ContextVar("looks", default=None)


@contextmanager
def looks_remembered() -> Iterator[None]:
    """A block in which a store is asked once about each URL; an inner block shares with its outer
    one.
    """
    known = _looks.get()
    token = _looks.set({} if known is None else known)
    try:
        yield
    finally:
        _looks.reset(token)


def looked(url: str, look: Callable[[], Info]) -> Info:
    """What is known about a URL, or else found by `look`."""
    known = _looks.get()
    if known is None:
        return look()
    if url not in known:
        known[url] = look()
    return known[url]


def remembered() -> dict[str, Info] | None:
    """What is known, to add to; None outside of :func:`looks_remembered`."""
    return _looks.get()
