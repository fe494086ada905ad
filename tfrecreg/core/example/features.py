"""The constructors of features: from Python values, arrays and packed buffers."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import index
from typing import Any

from tfrecreg.core.example.model import Feature, Kind, packed_feature, value_head
from tfrecreg.core.example.wire import pack_varints, varint

_LOOSE = 4096  # size from which on values are stored unchanged rather than encoded
_HEADS = tuple(b"\n" + varint(size) for size in range(128))  # before a value of such a size
_SINGLES = tuple(packed_feature(Kind.INT64, 1, varint(n), (n,)) for n in range(128))
_BYTES, _FLOAT, _INT64 = Kind.BYTES, Kind.FLOAT, Kind.INT64  # slow to get from their class
_UNSET = packed_feature(Kind.UNSET, 0, b"", ())
_MIN, _MAX = -(2**63), 2**63 - 1


def bytes_feature(value: bytes | str | Iterable[bytes | str]) -> Feature:
    """A BYTES feature of one value or of many; strings become UTF-8.

    Raises:
        TypeError: a value is neither bytes nor a string.
        ValueError: a string holds a lone surrogate.
    """
    if type(value) is bytes and len(value) <= _LOOSE:  # the most frequent case in sources
        body = b"\n" + varint(len(value)) + value
        return packed_feature(_BYTES, 1, body, (value,))
    if isinstance(value, (bytes, bytearray, memoryview, str)):
        values: tuple[bytes, ...] = (_as_bytes(value),)
    else:
        values = tuple([each if type(each) is bytes else _as_bytes(each) for each in value])
    if sum(map(len, values)) > _LOOSE:
        return Feature(_BYTES, len(values), None, 0, 0, 0, values)
    try:
        body = b"".join([_HEADS[len(each)] + each for each in values])
    except IndexError:  # one is longer
        body = b"".join([b"\n" + varint(len(each)) + each for each in values])
    return packed_feature(_BYTES, len(values), body, values)


def float_feature(value: float | Iterable[float]) -> Feature:
    """A FLOAT feature of one value or of many; each is rounded to float32.

    `value` may also be a flat array of numbers, or `bytes`, which are read as packed little-endian
    float32. Of these, and of float32 arrays, every bit is kept.

    Raises:
        TypeError: a value is not a number, or an array has more than one dimension.
        ValueError: a finite value is too large for float32, or packed bytes are not whole floats.
    """
    packed = value if type(value) is tuple else _float_values(value)
    if not isinstance(packed, bytes):
        packed = _packed_floats(packed)
    return packed_feature(_FLOAT, len(packed) // 4, packed)


def float_features(columns: Sequence[tuple[float, ...]]) -> list[Feature]:
    """What :func:`float_feature` makes of each of several columns of one length, packed at once."""
    count = len(columns[0])
    head = value_head(_FLOAT, 4 * count)
    try:
        layout = _columns_layout(len(columns), count, len(head))
        packed = layout.pack(*[each for column in columns for each in (head, *column)])
    except (OverflowError, struct.error):
        return [float_feature(column) for column in columns]  # with an error that says which
    size, start = len(head) + 4 * count, len(head)
    return [
        Feature(_FLOAT, count, packed, place, place + start, place + size)
        for place in range(0, len(packed), size)
    ]


@lru_cache(maxsize=256)
def _columns_layout(columns: int, count: int, head: int) -> struct.Struct:
    return struct.Struct("<" + f"{head}s{count}f" * columns)


def int64_feature(value: int | Iterable[int]) -> Feature:
    """An INT64 feature of one value or of many, including flat arrays; True is 1, False is 0.

    Raises:
        TypeError: a value is not an integer, or an array has more than one dimension.
        ValueError: a value does not fit in a signed 64-bit integer.
    """
    if type(value) is int and 0 <= value < 128:
        return _SINGLES[value]
    items: Any = value
    if type(value) is not tuple:
        items = value.tolist() if hasattr(value, "tolist") else value
        items = tuple(items) if isinstance(items, Iterable) else (items,)
    try:
        values = tuple(map(index, items))
    except TypeError:
        values = tuple(map(_integer, items))
    return packed_feature(_INT64, len(values), _packed_ints(values), values)


def unset_feature() -> Feature:
    """A feature that exists without a kind: neither missing nor an empty list."""
    return _UNSET


def _as_bytes(value: object) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"a string holds a lone surrogate at character {error.start}, "
                "which has no UTF-8: encode it first"
            ) from None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return value if type(value) is bytes else bytes(value)
    raise TypeError(f"a value is a `{type(value).__name__}`, expected bytes or a string")


def _packed_ints(values: tuple[int, ...]) -> bytes:
    if not values:
        return b""
    low, high = min(values), max(values)
    if low < _MIN or high > _MAX:
        wrong = low if low < _MIN else high
        raise ValueError(f"{_number_text(wrong)} is outside int64, which ends at {_MIN} and {_MAX}")
    if low >= 0 and high < 128:
        return bytes(values)
    return pack_varints(values)


def _packed_floats(values: tuple[Any, ...]) -> bytes:
    try:
        return struct.pack(f"<{len(values)}f", *values)
    except (OverflowError, struct.error):
        # One value is invalid, but the error of struct does not say which one or, for large
        # integers, why.
        raise next(filter(None, map(_float_error, values))) from None


def _float_values(value: Any) -> tuple[Any, ...] | bytes:
    """The values of anything that may be floats; packed where it has exactly the bits."""
    if isinstance(value, (bytes, bytearray)) or (
        isinstance(value, memoryview) and value.format in {"B", "b", "c"}
    ):
        packed = bytes(value)
        if len(packed) % 4:
            raise ValueError(
                f"{len(packed)} bytes are not packed float32 values: expected a multiple of 4"
            )
        return packed
    if not isinstance(value, (int, float, list, tuple)):
        bits = _float32_buffer(value)
        if bits is not None:
            return bits
        if hasattr(value, "tolist"):
            value = value.tolist()
    return tuple(value) if isinstance(value, Iterable) else (value,)


def _float32_buffer(value: Any) -> bytes | None:
    """The bits of an array of float32, little-endian; None for anything else."""
    try:
        view = memoryview(value)
    except (TypeError, ValueError, BufferError):
        return None
    if view.ndim > 1 or view.format not in {"f", "=f", "<f", ">f"}:
        return None
    packed = view.tobytes()
    if (view.format == ">f") or (view.format in {"f", "=f"} and sys.byteorder == "big"):
        swapped = array("I", packed)
        swapped.byteswap()
        return swapped.tobytes()
    return packed


def _float_error(value: Any) -> Exception | None:
    """The error of a value that should be a float32; None if it is one."""
    try:
        struct.pack("<f", value)
    except (OverflowError, struct.error):
        if hasattr(value, "__float__") or hasattr(value, "__index__"):
            return ValueError(
                f"{_number_text(value)} does not fit in a float32, which ends at 3.4028235e38"
            )
        return TypeError(f"a value is a `{type(value).__name__}`, expected a number")
    return None


def _integer(value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"a value is a `{type(value).__name__}`, expected an integer") from None


def _number_text(number: object) -> str:
    # Python refuses to write out integers of thousands of digits.
    if isinstance(number, int) and number.bit_length() > 256:
        return f"an integer of {number.bit_length()} bits"
    return str(number)
