"""TFRecords as other tools write them."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

from check_support import framed
from registry_support import write

from tfrecreg.core.example.model import Example, Feature, encode, fields, varint
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature


def field(number: int, data: bytes) -> bytes:
    """A field of a protobuf message that holds bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def example(number: int, **more: Feature) -> bytes:
    """A record such as another tool would make: a name, a label, some numbers."""
    features = {
        "name": bytes_feature(f"item-{number:04d}".encode()),
        "label": int64_feature(number % 3),
        "numbers": float_feature([number, number / 2]),
    }
    return encode({**features, **more})


def _message(feature: Feature) -> bytes:
    """A `Feature`, taken out of an Example that holds nothing else."""
    payload = encode({"": feature})
    start, end = 0, len(payload)
    for number in (1, 1, 2):
        found = fields(payload, start, end, 100)
        start = next(first for (each, _), first, _ in found if each == number)
    return payload[start:]


def sequence(context: Example, lists: Mapping[str, Iterable[Feature]]) -> bytes:
    entries = b"".join(
        field(1, field(1, name.encode()) + field(2, b"".join(field(1, _message(s)) for s in steps)))
        for name, steps in lists.items()
    )
    return encode(context) + field(2, entries)


SEQUENCES = [
    sequence({"n": int64_feature(number)}, {"s": [bytes_feature(b"x")] * number})
    for number in range(5)
]


def summary(**values: float) -> bytes:
    """A `Summary` of simple values, as a field of an event."""
    return field(
        5,
        b"".join(
            field(1, field(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
            for tag, value in values.items()
        ),
    )


def event(seconds: float, what: bytes | None = None, step: int = 0) -> bytes:
    """A TensorBoard event; by default the first of a log."""
    head = b"\x09" + struct.pack("<d", seconds) + (b"\x10" + varint(step) if step else b"")
    return head + (field(3, b"brain.Event:2") if what is None else what)


def put(path: Path, *payloads: bytes, packed: bool = False) -> Path:
    data = framed(*payloads)
    return write(path, gzip.compress(data, mtime=0) if packed else data)


def write_set(folder: Path, split: str, count: int, of: int, *, first: int = 0) -> list[Path]:
    """``train-00000-of-00002.tfrecord`` and so on, with so many Examples in all."""
    return [
        put(
            folder / f"{split}-{number:05d}-of-{of:05d}.tfrecord",
            *(example(first + each) for each in range(number, count, of)),
        )
        for number in range(of)
    ]
