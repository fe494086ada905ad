"""A permutation of the numbers below n that is computed, not stored.

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
"""

from __future__ import annotations

from math import isqrt

import numpy as np
import numpy.typing as npt
from blake3 import blake3

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
