"""From Python values, arrays, tensors and images to features, by one rule and without loss.

An Example holds lists of bytes, of float32 and of int64, and nothing else. Whatever has no lossless
place in it is an error that names the feature.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tfrecreg.core.example.features import bytes_feature, float_feature, int64_feature
from tfrecreg.core.example.model import Example, Feature
from tfrecreg.core.example.tensors import serialize_tensor
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe, type_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EXACT = 2**24
"""Up to here, float32 holds every integer."""
_IMAGE_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")
"""Modes of Pillow that PNG keeps as they are."""


def to_example(values: Mapping[str, object]) -> Example:
    """Make an example of a dictionary: feature name to value.

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
        UsageError: it is no dictionary, a name is not a string, or a value cannot be stored in an
            example without loss.

    Example:
        >>> example = tr.to_example({"label": 7, "name": "seven"})
        >>> example["name"].values
        (b'seven',)
    """
    if not isinstance(values, Mapping):
        raise UsageError(
            f"an example is a dictionary of features, found {type_text(values)}",
            hint='to_example({"label": 7})',
        )
    example: dict[str, Feature] = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise UsageError(
                f"a feature has the name {safe(repr(name))}, which is not a string",
                hint="name features by strings",
            )
        if value is None:
            continue
        try:
            example[name] = _feature(value)
        except _UnfitError as error:
            raise UsageError(
                f"feature `{safe(name)}`: {safe(str(error))}", hint=error.hint
            ) from None
        except (TypeError, ValueError, OverflowError) as error:  # of the constructors of features
            raise UsageError(f"feature `{safe(name)}`: {safe(str(error))}", hint=_HINT) from None
    return example


def is_image(value: object) -> bool:
    """Whether it is an image of Pillow, which is encoded."""
    return hasattr(value, "getbands") and hasattr(value, "save")


_HINT = "an example holds bytes, float32 and int64, alone or in flat lists"


class _UnfitError(Exception):
    """A value cannot be stored in an example without loss."""

    def __init__(self, message: str, hint: str = _HINT) -> None:
        super().__init__(message)
        self.hint = hint


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
        return bytes_feature(_png(value))
    return _array(_as_array(value))


def _as_array(value: Any) -> NDArray[Any]:
    """The array that `value` is, or holds as the tensors of other libraries do."""
    import numpy as np

    if hasattr(value, "detach"):  # PyTorch: a tensor that takes part in a gradient has no array
        value = value.detach().cpu()
    if isinstance(value, np.ma.MaskedArray) and value.mask.any():
        raise _UnfitError(
            "a masked array has values that are missing, and a feature has no mask",
            "`array.compressed()` leaves them out, `array.filled(0)` gives them a value",
        )
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__"):
        return np.asarray(value)
    raise _UnfitError(f"a value of type `{type(value).__name__}` cannot be stored in an example")


def _list(values: list[Any] | tuple[Any, ...]) -> Feature:
    import numpy as np

    if not values:
        raise _UnfitError(
            "an empty list has no type", "give an empty array: `np.zeros(0, np.int64)`"
        )
    plain = [each.item() if isinstance(each, np.generic) else each for each in values]
    if all(isinstance(each, (bytes, bytearray, str)) for each in plain):
        return bytes_feature(plain)
    if all(isinstance(each, int) for each in plain):
        return int64_feature(plain)
    if all(isinstance(each, (int, float)) for each in plain):
        doubles = [each for each in values if isinstance(each, np.float64)]
        _single(np.array(doubles), "a list of")
        wide = [each for each in plain if isinstance(each, int) and abs(each) > _EXACT]
        if wide:
            raise _UnfitError(
                f"{wide[0]} is in a list of floats, and float32 does not hold it exactly"
            )
        return float_feature(plain)
    kinds = sorted({type(each).__name__ for each in plain})
    raise _UnfitError(
        f"a list of {' and '.join(kinds)} cannot be stored in an example",
        "lists are flat and of one kind; an array of two dimensions or more becomes a tensor",
    )


def _array(array: NDArray[Any]) -> Feature:
    if array.ndim > 1:
        return bytes_feature(serialize_tensor(array))
    flat = array.reshape(-1)
    kind = array.dtype.kind
    if kind in "bi":
        return int64_feature(flat)
    if kind == "u":
        return int64_feature(_signed(flat))
    if kind == "f":
        return float_feature(_single(flat, "an array of" if array.ndim else "type"))
    # TensorFlow and pandas keep strings as objects.
    if kind in "SU" or (kind == "O" and all(isinstance(each, (bytes, str)) for each in flat)):
        return bytes_feature(flat.tolist())
    raise _UnfitError(f"an array of `{array.dtype}` cannot be stored in an example")


def _signed(flat: NDArray[Any]) -> NDArray[np.int64]:
    import numpy as np

    most = np.iinfo(np.int64).max
    if flat.size and int(flat.max()) > most:
        raise _UnfitError(f"{int(flat.max())} does not fit in an int64")
    return flat.astype(np.int64)


def _single(flat: NDArray[Any], form: str) -> NDArray[np.float32]:
    """The same values as float32; `form` names their place in messages."""
    import numpy as np

    # Whatever a program has NumPy do about a loss; a NaN that signals is a NaN.
    with np.errstate(all="ignore"):
        single = flat.astype(np.float32)
        lost = ~((single == flat) | np.isnan(flat))
    if lost.any():
        raise _UnfitError(
            f"float32 does not hold {flat[lost][0]} of {form} `{flat.dtype}` exactly",
            "round it: `.astype(np.float32)`; or keep it as a tensor: `tfrecreg.serialize_tensor`",
        )
    return single


def _png(image: Any) -> bytes:
    if image.mode not in _IMAGE_MODES:
        raise _UnfitError(
            f"PNG does not keep an image of the mode `{image.mode}`",
            "convert it, or give encoded bytes",
        )
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()
