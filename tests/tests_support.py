"""Small things that several test folders need. On sys.path by `pythonpath` in pyproject.toml."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["flip", "interruptible", "tree"]


@contextmanager
def interruptible() -> Iterator[None]:
    """Children that are started in the block die of ^C, also where this process ignores it.

    A shell starts what runs in its background (`make test &`) with the signal ignored, which
    children inherit.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def tree(folder: Path, *, ignore: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Every file below `folder` with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in ignore
    }


def flip(path: Path, at: int, bits: int = 0x10) -> None:
    """Damage one byte of a file, as a new file: the old bytes may be linked elsewhere."""
    data = bytearray(path.read_bytes())
    data[at] ^= bits
    path.unlink()
    path.write_bytes(bytes(data))
