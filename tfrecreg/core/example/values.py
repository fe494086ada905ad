"""Features from Python values, arrays, tensors, images and packed buffers, without loss.

An Example holds lists of bytes, of float32 and of int64, and nothing else. A value that cannot be
stored without loss is an error that names the feature.
"""

from __future__ import annotations

import io
import math
import struct
import sys
from collections.abc import Iterable, Mapping
from operator import index
from typing import TYPE_CHECKING, Any

from tfrecreg.core.example.model import (
    Example,
    Feature,
    Kind,
    pack_varints,
    packed_feature,
    varint,
)
from tfrecreg.core.example.tensors import serialize_tensor
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import type_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LOOSE = 4096  # from this size on, values are stored unchanged rather than encoded
_HEADS = tuple(b"\n" + varint(size) for size in range(128))  # before a value of such a size
_SINGLES = tuple(packed_feature(Kind.INT64, 1, varint(n), (n,)) for n in range(128))
_BYTES, _FLOAT, _INT64 = Kind.BYTES, Kind.FLOAT, Kind.INT64  # slow to look up in their class
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
    except IndexError:  # a value is longer
        body = b"".join([b"\n" + varint(len(each)) + each for each in values])
    return packed_feature(_BYTES, len(values), body, values)


def float_feature(value: float | Iterable[float]) -> Feature:
    """A FLOAT feature of one value or of many; each is rounded to float32.

    `value` may also be a flat array of numbers, or `bytes`, which are read as packed little-endian
    float32. Every bit of such bytes, and of a little-endian float32 array, is kept.

    Raises:
        TypeError: a value is not a number, or an array has more than one dimension.
        ValueError: a finite value is too large for float32, or packed bytes are not whole floats.
    """
    packed = value if type(value) is tuple else _float_values(value)
    if not isinstance(packed, bytes):
        packed = _packed_floats(packed)
    return packed_feature(_FLOAT, len(packed) // 4, packed)


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
    except TypeError as error:
        raise TypeError(f"expected integers: {error}") from None
    return packed_feature(_INT64, len(values), _packed_ints(values), values)


def unset_feature() -> Feature:
    """A feature that exists but has no kind. It is neither missing nor an empty list."""
    return _UNSET


def _as_bytes(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return value if type(value) is bytes else bytes(value)
    raise TypeError(f"a value is a `{type(value).__name__}`, expected bytes or a string")


def _packed_ints(values: tuple[int, ...]) -> bytes:
    if not values:
        return b""
    low, high = min(values), max(values)
    if low < _MIN or high > _MAX:
        wrong = low if low < _MIN else high
        raise ValueError(f"{wrong} is outside int64, from {_MIN} to {_MAX}")
    if low >= 0 and high < 128:
        return bytes(values)
    return pack_varints(values)


def _packed_floats(values: tuple[Any, ...]) -> bytes:
    try:
        return struct.pack(f"<{len(values)}f", *values)
    except OverflowError:
        wrong = max(filter(math.isfinite, values), key=abs)
        raise ValueError(f"float32 holds numbers up to 3.4028235e38, found {wrong}") from None
    except struct.error as error:
        raise TypeError(f"expected numbers that float32 holds: {error}") from None


def _float_values(value: Any) -> tuple[Any, ...] | bytes:
    """The values of an object, or packed bytes if every bit must be kept."""
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
    """The bits of a little-endian float32 array; None for anything else."""
    try:
        view = memoryview(value)
    except (TypeError, ValueError, BufferError):
        return None
    formats = {"<f"} if sys.byteorder == "big" else {"f", "=f", "<f"}
    return view.tobytes() if view.ndim <= 1 and view.format in formats else None


_EXACT = 2**24
"""float32 can hold every integer up to this number."""
_IMAGE_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")
"""Modes of Pillow that PNG stores unchanged."""


def to_example(values: Mapping[str, object]) -> Example:
    """Make an example from a dictionary of feature names and values.

    ========================================  ====================================================
    value                                     feature
    ========================================  ====================================================
    ``bytes``, ``str`` (as UTF-8)             BYTES
    ``int``, ``bool``                         INT64
    ``float``                                 FLOAT, rounded to float32
    an array of integers or bools             INT64
    an array of float16 or float32            FLOAT
    an array or number of NumPy's float64     FLOAT, if float32 holds all of its values
    an array of strings or bytes              BYTES
    a list or tuple of values of one kind     that kind; integers beside floats become FLOAT
    an array of two dimensions or more        BYTES: as `tf.io.serialize_tensor` writes it
    an image of Pillow                        BYTES: encoded as PNG
    a feature                                 as it is
    ``None``                                  none: the feature is left out
    ========================================  ====================================================

    Tensors of TensorFlow, PyTorch and JAX count as arrays.

    Raises:
        UsageError: `values` is not a dictionary, a name is not a string, or a value cannot be
            stored in an example without loss.

    Example:
        >>> example = tr.to_example({"label": 7, "name": "seven"})
        >>> example["name"].values
        (b'seven',)
    """
    if not isinstance(values, Mapping):
        raise UsageError(f"an example is a dictionary of features, found {type_text(values)}")
    example: dict[str, Feature] = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise UsageError(f"a feature has the name {name!r}, which is not a string")
        if value is None:
            continue
        try:
            example[name] = _feature(value)
        except (TypeError, ValueError, OverflowError, OSError) as error:
            raise UsageError(f"feature `{name}`: {error}") from None
    return example


def is_image(value: object) -> bool:
    """Whether a value is an image of Pillow, which :func:`to_example` encodes."""
    return hasattr(value, "getbands") and hasattr(value, "save")


def _feature(value: Any) -> Feature:
    if isinstance(value, Feature):
        return value
    if isinstance(value, (bytes, str)):
        return bytes_feature(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes_feature(bytes(value))
    if isinstance(value, (bool, int)):
        return int64_feature(value)
    if isinstance(value, float) and not hasattr(value, "dtype"):  # NumPy's float64 is a float
        return float_feature(value)
    if isinstance(value, (list, tuple)):
        return _list(value)
    if is_image(value):
        if value.mode not in _IMAGE_MODES:
            raise ValueError(f"PNG does not store mode `{value.mode}` unchanged")
        data = io.BytesIO()
        value.save(data, "PNG")
        return bytes_feature(data.getvalue())
    import numpy as np

    if hasattr(value, "detach"):  # PyTorch: a tensor that takes part in a gradient has no array
        value = value.detach().cpu()
    if isinstance(value, np.ma.MaskedArray) and value.mask.any():
        raise ValueError(
            "a masked array has values that are missing: `array.compressed()` leaves them out, "
            "`array.filled(0)` gives them a value"
        )
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__"):
        return _array(np.asarray(value))
    raise TypeError(f"a value of type `{type(value).__name__}` cannot be stored in an example")


def _list(values: list[Any] | tuple[Any, ...]) -> Feature:
    import numpy as np

    if not values:
        raise ValueError("an empty list has no type; `np.zeros(0, np.int64)` has one")
    plain = [each.item() if isinstance(each, np.generic) else each for each in values]
    if all(isinstance(each, (bytes, bytearray, str)) for each in plain):
        return bytes_feature(plain)
    if all(isinstance(each, int) for each in plain):
        return int64_feature(plain)
    if all(isinstance(each, (int, float)) for each in plain):
        doubles = [each for each in values if isinstance(each, np.float64)]
        _single(np.array(doubles), "from a list of")
        wide = [each for each in plain if isinstance(each, int) and abs(each) > _EXACT]
        if wide:
            raise ValueError(
                f"{wide[0]} is in a list of floats, but float32 does not hold it exactly"
            )
        return float_feature(plain)
    kinds = sorted({type(each).__name__ for each in plain})
    raise TypeError(
        f"a list of {' and '.join(kinds)} cannot be stored in an example: lists must be flat "
        "and of one kind, and arrays of two dimensions or more become tensors"
    )


def _array(array: NDArray[Any]) -> Feature:
    if array.ndim > 1:
        return bytes_feature(serialize_tensor(array))
    flat = array.reshape(-1)
    kind = array.dtype.kind
    if kind in "biu":
        return int64_feature(flat)
    if kind == "f":
        return float_feature(_single(flat, "from an array of" if array.ndim else "of type"))
    # TensorFlow and pandas keep strings as objects.
    if kind in "SU" or (kind == "O" and all(isinstance(each, (bytes, str)) for each in flat)):
        return bytes_feature(flat.tolist())
    raise TypeError(f"an array of `{array.dtype}` cannot be stored in an example")


def _single(flat: NDArray[Any], form: str) -> NDArray[np.float32]:
    """The same values as float32; `form` describes the array in messages."""
    import numpy as np

    # Ignore the program's NumPy settings for errors; a signaling NaN is a NaN.
    with np.errstate(all="ignore"):
        single = flat.astype(np.float32)
        lost = ~((single == flat) | np.isnan(flat))
    if lost.any():
        raise ValueError(
            f"float32 does not hold {flat[lost][0]} {form} `{flat.dtype}` exactly; "
            "`.astype(np.float32)` rounds it"
        )
    return single
