"""Items of one split in the order of a plan, on disk where memory should not hold them.

Memory has 32 bytes of an item: its place in the order, and that of its data. The data are in memory
up to a limit, then in a temporary file without a name, which ends with the process.
"""

from __future__ import annotations

import mmap
import tempfile
import weakref
from array import array
from collections.abc import Iterator, Sequence
from typing import IO, overload

import msgspec
import numpy as np
import numpy.typing as npt

from tfrecreg.errors import StorageError
from tfrecreg.sources import Item
from tfrecreg.storage.paths import advice

KEY_BYTES = 16
"""Bytes of an order key."""

_HELD = 1 << 25
"""Bytes of items that are kept in memory."""
_AT_ONCE = 1 << 12
"""Items that are decoded ahead."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[bytes, int, bytes])


class ItemStore:
    """Takes the items of a split in any order and gives them back in that of their keys.

    Args:
        split: their split.
    """

    def __init__(self, split: str) -> None:
        self.split = split
        self.size = 0
        """Sum of the items' estimated bytes."""
        self._keys = bytearray()
        self._ends = array("q")
        self._held = bytearray()
        self._written = 0
        self._file: IO[bytes] | None = None
        self._data: bytearray | mmap.mmap = self._held
        self._order: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, item: Item, key: bytes) -> None:
        """Add an item.

        Args:
            item: of this split.
            key: its place in the order, 16 bytes.

        Raises:
            StorageError: the folder of temporary files has no room.
        """
        self._keys += key
        name = item.key.encode("utf-8", "surrogateescape")
        self._held += _ENCODER.encode((name, item.size, item.state))
        self._ends.append(self._written + len(self._held))
        self.size += item.size
        if len(self._held) >= _HELD:
            self._spill()

    def sort(self) -> Item | None:
        """Order the items, after the last one was added.

        Returns:
            an item whose key in the split another one has, too; None if there is none.

        Raises:
            StorageError: as for :meth:`add`.
        """
        if self._file is not None:
            self._spill()
            self._data = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        keys = np.frombuffer(bytes(self._keys), ">u8").reshape(-1, 2)
        self._keys = bytearray()
        order = np.lexsort((keys[:, 1], keys[:, 0])).astype(np.int64)
        keys = keys[order]
        same = np.flatnonzero((keys[1:] == keys[:-1]).all(axis=1))
        self._order = order
        for first in same.tolist():
            one, other = self.items(first, first + 2)
            if one.key == other.key:
                return one
        return None

    def share(self, start: int, stop: int) -> Sequence[Item]:
        """The items from `start` to `stop` in the order, as a tuple unless they are on disk."""
        return self.items(start, stop) if self._file is None else ItemShare(self, start, stop)

    def items(self, start: int, stop: int) -> tuple[Item, ...]:
        """As :meth:`share`, in memory."""
        rows = self._order[start:stop]
        ends = np.frombuffer(self._ends, np.int64)
        starts = np.where(rows > 0, ends[rows - 1], 0).tolist()
        data, found = memoryview(self._data), []
        for first, last in zip(starts, ends[rows].tolist(), strict=True):
            name, size, state = _DECODER.decode(data[first:last])
            found.append(Item(self.split, name.decode("utf-8", "surrogateescape"), size, state))
        return tuple(found)

    def _spill(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="tfrecreg-plan-")  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            self._file.write(self._held)
            self._file.flush()
        except OSError as error:
            raise StorageError(
                f"cannot write the plan's items to `{tempfile.gettempdir()}`: {error.strerror}",
                hint=advice(error) or "TMPDIR names another folder",
            ) from error
        self._written += len(self._held)
        self._held.clear()


class ItemShare(Sequence[Item]):
    """Consecutive items of a store on disk. Its pickle has the items themselves."""

    def __init__(self, store: ItemStore, start: int, stop: int) -> None:
        self._store = store
        self._start = start
        self._stop = stop

    def __len__(self) -> int:
        return self._stop - self._start

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, at: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            return self._store.items(self._start + start, self._start + stop)[::step]
        number = range(self._start, self._stop)[at]
        return self._store.items(number, number + 1)[0]

    def __iter__(self) -> Iterator[Item]:
        for start in range(self._start, self._stop, _AT_ONCE):
            yield from self._store.items(start, min(start + _AT_ONCE, self._stop))

    def __reduce__(self) -> tuple[type[tuple[Item, ...]], tuple[tuple[Item, ...]]]:
        return tuple, (self._store.items(self._start, self._stop),)
