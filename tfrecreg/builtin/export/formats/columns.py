"""The columns that a schema gives, and features as Arrow arrays.

A column holds a feature exactly, or not at all: `null` is a feature that is absent, an empty list
one without values. :meth:`FeatureColumn.holds` says which features it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tfrecreg.api import Feature, Kind, Schema, bytes_feature, float_feature, int64_feature

_KINDS = {"BYTES": Kind.BYTES, "FLOAT": Kind.FLOAT, "INT": Kind.INT64}
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class FeatureColumn:
    """The column of one feature. Picklable."""

    name: str
    kind: Kind
    is_text: bool
    """Whether values are strings instead of bytes."""
    is_scalar: bool
    """Whether each row has one value instead of a list."""
    is_image: bool = False
    """Whether values are images as Hugging Face has them: a struct of bytes and a path."""

    def holds(self, feature: Feature) -> bool:
        """Whether the column can hold this feature without loss."""
        if feature.kind is not self.kind or (self.is_scalar and feature.count != 1):
            return False
        return not self.is_text or is_text(feature)

    def arrow_type(self, pa: Any) -> Any:
        """The column's type."""
        value = self._value_type(pa)
        return value if self.is_scalar else pa.list_(value)

    def to_arrow(self, pa: Any, features: Sequence[Feature | None]) -> Any:
        """The array of some rows; None is an absent feature. The column holds all others."""
        if self.is_scalar:
            return self._values(pa, features)
        ends = np.cumsum([0 if each is None else each.count for each in features], dtype=np.int64)
        starts = np.concatenate((np.zeros(1, np.int64), ends))
        # A list whose offset is null is null itself.
        absent = np.array([*(each is None for each in features), False])
        offsets = pa.array(starts.astype(np.int32), mask=absent, from_pandas=False)
        flat = self._values(pa, [each for each in features if each is not None])
        return pa.ListArray.from_arrays(offsets, flat)

    def from_arrow(self, pa: Any, array: Any) -> list[Feature | None]:
        """The features of the rows of an array: the inverse of :meth:`to_arrow`."""
        present = array.is_valid().to_numpy(zero_copy_only=False)
        if self.is_scalar:
            flat, starts = array, np.arange(len(array) + 1)
        else:
            flat, starts = array.values, array.offsets.to_numpy()
        if self.is_image:
            flat = flat.field(0)
        if self.kind is Kind.FLOAT:
            data = _float_bits(flat)
            slices: list[Any] = [
                data[_FLOAT_BYTES * start : _FLOAT_BYTES * end] for start, end in pairwise(starts)
            ]
            return [
                float_feature(each) if there else None
                for each, there in zip(slices, present, strict=True)
            ]
        values = flat.cast(pa.binary()).to_pylist() if self.kind is Kind.BYTES else flat.to_pylist()
        make = bytes_feature if self.kind is Kind.BYTES else int64_feature
        return [
            make(values[start:end]) if there else None
            for (start, end), there in zip(pairwise(starts), present, strict=True)
        ]

    def _value_type(self, pa: Any) -> Any:
        if self.is_image:
            return pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        if self.kind is Kind.BYTES:
            return pa.string() if self.is_text else pa.binary()
        return pa.float32() if self.kind is Kind.FLOAT else pa.int64()

    def _values(self, pa: Any, features: Sequence[Feature | None]) -> Any:
        """The values of all features, concatenated; null for None."""
        if self.kind is Kind.FLOAT:
            bits = b"".join(
                bytes(_FLOAT_BYTES) if each is None else each.packed_floats for each in features
            )
            # Each None is one value here, as lists come without None.
            absent = None
            if self.is_scalar:
                absent = np.array([each is None for each in features], np.bool_)
            floats = np.frombuffer(bits, "<f4").astype("=f4", copy=False)
            return pa.array(floats, mask=absent, from_pandas=False, type=pa.float32())
        values = [
            value for each in features for value in ((None,) if each is None else each.values)
        ]
        if self.is_image:
            paths = pa.nulls(len(values), pa.string())
            absent = pa.array([each is None for each in values], pa.bool_())
            data = pa.array(values, type=pa.binary())
            return pa.StructArray.from_arrays([data, paths], ["bytes", "path"], mask=absent)
        if self.kind is Kind.BYTES:
            return pa.array(values, type=pa.binary()).cast(self._value_type(pa))
        return pa.array(values, type=pa.int64())


def schema_columns(
    schema: Schema,
    reserved: frozenset[str],
    *,
    with_images: bool = False,
    texts: frozenset[str] = frozenset(),
) -> tuple[FeatureColumn, ...]:
    """The columns for the features that a schema declares with a type, in order of their names."""
    rules = {each.name: each for each in schema.features}
    return tuple(
        FeatureColumn(
            name=name,
            kind=_KINDS[rule.kind],
            is_text=rule.is_text or name in texts,
            is_scalar=rule.is_required and rule.tensor_shape == (),
            is_image=with_images and rule.kind == "BYTES" and rule.is_image,
        )
        for name, rule in sorted(rules.items())
        if rule.kind in _KINDS and not rule.levels and name and name not in reserved
    )


def is_text(feature: Feature) -> bool:
    """Whether all values of a feature of bytes are valid UTF-8."""
    return all(map(_is_utf8, feature.values))


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _float_bits(array: Any) -> bytes:
    """The bits of a float32 array, little-endian; any for nulls."""
    floats = array.fill_null(0.0) if array.null_count else array
    data: bytes = floats.to_numpy(zero_copy_only=False).astype("<f4", copy=False).tobytes()
    return data
