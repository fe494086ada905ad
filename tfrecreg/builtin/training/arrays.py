"""From payloads to NumPy: the form follows from the schema, never from a record.

A required feature of fixed shape is an array of that shape, a scalar if the shape is ``()``. Any
other is an array of one dimension with all its values, empty where the record lacks it; or of the
schema's shape, if only one side of that is unknown. Without a schema, each feature that a record
has is an array of one dimension. Bytes are `bytes`, and arrays of them arrays of objects.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Feature, Kind
from tfrecreg.core.schema.compiled import TensorSpec, compile_schema, tensor_specs
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.text import listed, safe

_KINDS = {"string": Kind.BYTES, "int64": Kind.INT64, "float32": Kind.FLOAT}
KIND_WORDS = {Kind.BYTES: "bytes", Kind.INT64: "int64", Kind.FLOAT: "float"}
_OTHERS = {
    PayloadKind.SEQUENCE_EXAMPLE: " but a SequenceExample",
    PayloadKind.EVENT: " but an event of TensorBoard",
}
_EMPTY = {Kind.BYTES: np.dtype(object), Kind.INT64: np.dtype(np.int64)}


class ArrayColumn(NamedTuple):
    """How one feature becomes an array."""

    name: str
    kind: int
    """A :class:`tfrecreg.core.example.model.Kind`."""
    shape: tuple[int, ...]
    """Sides; -1 where one varies."""
    is_fixed: bool
    """Whether a record without it, or with another number of values, is refused."""
    is_list: bool = False
    """Whether it is a list of a SequenceExample: the first side is its steps, and a second one that
    varies makes it a list of arrays."""
    is_required: bool = False
    """Of a list: whether a record without it is refused."""

    @property
    def is_ragged(self) -> bool:
        """Whether it is a list whose steps differ in length."""
        return self.is_list and -1 in self.shape[1:]


def columns_of(schema: Schema) -> tuple[ArrayColumn, ...]:
    """The columns of a schema's features, in order of their names."""
    shapes = {each.name: each.tensor_shape for each in compile_schema(schema).features}
    return tuple(_column(spec, shapes[spec.name]) for spec in tensor_specs(schema))


def _column(spec: TensorSpec, shape: tuple[int | None, ...] | None) -> ArrayColumn:
    kind = int(_KINDS[spec.dtype])
    if spec.form == "fixed":
        return ArrayColumn(spec.name, kind, spec.shape, True)
    sides = tuple(-1 if side is None else side for side in shape or ())
    if sides.count(-1) != 1 or 0 in sides:
        sides = (-1,)
    return ArrayColumn(spec.name, kind, sides, False)


class ExampleReader:
    """Makes elements of payloads. Picklable."""

    def __init__(self, columns: Sequence[ArrayColumn] | None) -> None:
        self._columns = columns

    def __call__(self, payload: bytes) -> dict[str, Any]:
        """The element of a payload."""
        example = decode_or_none(payload)
        # Many other messages parse as an Example, and would come without their fields.
        kind = kind_of(payload, 0, len(payload), example)
        if example is None or kind is not PayloadKind.EXAMPLE:
            raise RefusedError(
                f"is not a `tf.train.Example`{_OTHERS.get(kind, '')}",
                hint="`raw=True` gives payloads as they are",
            )
        if self._columns is None:
            return {
                name: values_of(feature)
                for name, feature in sorted(example.items())
                if feature.kind is not Kind.UNSET
            }
        return {column.name: shaped(column, example) for column in self._columns}


def shaped(column: ArrayColumn, example: Mapping[str, Feature]) -> Any:
    """The value of a feature of an example."""
    feature = example.get(column.name)
    if feature is None or feature.kind is Kind.UNSET:
        if column.is_fixed:
            raise misfit(column, "it lacks the feature")
        return empty(column)
    if feature.kind != column.kind:
        raise misfit(column, f"found {KIND_WORDS[feature.kind]}")
    if column.is_fixed and not column.shape:
        if feature.count != 1:
            raise misfit(column, f"found {feature.count} values")
        (value,) = feature.values
        if column.kind == Kind.INT64:
            return np.int64(value)
        return np.float32(value) if column.kind == Kind.FLOAT else value
    try:
        return values_of(feature).reshape(column.shape)
    except ValueError:
        raise misfit(column, f"found {feature.count} values") from None


