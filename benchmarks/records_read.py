"""The program that the benchmark `records` times: checking an adopted shard in one process.

usage: python -m benchmarks.records_read make FOLDER BYTES COUNT [ragged]
       python -m benchmarks.records_read check FOLDER [VALIDATOR]      prints CPU seconds

Records have the eight features of `imagefolder`; each holds a PNG of its own. Ragged ones have a
list of one to eight more class numbers, so they do not share a layout.
"""

from __future__ import annotations

import hashlib
import os
import random
import struct
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from tfrecreg import check, init
from tfrecreg.api import Example
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.testing import write_shard

_WARM = 200
"""Number of records of the dataset that is checked first, so that imports are not counted."""


def _png(source: random.Random, size: int) -> tuple[bytes, int, int]:
    """A gray PNG of about that size, its height and its width."""
    height = max(1, round(max(size - 70, 16) ** 0.5))
    width = max(1, (size - 70) // height - 1)
    lines = b"".join(b"\0" + source.randbytes(width) for _ in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 0)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks, height, width


def _example(source: random.Random, number: int, size: int, *, ragged: bool = False) -> Example:
    label = number % 10
    more = {"classes": int64_feature([label] * source.randint(1, 8))} if ragged else {}
    data, height, width = _png(source, size)
    return {
        "image/class/label": int64_feature(label),
        "image/class/text": bytes_feature(f"class {label}".encode()),
        "image/encoded": bytes_feature(data),
        "image/filename": bytes_feature(f"class {label}/{number:08d}.png".encode()),
        "image/format": bytes_feature(b"png"),
        "image/height": int64_feature(height),
        "image/key/sha256": bytes_feature(hashlib.sha256(data).hexdigest().encode()),
        "image/width": int64_feature(width),
        **more,
    }


def _examples(size: int, count: int, *, ragged: bool) -> Iterator[Example]:
    source = random.Random(size)
    around = len(encode(_example(source, 0, 100))) - 100
    for number in range(count):
        yield _example(source, number, max(size - around, 80), ragged=ragged)


def make(folder: Path, size: int, count: int, *, ragged: bool) -> None:
    """Adopt a shard of `count` records of about `size` bytes, and a small one."""
    registry = init(folder, with_dvc=False)
    for name, records in (("warm", _WARM), ("bench", count)):
        path = folder / f"{name}-train.tfrecord-00000-of-00001"
        write_shard(path, _examples(size, records, ragged=ragged))
        registry[name].adopt(path)
        path.unlink()


def measure(folder: Path, only: tuple[str, ...]) -> None:
    """Check the large shard and print its CPU seconds."""
    os.chdir(folder)
    check("warm", only=only)
    start = time.process_time()
    report = check("bench", only=only)
    took = time.process_time() - start
    assert report.status == "pass", report.findings
    print(f"records={report.records} seconds={took:.3f}")


if __name__ == "__main__":
    kind, place, *rest = sys.argv[1:]
    if kind == "make":
        make(Path(place), *map(int, rest[:2]), ragged="ragged" in rest)
    else:
        measure(Path(place), tuple(filter(None, rest)))
