"""The judge of these tests: `tf.train.Example` as protobuf's own parser reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import api_implementation

_Field = descriptor_pb2.FieldDescriptorProto


def _message_class() -> Any:
    """A class for `tf.train.Example`, in a pool of its own: TensorFlow's stays untouched."""
    file = descriptor_pb2.FileDescriptorProto(name="e.proto", package="t", syntax="proto3")

    def message(name: str, *fields: tuple[str, int, int, str]) -> Any:
        made = file.message_type.add(name=name)
        for number, (label, repeated, kind, of) in enumerate(fields, start=1):
            made.field.add(
                name=label,
                number=number,
                label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL,
                type=kind,
                type_name=of or None,
            )
        return made

    message("BytesList", ("value", 1, _Field.TYPE_BYTES, ""))
    message("FloatList", ("value", 1, _Field.TYPE_FLOAT, ""))
    message("Int64List", ("value", 1, _Field.TYPE_INT64, ""))
    feature = message(
        "Feature",
        ("bytes_list", 0, _Field.TYPE_MESSAGE, ".t.BytesList"),
        ("float_list", 0, _Field.TYPE_MESSAGE, ".t.FloatList"),
        ("int64_list", 0, _Field.TYPE_MESSAGE, ".t.Int64List"),
    )
    feature.oneof_decl.add(name="kind")
    for field in feature.field:
        field.oneof_index = 0
    features = message("Features", ("feature", 1, _Field.TYPE_MESSAGE, ".t.Features.FeatureEntry"))
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
    entry.field.add(
        name="value",
        number=2,
        label=_Field.LABEL_OPTIONAL,
        type=_Field.TYPE_MESSAGE,
        type_name=".t.Feature",
    )
    message("Example", ("features", 0, _Field.TYPE_MESSAGE, ".t.Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Example"))


def _varint(number: int) -> bytes:
    groups = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([group | 128 for group in groups[:-1]] + groups[-1:])


def _delimited(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


@pytest.fixture(scope="session")
def delimited() -> Callable[[int, bytes], bytes]:
    """Writes one length-delimited field: number, content."""
    return _delimited


@pytest.fixture(scope="session")
def judge() -> Callable[[bytes], tuple[bytes, bool] | None]:
    """What upb makes of a payload: the canonical form, and whether there are unknown fields.

    The canonical form is put together from upb's own `Feature` messages. None where it refuses.
    """
    if api_implementation.Type() != "upb":
        pytest.skip(f"protobuf runs on `{api_implementation.Type()}` here, not on upb")
    example = _message_class()
    from google.protobuf.message import DecodeError

    def read(payload: bytes) -> tuple[bytes, bool] | None:
        try:
            found = example.FromString(payload)
        except DecodeError:
            return None
        size = found.ByteSize()
        found.DiscardUnknownFields()
        unknown = found.ByteSize() != size
        content = b"".join(
            _delimited(1, _delimited(1, key.encode()) + _delimited(2, value.SerializeToString()))
            for key, value in sorted(found.features.feature.items(), key=lambda item: item[0])
        )
        return (_delimited(1, content) if content else b""), unknown

    return read