def empty(column: ArrayColumn) -> npt.NDArray[Any]:
    """The value of a feature that a record lacks."""
    sides = [0 if side < 0 else side for side in column.shape]
    return np.empty(sides, _EMPTY.get(Kind(column.kind), np.dtype(np.float32)))


def misfit(column: ArrayColumn, found: str) -> RefusedError:
    """The error for a record whose feature does not fit the column."""
    sides = [str(side) if side >= 0 else "any" for side in column.shape]
    shape = f"({', '.join(sides)}{',' if len(sides) == 1 else ''})"
    return RefusedError(
        f"does not fit the schema: `{safe(column.name)}` should be "
        f"{KIND_WORDS[Kind(column.kind)]} of shape {shape}, {found}",
        hint="`tfrecreg check` with the validator `schema` finds all records that do not fit",
    )


def values_of(feature: Feature) -> npt.NDArray[Any]:
    """The values of a feature, shape (count,): int64, float32, or objects for bytes."""
    if feature.kind is Kind.FLOAT:
        return np.frombuffer(feature.packed_floats, "<f4").astype(np.float32)
    if feature.kind is Kind.INT64:
        return np.array(feature.values, np.int64)
    found = np.empty(feature.count, object)
    found[:] = feature.values
    return found


Fit = Literal["stretch", "crop", "pad", "short-side"]


_CHANNELS = (0, 1, 3, 4)


def expect_channels(channels: int) -> None:
    """Refuse a number of channels that images cannot be brought to."""
    if channels not in _CHANNELS:
        raise UsageError(
            f"`channels` should be one of {listed(map(str, _CHANNELS))}, "
            f"found {safe(str(channels))}",
            hint="`channels=3` decodes to red, green and blue",
        )


@dataclass(frozen=True, kw_only=True)
class ImageSize:
    """The arguments about the size of images that all readers have."""

    size: tuple[int, int] | int | None = None
    """Height and width, or the shorter side; None for the size that each image has."""
    fit: Fit = "stretch"

    def __post_init__(self) -> None:
        # Plain integers: sources are saved as JSON, and NumPy's have another type.
        given: Any = self.size
        is_pair = isinstance(given, tuple | list)
        sides: Sequence[Any] = given if is_pair else (given,)
        if all(hasattr(each, "__index__") and not isinstance(each, bool) for each in sides):
            whole = tuple(map(operator.index, sides))
            object.__setattr__(self, "size", whole if is_pair else whole[0])

    @property
    def sides(self) -> tuple[int | None, int | None]:
        """Height and width that all images get; None where it differs."""
        return self.size if isinstance(self.size, tuple) else (None, None)

    def expect_sense(self) -> None:
        """Refuse values that are none, or that do not go together."""
        self._expect_one_of("fit", get_args(Fit))
        if self.size is None:
            if self != type(self)():
                others = [each.name for each in fields(self) if each.name != "size"]
                raise UsageError(
                    f"{listed(others)} need{'s' if len(others) == 1 else ''} `image_size`",
                    hint="`image_size=(224, 224), fit='crop'`",
                )
        elif self.fit == "short-side":
            if type(self.size) is not int or self.size < 1:
                raise UsageError(
                    f"`image_size` should be the length of the shorter side, found {self.size}",
                    hint="`image_size=256, fit='short-side'`; `fit='crop'` takes height and width",
                )
        elif not _is_two_sides(self.size):
            raise UsageError(
                f"`image_size` should be height and width, found {self.size}",
                hint="`image_size=(224, 224)`",
            )

    def _expect_one_of(self, name: str, known: tuple[Any, ...]) -> None:
        value = getattr(self, name)
        if value not in known:
            raise UsageError(
                f"`{name}` should be one of {listed(known)}, found `{safe(str(value))}`",
                hint=f"`{name}={known[0]!r}` is the default",
            )


def _is_two_sides(size: Any) -> bool:
    """Whether it is height and width."""
    is_pair = isinstance(size, tuple) and len(size) == 2
    return is_pair and all(type(each) is int and each > 0 for each in size)
