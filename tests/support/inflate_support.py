"""A slow gzip reader without zlib: what can be decoded before an error.

Like zlib, it refuses incomplete codes (except a single one) and distances too far back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)
_LENGTHS = [
    *((3 + each, 0) for each in range(8)),
    *(
        (base, bits)
        for bits in range(1, 6)
        for base in range((4 << bits) + 3, (8 << bits) + 3, 1 << bits)
    ),
    (258, 0),
]
_DISTANCES = [
    *((1 + each, 0) for each in range(4)),
    *(
        (base, bits)
        for bits in range(1, 14)
        for base in range((2 << bits) + 1, (4 << bits) + 1, 1 << bits)
    ),
]
_FIXED = [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8


class _Invalid(Exception):
    """Not deflate, or it does not end."""


@dataclass(frozen=True)
class Inflated:
    """What deflate data decode to."""

    data: bytes
    """Up to the end, or to the first error."""
    end: int | None
    """The byte behind them; None after an error."""
    cut: bool
    """Whether the error is that the input ends."""


class _Cut(_Invalid):
    pass


class _Bits:
    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = 8 * at

    def take(self, count: int) -> int:
        value = 0
        for bit in range(count):
            byte, shift = divmod(self._at, 8)
            if byte >= len(self._data):
                raise _Cut
            value |= (self._data[byte] >> shift & 1) << bit
            self._at += 1
        return value

    def align(self) -> int:
        self._at += -self._at % 8
        return self._at // 8

    def stored(self) -> bytes:
        self.align()
        length, check = self.take(16), self.take(16)
        if length != check ^ 0xFFFF:
            raise _Invalid
        begin = self._at // 8
        self._at += 8 * length
        return self._data[begin : begin + length]


class _Code:
    """A canonical Huffman code."""

    def __init__(self, lengths: Sequence[int], *, whole: bool = False) -> None:
        most = max(lengths, default=0)
        left = 1 << 15
        for length in lengths:
            left -= (1 << 15) >> length if length else 0
        if left < 0 or (left > 0 and most > 0 and (whole or most != 1)):
            raise _Invalid
        self._symbols: dict[tuple[int, int], int] = {}
        code = 0
        for length in range(1, most + 1):
            for symbol, each in enumerate(lengths):
                if each == length:
                    self._symbols[length, code] = symbol
                    code += 1
            code <<= 1

    def read(self, bits: _Bits) -> int:
        code = 0
        for length in range(1, 16):
            code = code << 1 | bits.take(1)
            symbol = self._symbols.get((length, code))
            if symbol is not None:
                return symbol
            if not self._symbols or (length == 1 and len(self._symbols) == 1):
                raise _Invalid
        raise _Invalid


def inflate(data: bytes, at: int) -> Inflated:
    """Decode deflate data from byte `at` on."""
    out = bytearray()
    bits = _Bits(data, at)
    try:
        last = 0
        while not last:
            last, kind = bits.take(1), bits.take(2)
            if kind == 3:
                raise _Invalid
            if kind == 0:
                piece = bits.stored()
                out += piece
                if bits.align() > len(data):
                    raise _Cut
                continue
            codes = (_Code(_FIXED), _Code([5] * 32)) if kind == 1 else _dynamic(bits)
            _block(bits, out, *codes)
    except _Invalid as error:
        return Inflated(bytes(out), None, isinstance(error, _Cut))
    return Inflated(bytes(out), bits.align(), False)


def _dynamic(bits: _Bits) -> tuple[_Code, _Code]:
    literals, distances, count = bits.take(5) + 257, bits.take(5) + 1, bits.take(4) + 4
    if literals > 286 or distances > 30:
        raise _Invalid
    lengths = [0] * 19
    for symbol in _ORDER[:count]:
        lengths[symbol] = bits.take(3)
    code = _Code(lengths, whole=True)
    found: list[int] = []
    while len(found) < literals + distances:
        symbol = code.read(bits)
        if symbol < 16:
            found.append(symbol)
        elif symbol == 16:
            if not found:
                raise _Invalid
            found += [found[-1]] * (3 + bits.take(2))
        else:
            found += [0] * (3 + bits.take(3) if symbol == 17 else 11 + bits.take(7))
    if len(found) > literals + distances or not found[256]:
        raise _Invalid
    return _Code(found[:literals]), _Code(found[literals:])


def _block(bits: _Bits, out: bytearray, literals: _Code, distances: _Code) -> None:
    while (symbol := literals.read(bits)) != 256:
        if symbol < 256:
            out.append(symbol)
            continue
        if symbol > 285:
            raise _Invalid
        base, extra = _LENGTHS[symbol - 257]
        length = base + bits.take(extra)
        symbol = distances.read(bits)
        if symbol > 29:
            raise _Invalid
        base, extra = _DISTANCES[symbol]
        distance = base + bits.take(extra)
        if distance > min(len(out), 1 << 15):
            raise _Invalid
        for _ in range(length):
            out.append(out[-distance])


def crc32_of(data: bytes) -> int:
    """The checksum in a gzip trailer, bit by bit."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0xEDB88320 if register & 1 else 0)
    return register ^ 0xFFFFFFFF
