"""Fetching ahead along a sequence that is known: what is read next is on its way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

_REQUESTS = 64
"""Maximum number of blocks that are requested before they are read,"""
_MOST = 64
"""and of batches."""

T = TypeVar("T", bound=Sequence[Any])


def ahead(
    batches: Iterable[T], request: Callable[[T], int], *, most_requests: int = _REQUESTS
) -> Iterator[T]:
    """The same batches; those that follow are requested."""
    waiting: deque[tuple[T, int]] = deque()
    requested = 0
    for batch in batches:
        count = request(batch)
        waiting.append((batch, count))
        requested += count
        while len(waiting) > 1 and (requested > most_requests or len(waiting) > _MOST):
            first, count = waiting.popleft()
            requested -= count
            yield first
    for batch, _ in waiting:
        yield batch
