"""An order in which records that lie together come about together, so that one read has many.

The numbers of records are cut into blocks of one size. In each epoch the blocks are permuted and
laid one after the other, and the row is cut into lanes of equal length. Each lane is permuted
within windows of a few blocks; places are dealt to lanes one by one. So records that follow each
other in an epoch are of as many random blocks as all lanes have in a window, and a block is used up
within a window of one lane, or of two where the end of a lane cuts it.

Hosts are dealt places in the same way. If their number divides that of the lanes, each host has
lanes of its own, and no two need the same block.

``docs/formats.md`` has the formula. It never changes after 1.0, since saved states depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from blake3 import blake3

from tfrecreg.builtin.training.orders.consumed import integer_of
from tfrecreg.builtin.training.orders.permutation import Permutation, RecordNumbers
from tfrecreg.core.values.amounts import parse_size
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

DEFAULT_WINDOW, DEFAULT_LANES = 8, 4
_PREFIX = "tfrecreg block order v1"
_CHUNK = 1 << 20
_MOST, _MOST_LANES = 1 << 40, 1 << 20
BlockSize = int | str


@dataclass(frozen=True, slots=True)
class Blocks:
    """How an order cuts records into blocks. States hold it."""

    records: int
    """Records of a block; the last one may have fewer."""
    window: int = DEFAULT_WINDOW
    """Blocks whose records are shuffled together in a lane."""
    lanes: int = DEFAULT_LANES
    """Lanes that places are dealt to."""

    def __post_init__(self) -> None:
        names = {"records": "block", "window": "block_window", "lanes": "block_lanes"}
        for name, given in names.items():
            number, most = getattr(self, name), _MOST_LANES if name == "lanes" else _MOST
            if not 1 <= number <= most:
                raise UsageError(
                    f"`{given}` should be a number from 1 {'on' if number < 1 else f'to {most}'}, "
                    f"found {number}",
                    hint='`order(seed=1, block="16MiB", block_window=8, block_lanes=4)`',
                )

    @property
    def mixed(self) -> int:
        """Records of the windows of all lanes."""
        return self.records * self.window * self.lanes

    def said(self) -> dict[str, int]:
        """What states say of them."""
        return asdict(self)

    @classmethod
    def of_size(
        cls, block: BlockSize | None, window: int, lanes: int, mean_bytes: float, name: str
    ) -> Blocks | None:
        """Blocks by a number of records, or by about so many bytes."""
        if block is None:
            if (window, lanes) != (DEFAULT_WINDOW, DEFAULT_LANES):
                raise UsageError(
                    "`block_window` and `block_lanes` are about blocks, and `block` is not given",
                    hint='`order(seed=1, block="16MiB", block_window=8)`',
                )
            return None
        window, lanes = integer_of("block_window", window), integer_of("block_lanes", lanes)
        if not isinstance(block, str):
            return cls(integer_of("block", block), window, lanes)
        try:
            size = parse_size(block)
        except ValueError as error:
            raise UsageError(
                f"`block` of an order of `{name}`: {error}, found `{safe(str(block), limit=100)}`",
                hint='`block=1024` is a number of records, `block="16MiB"` about so many bytes',
            ) from None
        return cls(max(1, round(size / max(1.0, mean_bytes))), window, lanes)

    @classmethod
    def of_states(cls, states: Sequence[Any]) -> Blocks | None:
        """Those of the first state; None if it has none, or is not a state."""
        first = states[0] if states else None
        said = first.get("block") if isinstance(first, Mapping) else None
        if said is None:
            return None
        names = ("records", "window", "lanes")
        numbers = [said.get(name) if isinstance(said, Mapping) else None for name in names]
        if not all(type(each) is int and 0 < each < 2**62 for each in numbers):
            raise UsageError(
                f"this is not the state of an order: its `block` is {safe(repr(said), limit=100)}",
                hint="pass what `order.state()` returned, for the same records",
            )
        return cls(*numbers)  # type: ignore[arg-type]


def expect_same_blocks(found: object, blocks: Blocks | None) -> None:
    """Refuse a state with other blocks than those of the first one."""
    said = None if blocks is None else blocks.said()
    if found != said:
        raise UsageError(
            f"the states are of different orders: with the blocks "
            f"`{safe(str(found), limit=200)}` and `{safe(str(said), limit=200)}`",
            hint="pass the states that all hosts saved at the same time",
        )


class BlockShuffle:
    """The records of an epoch by their places. Picklable."""

    def __init__(self, records: int, blocks: Blocks, seed: int, epoch: int) -> None:
        self._records, self._blocks = records, blocks
        self._names = f"{_PREFIX}\n{seed}\n{epoch}\n{blocks.records}\n"
        self._count = -(-records // blocks.records)
        self._permuted = Permutation(self._count, self._seed_of("blocks"), 0)
        self._window = min(blocks.records * blocks.window, max(1, records))

    def _seed_of(self, what: str) -> int:
        return int.from_bytes(blake3(f"{self._names}{what}\n".encode("ascii")).digest(8), "little")

    @cached_property
    def _short(self) -> tuple[int, int]:
        """Where the last block is in the row of blocks, and how many records it lacks."""
        lacking = self._count * self._blocks.records - self._records
        if not lacking:
            return self._count, 0
        for first in range(0, self._count, _CHUNK):
            places = np.arange(first, min(first + _CHUNK, self._count), dtype=np.int64)
            found = np.flatnonzero(self._permuted(places) == self._count - 1)
            if len(found):
                return first + int(found[0]), lacking
        raise AssertionError

    def __call__(self, places: RecordNumbers) -> RecordNumbers:
        """The records at these places."""
        if not len(places):
            return places
        size = self._blocks.records
        row = self._in_row(places)
        short, lacking = self._short
        if lacking:
            behind = row >= short * size + size - lacking
            row[behind] += lacking
        block, inside = np.divmod(row, size)
        found: RecordNumbers = self._permuted(block) * size + inside
        return found

    def _in_row(self, places: RecordNumbers) -> RecordNumbers:
        """The places in the row of blocks: shuffled in the windows of each lane."""
        lanes = self._blocks.lanes
        steps, lane = np.divmod(places, lanes)
        each, rest = divmod(self._records, lanes)
        starts = lane * each + np.minimum(lane, rest)
        windows, inside = np.divmod(steps, self._window)
        found: RecordNumbers = starts + windows * self._window
        names = lane * (self._records // self._window + 1) + windows
        order = np.argsort(names, kind="stable")
        cuts = np.flatnonzero(np.diff(names[order])) + 1
        for rows in np.split(order, cuts):
            mine, window = int(lane[rows[0]]), int(windows[rows[0]])
            length = each + (mine < rest) - window * self._window
            seed = self._seed_of(f"{mine}\n{window}")
            permuted = Permutation(min(self._window, length), seed, 0)
            found[rows] += permuted(inside[rows])
        return found
