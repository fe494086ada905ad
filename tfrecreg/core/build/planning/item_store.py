"""Items of one split in the order of a plan, on disk where memory should not hold them.

Memory has 40 bytes of an item: its order key, its number in the order, its size and the place of
its data. The data are in memory up to a limit, then in a temporary file without a name, which ends
with the process.
"""

from __future__ import annotations

import mmap
import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, overload

import msgspec
import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.build.sources.interface import Item
from tfrecreg.core.storage.paths import advice
from tfrecreg.core.values.errors import StorageError

_Ints = npt.NDArray[np.int64]

_KEY = b"tfrecreg item order v1".ljust(32, b"\0")
_ORDER_KEY = np.dtype("S16")
"""An order key. NumPy ignores zeros at its end, which does not change its place among others."""

_HELD = 1 << 25
"""Bytes of items that are kept in memory."""
_AT_ONCE = 1 << 12
"""Items that are decoded ahead."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[bytes, int, bytes])


def order_key(split: str, key: str) -> bytes:
    """The sort key of an item in its split: 16 bytes of keyed blake3 over ``split NUL key``."""
    name = f"{split}\0{key}".encode("utf-8", "surrogateescape")
    return blake3(name, key=_KEY).digest(_ORDER_KEY.itemsize)


class ItemStore:
    """Takes the items of a split in any order and returns them in that of a plan.

    A **position** is the number of an item in that order, from 0.
    """

    def __init__(self, split: str) -> None:
        self.split = split
        self._keys = bytearray()
        self._sizes = array("q")
        self._ends = array("q")
        self._held = bytearray()
        self._written = 0
        self._file: IO[bytes] | None = None
        self._data: bytearray | mmap.mmap = self._held
        self._order: _Ints = np.empty(0, np.int64)
        self._sorted: npt.NDArray[np.bytes_] = np.empty(0, _ORDER_KEY)

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, item: Item) -> None:
        """Add an item of this split."""
        self._keys += order_key(self.split, item.key)
        name = item.key.encode("utf-8", "surrogateescape")
        self._held += _ENCODER.encode((name, item.size, item.state))
        self._sizes.append(item.size)
        self._ends.append(self._written + len(self._held))
        if len(self._held) >= _HELD:
            self._spill()

    def sort(self) -> Item | None:
        """Order the items, after the last one was added."""
        if self._file is not None:
            self._spill()
            self._data = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        keys = np.frombuffer(self._keys, _ORDER_KEY)
        self._keys = bytearray()
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys = keys[self._order]
        same = np.flatnonzero(keys[1:] == keys[:-1])
        return self.pick(same[:1])[0] if same.size else None

    def find(self, names: Iterable[str]) -> _Ints:
        """The position of the item with each of these keys; -1 for an unknown key."""
        wanted = np.frombuffer(b"".join(order_key(self.split, name) for name in names), _ORDER_KEY)
        at = np.searchsorted(self._sorted, wanted)
        at[at == len(self)] = 0
        at[self._sorted[at] != wanted] = -1
        return at

    def sizes(self, positions: _Ints) -> _Ints:
        """The estimated payload bytes of items."""
        found: _Ints = np.frombuffer(self._sizes, np.int64)[self._order[positions]]
        return found

    def pick(self, positions: _Ints) -> Sequence[Item]:
        """The items at these positions, as a tuple unless they are on disk."""
        rows = self._order[positions]
        return self._read(rows) if self._file is None else ItemShare(self._read, rows)

    def _read(self, rows: _Ints) -> tuple[Item, ...]:
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
    """Items of a store on disk. The pickle has the items themselves."""

    def __init__(self, read: Callable[[_Ints], tuple[Item, ...]], rows: _Ints) -> None:
        self._read = read
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, at: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(at, slice):
            return self._read(self._rows[at])
        return self._read(self._rows[[at]])[0]

    def __iter__(self) -> Iterator[Item]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self._read(self._rows[start : start + _AT_ONCE])

    def __reduce__(self) -> tuple[type[tuple[Item, ...]], tuple[tuple[Item, ...]]]:
        return tuple, (self._read(self._rows),)
