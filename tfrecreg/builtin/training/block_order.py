"""Orders by blocks, in which one read has many records, and draws by weights.

The numbers of records are cut into blocks of one size. In each epoch the blocks are permuted and
laid one after the other, and the row is cut into lanes of equal length. Each lane is permuted
within windows of a few blocks; places are dealt to lanes one by one. So records that follow each
other in an epoch are of as many random blocks as all lanes have in a window, and a block is used up
within a window of one lane, or of two where the end of a lane cuts it.

Hosts are dealt places in the same way. If their number divides that of the lanes, each host has
lanes of its own, and no two need the same block.

``docs/formats.md`` has the formula. It never changes after 1.0, since saved states depend on it.

A permutation of the numbers below n that is computed, not stored.

A generalized Feistel network with cycle-walking, after J. Black and P. Rogaway, "Ciphers with
Arbitrary Finite Domains" (CT-RSA 2002, section 6). With a = ceil(sqrt(n)) and b = ceil(n / a), a
number x below a * b is the pair (x mod a, x div a). A round adds a function of one half to the
other half, modulo a or b, so each round is a bijection and so are all together. A result of n or
more goes through the network again. Less than a of the a * b numbers are so, hence few do.

The round function is the finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast Splittable
Pseudorandom Number Generators", OOPSLA 2014), of which it takes the upper 62 bits, over the sum of
the half and a key. The keys are the output of blake3 over seed, epoch and n. This shuffles well; it
is not meant to keep a secret.

``docs/formats.md`` has the formula. It never changes after 1.0, since saved states depend on it.

The weights become integers, so that sums are exact: w of n records, divided by the largest, times
2^k, rounded, and 1 at least where w > 0; k is 53 less the bits of n, and 32 at most. Draw number i
takes a fraction f of 53 bits from the mixing function of
:mod:`tfrecreg.builtin.training.block_order`, over i times the golden ratio and a key, and
then the record
in which f times the sum of all weights lies. So any draw is computed alone, on every machine alike.

``docs/formats.md`` has the formula. It never changes after 1.0, since saved states depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import isqrt
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.builtin.training.certificate import integer_of
from tfrecreg.builtin.training.selection import Selection
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe
from tfrecreg.core.values.typed_values import parse_size

RecordNumbers = npt.NDArray[np.int64]

_ROUNDS = 16
"""With fewer, some permutations of five or six numbers come clearly more often than others."""
_PREFIX = "tfrecreg order v1"
_MAX = 2**62
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_ALL_BITS = (1 << 64) - 1
_TO_62_BITS = np.uint64(2)
"""A half has at most 31 bits, so its sum with 62 bits does not wrap around."""


class Permutation:
    """The permutation of the numbers from 0 to `size` - 1 for a seed and an epoch."""

    def __init__(self, size: int, seed: int, epoch: int) -> None:
        if not 0 <= size < _MAX:
            raise ValueError(f"expected a size from 0 to {_MAX - 1}, found {size}")
        self._size = size
        root = isqrt(size)
        left = max(1, root + (root * root < size))
        self._left = np.uint64(left)
        self._right = np.uint64(max(1, -(-size // left)))
        text = f"{_PREFIX}\n{seed}\n{epoch}\n{size}\n"
        keys = blake3(text.encode("ascii")).digest(8 * _ROUNDS)
        self._keys = np.frombuffer(keys, "<u8").astype(np.uint64)
        self._plain_keys: list[int] = self._keys.tolist()

    def __call__(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers at these places."""
        found = self._once(places.astype(np.uint64))
        outside = np.flatnonzero(found >= self._size)
        while len(outside):
            found[outside] = self._once(found[outside])
            outside = outside[found[outside] >= self._size]
        return found.astype(np.int64)

    def one(self, place: int) -> int:
        """The number at one place: faster than an array of one."""
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
    """62 bits for each number, which a key decides: the finalizer of SplitMix64 of their sum."""
    # Sums and products of arrays wrap around at 2^64, which is meant.
    mixed = half + key
    mixed = (mixed ^ (mixed >> _SHIFT_1)) * _MIX_1
    mixed = (mixed ^ (mixed >> _SHIFT_2)) * _MIX_2
    found: npt.NDArray[np.uint64] = (mixed ^ (mixed >> _SHIFT_3)) >> _TO_62_BITS
    return found


DEFAULT_WINDOW, DEFAULT_LANES = 8, 4
_BLOCK_ORDER_PREFIX = "tfrecreg block order v1"
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
        self._names = f"{_BLOCK_ORDER_PREFIX}\n{seed}\n{epoch}\n{blocks.records}\n"
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


