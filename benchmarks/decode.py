"""Our decoder of Examples against protobuf's: ``python -m benchmarks.decode``.

Prints CPU microseconds per payload, the median of 15 runs. Each payload has eight features: one of
random bytes, which determines its size, and seven small ones; the last row has long lists instead.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from tfrecreg.core.example.decode import canonical, decode
from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature

_LIST = 'name: "%s" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_%s }'
_FIELD = 'field { name: "%s" number: %d label: LABEL_%s type: TYPE_MESSAGE type_name: ".t.%s" %s}'
_KINDS = (("BytesList", "BYTES"), ("FloatList", "FLOAT"), ("Int64List", "INT64"))
_NAMES = ("bytes_list", "float_list", "int64_list")
_PROTO = "\n".join(
    [
        'name: "benchmark.proto" package: "t" syntax: "proto3"',
        *(f"message_type {{ {_LIST % kind} }}" for kind in _KINDS),
        'message_type { name: "Feature" oneof_decl { name: "kind" }',
        *(
            _FIELD % (name, number, "OPTIONAL", kind, "oneof_index: 0 ")
            for number, (name, (kind, _)) in enumerate(zip(_NAMES, _KINDS, strict=True), start=1)
        ),
        "}",
        'message_type { name: "Features"',
        'nested_type { name: "FeatureEntry" options { map_entry: true }',
        'field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }',
        _FIELD % ("value", 2, "OPTIONAL", "Feature", "") + " }",
        _FIELD % ("feature", 1, "REPEATED", "Features.FeatureEntry", "") + " }",
        'message_type { name: "Example" ' + _FIELD % ("features", 1, "OPTIONAL", "Features", ""),
        "}",
    ]
)


def _message_class() -> Any:
    file = text_format.Parse(_PROTO, descriptor_pb2.FileDescriptorProto())
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Example"))


class _Lazy:
    """A feature of a parsed message: the minimum that an adapter would need."""

    __slots__ = ("count", "kind", "message")

    def __init__(self, message: Any) -> None:
        self.message = message
        self.kind = message.WhichOneof("kind")
        self.count = len(getattr(message, self.kind).value) if self.kind else 0

    @property
    def values(self) -> tuple[Any, ...]:
        return tuple(getattr(self.message, self.kind).value) if self.kind else ()


def _payload(size: int) -> bytes:
    source = random.Random(size)
    small: dict[str, Feature] = {
        "image/format": bytes_feature(b"png"),
        "image/height": int64_feature(28),
        "image/width": int64_feature(280),
        "label": int64_feature(7),
        "name": bytes_feature(b"train/cat/0001.png"),
        "score": float_feature(0.5),
        "box": float_feature([0.1, 0.2, 0.3, 0.4]),
    }
    return encode({**small, "image/encoded": bytes_feature(source.randbytes(size - 180))})


def _lists() -> bytes:
    source = random.Random(1)
    integers = {f"i{n}": int64_feature(source.randrange(1000) for _ in range(1000)) for n in "1234"}
    floats = {f"f{n}": float_feature(source.random() for _ in range(1000)) for n in "1234"}
    return encode({**integers, **floats})


def _microseconds(work: Callable[[bytes], object], payload: bytes) -> float:
    count = max(3, min(2000, 20_000_000 // (len(payload) * 10 + 2000)))
    times = []
    for _ in range(15):
        begin = time.thread_time()
        for _ in range(count):
            work(payload)
        times.append((time.thread_time() - begin) / count * 1e6)
    return statistics.median(times)


def main() -> None:
    """Measure, and print one row per payload."""
    message = _message_class()

    def adapted(payload: bytes) -> dict[str, _Lazy]:
        features = message.FromString(payload).features.feature
        return {name: _Lazy(feature) for name, feature in features.items()}

    ways: dict[str, Callable[[bytes], object]] = {
        "ours": decode,
        "ours, values": lambda payload: [each.values for each in decode(payload).values()],
        "ours, canonical": canonical,
        "protobuf, parsed only": message.FromString,
        "protobuf, adapted": adapted,
        "protobuf, values": lambda payload: [each.values for each in adapted(payload).values()],
    }
    sizes = (300, 1000, 10_000, 100_000, 1_000_000, 10_000_000)
    for payload in (*map(_payload, sizes), _lists()):
        found = [f"{name} {_microseconds(work, payload):.1f}" for name, work in ways.items()]
        print(f"{len(payload):,} bytes: {'; '.join(found)}", flush=True)


if __name__ == "__main__":
    main()
