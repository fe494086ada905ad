"""Computes permutations without storing them. Can shuffle by blocks and draw by weights.

``docs/formats.md`` has the formulas, which never change after 1.0: saved states depend on them. A
permutation is a generalized Feistel network with cycle-walking, from "Ciphers with Arbitrary Finite
Domains" by Black and Rogaway, CT-RSA 2002. Its round function uses the finalizer of SplitMix64, by
Steele, Lea and Flood, OOPSLA 2014. Weights become integers, so that sums are exact on every
machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.builtin.training.certificate import integer_of
from tfrecreg.builtin.training.selection import Selection
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.typed_values import parse_size

RecordNumbers = npt.NDArray[np.int64]

_ROUNDS = 16
"""Rounds of the network. With fewer, some permutations of five or six numbers are too frequent."""
_PREFIX = "tfrecreg order v1"
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_ALL_BITS = (1 << 64) - 1
_TO_62_BITS = np.uint64(2)
"""This shift leaves 62 bits, so the addition of a 31-bit half cannot overflow."""


class Permutation:
    """The permutation of the numbers from 0 to `size` - 1 for a seed and an epoch."""

    def __init__(self, size: int, seed: int, epoch: int) -> None:
        self._size = size
        root = isqrt(size)
        left = max(1, root + (root * root < size))
        self._left = np.uint64(left)
        self._right = np.uint64(-(-size // left))
        text = f"{_PREFIX}\n{seed}\n{epoch}\n{size}\n"
        keys = blake3(text.encode("ascii")).digest(8 * _ROUNDS)
        self._keys = np.frombuffer(keys, "<u8").astype(np.uint64)
        self._plain_keys: list[int] = self._keys.tolist()

    def __call__(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers at the given places."""
        found = self._once(places.astype(np.uint64))
        outside = np.flatnonzero(found >= self._size)
        while len(outside):
            found[outside] = self._once(found[outside])
            outside = outside[found[outside] >= self._size]
        return found.astype(np.int64)

    def one(self, place: int) -> int:
        """The number at one place. This is faster than a call with an array of one place."""
        a, b, keys = int(self._left), int(self._right), self._plain_keys
        while True:
            right, left = divmod(place, a)
            for number in range(0, _ROUNDS, 2):
                half = (right + keys[number]) & _ALL_BITS
                half = ((half ^ (half >> 30)) * 0xBF58476D1CE4E5B9) & _ALL_BITS
                half = ((half ^ (half >> 27)) * 0x94D049BB133111EB) & _ALL_BITS
                left = (left + ((half ^ (half >> 31)) >> 2)) % a
                half = (left + keys[number + 1]) & _ALL_BITS
                half = ((half ^ (half >> 30)) * 0xBF58476D1CE4E5B9) & _ALL_BITS
                half = ((half ^ (half >> 27)) * 0x94D049BB133111EB) & _ALL_BITS
                right = (right + ((half ^ (half >> 31)) >> 2)) % b
            place = left + a * right
            if place < self._size:
                return place

    def _once(self, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        right, left = np.divmod(numbers, self._left)
        for number in range(0, _ROUNDS, 2):
            left = (left + mix(right, self._keys[number])) % self._left
            right = (right + mix(left, self._keys[number + 1])) % self._right
        found: npt.NDArray[np.uint64] = left + self._left * right
        return found


def mix(half: npt.NDArray[np.uint64], key: np.uint64) -> npt.NDArray[np.uint64]:
    """62 bits per number: SplitMix64's finalizer, applied to the sum of the number and the key."""
    # Sums and products of arrays wrap around at 2^64 on purpose.
    mixed = half + key
    mixed = (mixed ^ (mixed >> _SHIFT_1)) * _MIX_1
    mixed = (mixed ^ (mixed >> _SHIFT_2)) * _MIX_2
    found: npt.NDArray[np.uint64] = (mixed ^ (mixed >> _SHIFT_3)) >> _TO_62_BITS
    return found


DEFAULT_WINDOW, DEFAULT_LANES = 8, 4
_BLOCK_ORDER_PREFIX = "tfrecreg block order v1"
_CHUNK = 1 << 20
_MOST = 1 << 40
BlockSize = int | str


@dataclass(frozen=True, slots=True)
class Blocks:
    """How an order cuts records into blocks. States hold it."""

    records: int
    """Number of records in a block; the last block may have fewer."""
    window: int = DEFAULT_WINDOW
    """Number of blocks whose records are shuffled together in a lane."""
    lanes: int = DEFAULT_LANES
    """Number of lanes. Successive places go to the lanes in turn."""

    def __post_init__(self) -> None:
        numbers = {"": self.records, "_window": self.window, "_lanes": self.lanes}
        for name, number in numbers.items():
            if not 1 <= number <= _MOST:
                raise UsageError(f"`block{name}` should be from 1 to {_MOST}, found {number}")

    @property
    def mixed(self) -> int:
        """Number of records in the windows of all lanes."""
        return self.records * self.window * self.lanes

    @classmethod
    def of_size(
        cls, block: BlockSize | None, window: int, lanes: int, mean_bytes: float, name: str
    ) -> Blocks | None:
        """Blocks of a given number of records, or of about a given number of bytes."""
        if block is None:
            if (window, lanes) != (DEFAULT_WINDOW, DEFAULT_LANES):
                raise UsageError("`block_window` and `block_lanes` need `block`")
            return None
        window, lanes = integer_of("block_window", window), integer_of("block_lanes", lanes)
        if not isinstance(block, str):
            return cls(integer_of("block", block), window, lanes)
        try:
            size = parse_size(block)
        except ValueError as error:
            raise UsageError(f"invalid `block` for `{name}`: {error}, found `{block}`") from None
        return cls(max(1, round(size / max(1.0, mean_bytes))), window, lanes)


class BlockShuffle:
    """Maps the places of an epoch to its records. Picklable."""

    def __init__(self, records: int, blocks: Blocks, seed: int, epoch: int) -> None:
        self._records, self._blocks = records, blocks
        self._names = f"{_BLOCK_ORDER_PREFIX}\n{seed}\n{epoch}\n{blocks.records}\n"
        self._count = -(-records // blocks.records)
        self._permuted = Permutation(self._count, self._seed_of("blocks"), 0)
        self._window = min(blocks.records * blocks.window, records)

    def _seed_of(self, what: str) -> int:
        return int.from_bytes(blake3(f"{self._names}{what}\n".encode("ascii")).digest(8), "little")

    @cached_property
    def _short(self) -> tuple[int, int]:
        """The last block's place after shuffling, and how many records this block lacks."""
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
        """Shuffle within each window of each lane. Return the resulting places in the row."""
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


ValuesOf: TypeAlias = Callable[[str], "npt.NDArray[np.float64]"]
"""Gives the value of an SQL expression for each record of the shards, shape (n,)."""

GIVEN = "numbers"
"""Messages and states use this name for weights that were given as numbers."""
_BY_CLASS = "class"
_CLASS = "dense_rank() OVER (ORDER BY label)"
_DRAWS_PREFIX = "tfrecreg draws v1"
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TO_53_BITS = np.uint64(9)
_BITS = 53
"""Float64 holds every integer of this many bits exactly."""
_MOST_BITS = 32


class Weights:
    """The relative frequency with which each record is drawn. Picklable."""

    def __init__(self, values: npt.ArrayLike, by: str, name: str) -> None:
        self.by = by
        try:
            numbers = np.asarray(values, np.float64)
        except (TypeError, ValueError):
            raise UsageError("weights should be one number per record") from None
        if numbers.ndim != 1:
            raise UsageError(f"weights should be one number per record, found {numbers.ndim} axes")
        bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
        if len(bad):
            shown = "NULL" if np.isnan(numbers[bad[0]]) else f"{numbers[bad[0]]:g}"
            raise UsageError(
                f"the weight of record {bad[0]} of `{name}` is {shown}, according to `{by}`"
            )
        largest = float(numbers.max(initial=0.0))
        if not largest:
            raise UsageError(f"no record of `{name}` has a weight above zero, according to `{by}`")
        bits = min(_BITS - len(numbers).bit_length(), _MOST_BITS)
        whole = np.rint(numbers / largest * float(1 << bits)).astype(np.int64)
        whole[(whole == 0) & (numbers > 0)] = 1
        self.ends: npt.NDArray[np.int64] = np.cumsum(whole)
        """The cumulative sums of the weights, as integers; shape (n,)."""

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def said(self) -> dict[str, str]:
        """How the state of an order describes the weights."""
        return {"by": self.by, "digest": self.digest}

    @cached_property
    def digest(self) -> str:
        """Hex digest of the integers. The state of an order contains this digest."""
        return blake3(self.ends.astype("<i8").tobytes()).hexdigest(16)


def weights_of(
    weights: str | npt.ArrayLike | None, name: str, selection: Selection, ask: ValuesOf | None
) -> Weights | None:
    """The weights of a source's records, from an expression, from ``"class"``, or from numbers."""
    if weights is None:
        return None
    if not isinstance(weights, str):
        return Weights(weights, GIVEN, name)
    if ask is None:
        raise UsageError(
            f"`weights={weights!r}` needs the catalog, but a copied source has none: make the "
            "order in the process that opened the source"
        )
    chosen = selection.numbers(np.arange(len(selection), dtype=np.int64))
    if weights != _BY_CLASS:
        return Weights(ask(weights)[chosen], weights, name)
    try:
        ranks = ask(_CLASS)[chosen]
    except UsageError as error:
        raise UsageError(
            f'no record of `{name}` has a class, but `weights="class"` needs classes'
        ) from error
    _, classes, counts = np.unique(ranks, return_inverse=True, return_counts=True)
    return Weights(1.0 / counts[classes], weights, name)


class Draws:
    """Maps the number of a draw in an epoch to the drawn record."""

    def __init__(self, weights: Weights, seed: int, epoch: int) -> None:
        self._ends = weights.ends
        text = f"{_DRAWS_PREFIX}\n{seed}\n{epoch}\n{weights.digest}\n"
        self._key = np.frombuffer(blake3(text.encode("ascii")).digest(8), "<u8")[0]

    def __call__(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The records of these draws."""
        total = self._ends[-1]
        bits = mix(places.astype(np.uint64) * _GOLDEN, self._key) >> _TO_53_BITS
        points = np.floor(bits * 2.0**-_BITS * float(total)).astype(np.int64)
        # A fraction next to 1 may be rounded to the total, which belongs to no record.
        found: npt.NDArray[np.int64] = np.searchsorted(
            self._ends, np.minimum(points, total - 1), side="right"
        ).astype(np.int64)
        return found