ValuesOf: TypeAlias = Callable[[str], "npt.NDArray[np.float64]"]
"""Gives the value of an SQL expression for each record of the shards, shape (n,)."""

GIVEN = "numbers"
"""The name, in messages and states, of weights that a program gave as numbers."""
_BY_CLASS = "class"
_CLASS = "dense_rank() OVER (ORDER BY label)"
_DRAWS_PREFIX = "tfrecreg draws v1"
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TO_53_BITS = np.uint64(9)
_BITS = 53
"""Integers below 2^53 are exact as float64."""
_MOST_BITS = 32


class Weights:
    """How often each record is drawn, in relation to the others. Picklable."""

    def __init__(self, values: npt.ArrayLike, by: str, name: str) -> None:
        self.by = by
        hint = "a list of numbers, `class`, or an expression in SQL"
        try:
            numbers = np.asarray(values, np.float64)
        except (TypeError, ValueError):
            shown = safe(repr(values), limit=60)
            raise UsageError(
                f"weights should be one number per record, found `{shown}`", hint=hint
            ) from None
        if numbers.ndim != 1:
            raise UsageError(
                f"weights should be one number per record, found shape {numbers.shape}", hint=hint
            )
        bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
        if len(bad):
            found = numbers[bad[0]]
            shown = "NULL" if np.isnan(found) else f"{found:g}"
            raise UsageError(
                f"the weight of record {bad[0]} of `{name}` is {shown}, by `{safe(by, limit=200)}`",
                hint="weights are finite and not negative; coalesce(x, 0) gives 0 for NULL",
            )
        largest = float(numbers.max(initial=0.0))
        if not largest:
            raise UsageError(
                f"no record of `{name}` has a weight above zero, by `{safe(by, limit=200)}`",
                hint="a record of weight 0 is never drawn",
            )
        bits = min(_BITS - len(numbers).bit_length(), _MOST_BITS)
        whole = np.rint(numbers / largest * float(1 << bits)).astype(np.int64)
        whole[(whole == 0) & (numbers > 0)] = 1
        self.ends: npt.NDArray[np.int64] = np.cumsum(whole)
        """Sums of the weights of all records up to each, as integers; shape (n,)."""

    def __len__(self) -> int:
        return len(self.ends)

    @cached_property
    def digest(self) -> str:
        """Hex digest of the integers. States of orders hold it."""
        return blake3(self.ends.astype("<i8").tobytes()).hexdigest(16)


def weights_of(
    weights: str | npt.ArrayLike, name: str, selection: Selection, ask: ValuesOf | None
) -> Weights:
    """The weights of the records of a source: by an expression, by class, or as they are given."""
    if not isinstance(weights, str):
        return Weights(weights, GIVEN, name)
    if ask is None:
        raise UsageError(
            f"`weights={weights!r}` needs the catalog, which a copy of a source lacks",
            hint="make the order where the source was opened: orders can be pickled",
        )
    chosen = selection.numbers(np.arange(len(selection), dtype=np.int64))
    if weights != _BY_CLASS:
        return Weights(ask(weights)[chosen], weights, name)
    try:
        ranks = ask(_CLASS)[chosen]
    except UsageError as error:
        raise UsageError(
            f'no record of `{name}` has a class, which `weights="class"` needs',
            hint='weight by another column: `weights="boxes"`',
        ) from error
    _, classes, counts = np.unique(ranks, return_inverse=True, return_counts=True)
    return Weights(1.0 / counts[classes], weights, name)


class Draws:
    """The records that are drawn in an epoch, by the number of the draw."""

    def __init__(self, weights: Weights, seed: int, epoch: int) -> None:
        self._ends = weights.ends
        text = f"{_DRAWS_PREFIX}\n{seed}\n{epoch}\n{weights.digest}\n"
        self._key = np.frombuffer(blake3(text.encode("ascii")).digest(8), "<u8")[0]

    def __call__(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The records of these draws."""
        total = self._ends[-1] if len(self._ends) else np.int64(0)
        bits = mix(places.astype(np.uint64) * _GOLDEN, self._key) >> _TO_53_BITS
        points = np.floor(bits * 2.0**-_BITS * float(total)).astype(np.int64)
        # A fraction next to 1 may be rounded to the sum itself, which is in no record.
        found: npt.NDArray[np.int64] = np.searchsorted(
            self._ends, np.minimum(points, total - 1), side="right"
        ).astype(np.int64)
        return found
