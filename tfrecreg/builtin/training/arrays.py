"""Converts payloads to NumPy arrays. The form of an array depends on the schema alone.

A required feature of fixed shape becomes an array of that shape. For any other feature, the array
has the schema's shape if exactly one side of that shape is unknown. Otherwise, the array has one
dimension. A list of a SequenceExample becomes an array whose first dimension is the number of
steps. If the steps differ in length, or if no schema gives the shape of the steps, the list becomes
a list of arrays.

Records of the same layout are read with a few array operations, other records one by one.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from math import prod
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from tfrecreg.core.example import columns as layouts
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.kinds import PayloadKind, SequenceExample, decode_sequence, kind_of
from tfrecreg.core.example.model import Feature, Kind
from tfrecreg.core.example.sequences import (
    common_names,
    compile_sequences,
    has_lists_field,
    read_sequence,
)
from tfrecreg.core.schema.check import KINDS
from tfrecreg.core.schema.compiled import TensorSpec, compile_schema, tensor_specs
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.text import did_you_mean, listed
from tfrecreg.core.values.typed_values import expect_one_of

_DTYPES = {Kind.BYTES: "string", Kind.INT64: "int64", Kind.FLOAT: "float32"}
_KINDS = {dtype: kind for kind, dtype in _DTYPES.items()}
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
    """Lengths of the sides; -1 for a side that varies."""
    is_fixed: bool
    """Whether to refuse a record that lacks the feature or has another number of values."""
    is_list: bool = False
    """Whether the feature is a list of a SequenceExample. The first side counts the steps. If a
    second side varies, the value is a list of arrays."""
    is_required: bool = False
    """Whether a record without this list is refused."""

    @property
    def words(self) -> str:
        """Kind and shape, for messages."""
        sides = [str(side) if side >= 0 else "any" for side in self.shape]
        shape = f"({', '.join(sides)}{',' if len(sides) == 1 else ''})"
        return f"{KIND_WORDS[Kind(self.kind)]} of shape {shape}"

    @property
    def dtype(self) -> str:
        """TensorFlow's name of the type of a value."""
        return _DTYPES[Kind(self.kind)]

    @property
    def is_single(self) -> bool:
        """Whether every record has exactly one value."""
        return self.is_fixed and prod(self.shape) == 1

    @property
    def is_ragged(self) -> bool:
        """Whether the feature is a list whose steps differ in length."""
        return self.is_list and -1 in self.shape[1:]


def columns_of(schema: Schema) -> tuple[ArrayColumn, ...]:
    """The columns of a schema's features, in order of their names. If the schema describes
    SequenceExamples, the columns are for the lists and for the context's features."""
    shapes = {each.name: each.tensor_shape for each in compile_schema(schema).features}
    found = [_column(spec, shapes[spec.name]) for spec in tensor_specs(schema)]
    for rule in compile_sequences(schema).lists if schema.describes_sequences() else ():
        if kind := KINDS.get(rule.feature.kind or ""):
            sides = (-1, *((-1,) if rule.step_shape is None else rule.step_shape))
            column = ArrayColumn(rule.feature.name, int(kind), sides, False)
            found.append(column._replace(is_list=True, is_required=rule.feature.is_required))
    return tuple(sorted(found, key=lambda column: column.name))


def _column(spec: TensorSpec, shape: tuple[int | None, ...] | None) -> ArrayColumn:
    kind = int(_KINDS[spec.dtype])
    if spec.form == "fixed":
        return ArrayColumn(spec.name, kind, spec.shape, True)
    sides = tuple(-1 if side is None else side for side in shape or ())
    if sides.count(-1) != 1 or 0 in sides:
        sides = (-1,)
    return ArrayColumn(spec.name, kind, sides, False)


def element_of_example(payload: bytes, columns: Sequence[ArrayColumn] | None) -> dict[str, Any]:
    """The element that is made from an Example."""
    example = decode_or_none(payload)
    # Many other messages parse as an Example, and would lose their fields.
    kind = kind_of(payload, 0, len(payload), example)
    if example is None or kind is not PayloadKind.EXAMPLE:
        raise RefusedError(f"is not a `tf.train.Example`{_OTHERS.get(kind, '')}")
    if columns is None:
        return _all_values(example)
    return {column.name: shaped(column, example) for column in columns}


def _all_values(example: Mapping[str, Feature]) -> dict[str, Any]:
    return {
        name: values_of(feature)
        for name, feature in sorted(example.items())
        if feature.kind is not Kind.UNSET
    }


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
    """The value that an element gets if its record lacks the feature."""
    sides = [0 if side < 0 else side for side in column.shape]
    return np.empty(sides, _EMPTY.get(Kind(column.kind), np.dtype(np.float32)))


