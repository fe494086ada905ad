"""Shards to convert, with whatever payloads and keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.builtin.export.parquet import ParquetFormat, schema_columns
from tfrecreg.builtin.export.records import ArrayRecordFormat, JsonLines
from tfrecreg.builtin.export.webdataset import WebDatasetFormat, sample_layout
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.plugins.convert import RecordFormat
from tfrecreg.core.plugins.exporters import ShardToExport
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.registry.manifest import ShardEntry
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.storage.local import LocalStorage

SCHEMA = """
feature { name: "image/encoded" type: BYTES presence { min_fraction: 1 } shape {} image_domain {} }
feature { name: "image/class/label" type: INT presence { min_fraction: 1 } shape {} }
feature { name: "text" type: BYTES natural_language_domain {} }
feature { name: "name" type: BYTES presence { min_fraction: 1 } shape {}
          string_domain { value: "a" } }
feature { name: "raw" type: BYTES }
feature { name: "score" type: FLOAT presence { min_fraction: 1 } shape {} }
feature { name: "boxes" type: FLOAT }
feature { name: "sizes" type: INT }
feature { name: "__key__" type: BYTES }
feature { name: "vague" }
"""
GIF = b"GIF89a\x07\0\x05\0" + b"\0" * 9
NANS = bytes.fromhex("0100807f 010080ff 0000c07f 000080ff 00000080 ffff7f7f 01000000")
"""Bits of float32: signaling and quiet NaN, infinity, -0, the largest, the smallest."""

NASTY: tuple[Example, ...] = (
    {
        "image/encoded": bytes_feature(GIF),
        "image/class/label": int64_feature(1),
        "text": bytes_feature(["eins", "zwei", ""]),
        "name": bytes_feature("ü\0"),
        "raw": bytes_feature([b"\xff\0", b""]),
        "score": float_feature(0.1),
        "boxes": float_feature([0.5, -0.0]),
        "sizes": int64_feature([-(2**63), 2**63 - 1, 0]),
    },
    {},
    {name: bytes_feature([]) for name in ("image/encoded", "text", "name", "raw", "score")},
    {name: float_feature([]) for name in ("image/encoded", "text", "score", "boxes", "sizes")},
    {name: int64_feature([]) for name in ("image/class/label", "boxes", "sizes", "raw")},
    {name: unset_feature() for name in ("image/encoded", "sizes", "score", "", "other")},
    {"score": float_feature(NANS[:4]), "boxes": float_feature(NANS), "more": float_feature(NANS)},
    {
        "image/encoded": bytes_feature([GIF, b""]),
        "image/class/label": int64_feature([1, 2]),
        "name": bytes_feature(b"\xff"),
        "text": bytes_feature([b"fine", b"\xc3"]),
        "score": int64_feature(3),
        "sizes": bytes_feature("3"),
        "__key__": bytes_feature("mine"),
        "__split__": bytes_feature("mine"),
        "__rest__": bytes_feature("mine"),
        "key": bytes_feature("a key"),
        "features": int64_feature(7),
        "vague": float_feature([1.0, 1e22, 1e-40]),
    },
    {"image/encoded": bytes_feature(b"no image"), "image/class/label": int64_feature(-5)},
    {"image/encoded": int64_feature(1), "image/class/label": bytes_feature("1")},
    {"text": bytes_feature('{"base64": "AAAA"}'), "raw": bytes_feature(b"{}")},
)
"""All that an Example may be, in features that :data:`SCHEMA` declares and in others."""

FORMATS: dict[str, Callable[[], RecordFormat]] = {
    "arrayrecord": ArrayRecordFormat,
    "jsonl": lambda: JsonLines({"image/class/label": ["zero", "one"]}),
    "parquet": lambda: parquet(SCHEMA),
    "webdataset": lambda: webdataset(SCHEMA),
}


def parquet(schema: str) -> ParquetFormat:
    return ParquetFormat(schema_columns(parse_schema(schema, "x")), "{}")


def webdataset(schema: str, labels: Mapping[str, Sequence[str]] = {}) -> WebDatasetFormat:
    return WebDatasetFormat(sample_layout(parse_schema(schema, "x"), labels))


MakeTask = Callable[..., ShardToExport]


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """``make_task(payloads, keys)``: a shard with these records, to be exported as ``out``."""

    def make(payloads: Sequence[bytes], keys: Sequence[str] | None = None) -> ShardToExport:
        source = LocalStorage(tmp_path / "source")
        index = None if keys is None else "s/index"
        with ShardWriter(source, "s/shard", index_path=index) as writer:
            for number, payload in enumerate(payloads):
                digest = record_digest(canonical(payload))
                key = str(number) if keys is None else keys[number]
                writer.write(payload, digest=digest, key=key)
        (tmp_path / "stage").mkdir(exist_ok=True)
        entry = ShardEntry.of("s/shard", writer.written, split="train", index=index or "")
        return ShardToExport(
            reference="things@1.0.0",
            storage=source,
            entry=entry,
            compression="none",
            folder=LocalStorage(tmp_path / "stage"),
            name="out",
        )

    return make


@pytest.fixture
def nasty(make_task: MakeTask) -> ShardToExport:
    """A shard of :data:`NASTY`."""
    return make_task([encode(each) for each in NASTY])


@pytest.fixture(params=FORMATS)
def record_format(request: pytest.FixtureRequest) -> RecordFormat:
    """Each of the formats, for :data:`SCHEMA`."""
    if request.param == "parquet":
        pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    if request.param == "arrayrecord":
        pytest.importorskip("array_record", reason="the extra `arrayrecord` is not installed")
    return FORMATS[request.param]()


def renamed(task: ShardToExport, **changes: Any) -> ShardToExport:
    """A task whose manifest says something else of the shard."""
    return replace(task, entry=replace(task.entry, **changes))