def misfit(column: ArrayColumn, found: str) -> RefusedError:
    """The error for a record whose feature does not fit the column."""
    return RefusedError(
        f"does not fit the schema: `{column.name}` should be {column.words}, {found}"
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


def element_without_schema(payload: bytes) -> dict[str, Any]:
    """The element that is made from an Example or a SequenceExample."""
    try:
        example = element_of_example(payload, None)
    except RefusedError:
        sequence = decode_sequence(payload)
        if sequence is None:
            raise
    else:
        if not has_lists_field(payload):
            return example
        raise RefusedError(
            "is not a `tf.train.Example`: it has lists, but does not parse as a SequenceExample"
        )
    _expect_apart(sequence)
    found = _all_values(sequence.context)
    for name, steps in sequence.lists.items():
        # A step without a kind is empty, and gets the kind of the other steps.
        kinds = (each.kind for each in steps if each.kind is not Kind.UNSET)
        kind = next(kinds, Kind.FLOAT)
        found[name] = [_step(step, kind) for step in steps]
    return dict(sorted(found.items()))


def element_of_sequence(payload: bytes, columns: Sequence[ArrayColumn]) -> dict[str, Any]:
    """The element that is made from a SequenceExample."""
    sequence = read_sequence(payload)
    if sequence is None:
        raise RefusedError("is not a `tf.train.SequenceExample`")
    _expect_apart(sequence)
    return {
        column.name: _stepped(column, sequence.lists.get(column.name))
        if column.is_list
        else shaped(column, sequence.context)
        for column in columns
    }


def _expect_apart(sequence: SequenceExample) -> None:
    if common := common_names(sequence):
        raise RefusedError(
            f"has `{common[0]}` in its context and among its lists, but an element can hold only "
            "one value of this name"
        )


def _stepped(column: ArrayColumn, steps: Sequence[Feature] | None) -> Any:
    if steps is None:
        if column.is_required:
            raise misfit(column, "it lacks the list")
        steps = ()
    kind = Kind(column.kind)
    for number, step in enumerate(steps):
        if step.kind is not kind and not (step.kind is Kind.UNSET and column.is_ragged):
            raise misfit(column, f"found {KIND_WORDS.get(step.kind, 'no kind')} in step {number}")
    if column.is_ragged:
        return [_step(step, kind) for step in steps]
    if not steps:
        return empty(column)
    size = prod(column.shape[1:])
    for number, step in enumerate(steps):
        if step.count != size:
            raise misfit(column, f"found {step.count} values in step {number}")
    return np.concatenate([values_of(step) for step in steps]).reshape(
        len(steps), *column.shape[1:]
    )


def _step(step: Feature, kind: Kind) -> Any:
    if step.kind is Kind.UNSET:
        return np.empty(0, _EMPTY.get(kind, np.dtype(np.float32)))
    return values_of(step)


Fit = Literal["stretch", "crop", "pad", "short-side"]
Method = Literal["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5"]


@dataclass(frozen=True, kw_only=True)
class ImageSize:
    """Arguments for the size and channels of decoded images."""

    size: tuple[int, int] | int | None = None
    """Height and width, or the shorter side; None to keep the size of each image."""
    fit: Fit = "stretch"
    channels: int = 0
    """Number of channels; 0 to keep the channels of each image."""
    method: Method = "bilinear"
    """How TensorFlow resizes images."""
    antialias: bool = False

    def __post_init__(self) -> None:
        # Plain integers: sources are saved as JSON, which does not take NumPy's.
        given: Any = self.size
        is_pair = isinstance(given, tuple | list)
        sides: Sequence[Any] = given if is_pair else (given,)
        if all(hasattr(each, "__index__") and not isinstance(each, bool) for each in sides):
            whole = tuple(map(operator.index, sides))
            object.__setattr__(self, "size", whole if is_pair else whole[0])

    @property
    def sides(self) -> tuple[int | None, int | None]:
        """Height and width of every image; None for a side that differs between images."""
        return self.size if isinstance(self.size, tuple) else (None, None)

    def expect_sense(self, *, decodes: bool) -> None:
        """Refuse invalid values and contradictory combinations."""
        expect_one_of("channels", self.channels, (0, 1, 3, 4))
        expect_one_of("fit", self.fit, get_args(Fit))
        expect_one_of("method", self.method, get_args(Method))
        if self != ImageSize() and not decodes:
            raise UsageError("`channels` and `image_size` need `decode=True`")
        if self.size is None:
            if self != ImageSize(channels=self.channels):
                raise UsageError("options for resizing need `image_size`")
            return
        sides: Any = (self.size,) * 2 if self.fit == "short-side" else self.size
        is_pair = isinstance(sides, tuple) and len(sides) == 2
        if not is_pair or not all(type(each) is int and each > 0 for each in sides):
            what = "the length of the shorter" if self.fit == "short-side" else "height and width"
            raise UsageError(f"`image_size` should be {what}, found {self.size}")


def expect_features(names: Iterable[str], known: Collection[str] | None) -> None:
    """Refuse features that the schema lacks. `known` is None if there is no schema."""
    if known is None:
        raise UsageError("no schema lists the features of the records: pass one with `schema=…`")
    for each in names:
        if each not in known:
            raise UsageError(
                f"the schema has no feature `{each}`{did_you_mean(each, known)}",
                hint=f"available: {listed(known)}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The form of a source's elements, as plain data."""

    raw: bool = False
    """Whether elements are payloads."""
    with_key: bool = False
    """Whether each element is paired with the key of its record."""
    with_digest: bool = False
    """Whether elements carry the digest of their record, for a certificate."""
    columns: tuple[ArrayColumn, ...] | None = None
    """The features of the schema; None without one, and for payloads."""
    sequence: bool = False
    """Whether the schema describes SequenceExamples."""
    images: tuple[str, ...] = ()
    """Features whose values are decoded."""
    size: ImageSize = field(default_factory=ImageSize)
    """The size and the channels that decoded images get."""
    damaged: Literal["raise", "skip"] = "raise"
    """What batches and iteration do at a damaged record."""
    max_damaged: int = 0
    """Maximum number of damaged records to leave out, in all parts of the source together."""

    def only(self, features: str | Collection[str]) -> Elements:
        """The same form with only these features of the schema."""
        chosen = (features,) if isinstance(features, str) else tuple(features)
        known = None if self.columns is None else [each.name for each in self.columns]
        expect_features(chosen, known)
        columns = tuple(each for each in self.columns or () if each.name in chosen)
        images = tuple(each for each in self.images if each in chosen)
        return replace(self, columns=columns, images=images)

    def read(self, payload: bytes) -> dict[str, Any]:
        """The element that is made from a payload."""
        if self.columns is None:
            return element_without_schema(payload)
        return (element_of_sequence if self.sequence else element_of_example)(payload, self.columns)


_FEWEST = 8
"""Minimum number of payloads in a block."""
_LARGEST = 1 << 13
"""A block is used only if the mean size of its payloads is at most this many bytes. For larger
payloads, a block saves no time."""


class BlockReader:
    """Makes elements of payloads."""

    def __init__(self, columns: Sequence[ArrayColumn] | None) -> None:
        self._columns = columns
        self._layout: layouts.Layout | None = None

    def __call__(self, payloads: Sequence[bytes]) -> list[dict[str, Any] | None]:
        """The elements of payloads; None for payloads that have to be read one by one."""
        found: list[dict[str, Any] | None] = [None] * len(payloads)
        size = sum(map(len, payloads))
        if len(payloads) < _FEWEST or size > _LARGEST * len(payloads):
            return found
        layout = self._layout
        if layout is None:
            example = decode_or_none(payloads[0])
            layout = self._layout = layouts.layout_of(example) if example else None
            if layout is None:
                return found
        lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
        memory = b"".join(payloads)
        rows, columns = layouts.read_columns(layout, memory, np.cumsum(lengths) - lengths, lengths)
        if 2 * len(rows) < len(payloads):
            self._layout = None  # the next block may show a better layout
        if not len(rows):
            return found
        wanted = self._columns
        if wanted is None:
            slots = sorted(layout, key=lambda slot: slot.name)
            wanted = [ArrayColumn(slot.name, int(slot.kind), (-1,), False) for slot in slots]
        places = {slot.name: at for at, slot in enumerate(layout)}
        values: list[Iterable[Any]] = []
        for column in wanted:
            at = places.get(column.name)
            if at is None:
                if column.is_fixed:
                    return found
                values.append(map(empty, repeat(column, len(rows))))
                continue
            several = _values(column, layout[at], memory, columns[at])
            if several is None:
                return found
            values.append(several)
        names = [column.name for column in wanted]
        if not names:
            return found
        for row, each in zip(rows.tolist(), zip(*values, strict=True), strict=True):
            found[row] = dict(zip(names, each, strict=True))
        return found


def _values(
    column: ArrayColumn, slot: layouts.Slot, memory: bytes, found: layouts.Column
) -> Iterable[Any] | None:
    """The value of a feature in each record; None if the values do not fit the column."""
    if column.kind != slot.kind:
        return None
    sides = prod(side for side in column.shape if side >= 0)
    fits = slot.values == sides if column.is_fixed else bool(sides) and not slot.values % sides
    if not fits:
        return None
    is_scalar = column.is_fixed and not column.shape
    values: npt.NDArray[Any] = found.integers
    if slot.kind is Kind.BYTES:
        pieces = zip(found.start.tolist(), found.stop.tolist(), strict=True)
        texts = [memory[start:stop] for start, stop in pieces]
        if is_scalar:
            return texts
        values = np.array(texts, object)
    elif slot.kind is Kind.FLOAT:  # packed numbers
        places = found.start[:, np.newaxis] + np.arange(4 * slot.values)
        packed = np.frombuffer(memory, np.uint8)[places].view("<f4")
        values = packed.astype(np.float32, copy=False)
    if is_scalar:
        return values.reshape(-1)
    # Copies, so that keeping an element does not keep its whole block.
    return [row.copy() for row in values.reshape(len(found.start), *column.shape)]
