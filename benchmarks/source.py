"""Records for training: in order and at random, against readers of TFRecord and ArrayRecord."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from argparse import Namespace
from functools import partial
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.records.framing import frame

__all__ = ["main"]

_SIZES = {300: 1, 900: 1, 100_000: 20}
"""Bytes of a record, and by how much fewer there are."""
SCHEMA = "".join(
    f'feature {{ name: "{name}" type: {kind} presence {{ min_fraction: 1 }} shape {{}} }}\n'
    for name, kind in (("image", "BYTES"), ("label", "INT"), ("height", "INT"), ("width", "INT"))
)


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    peers = arguments.peers_python or sys.executable
    rows = []
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        (Path(work) / "schema.pbtxt").write_text(SCHEMA)
        for size, fewer in _SIZES.items():
            path = Path(work) / f"{size}.tfrecord"
            count = arguments.count // fewer
            _write(path, size, count)
            what = f"{count:,} records of {size:,} bytes"

            def reading(python: str, kind: str, path: Path = path) -> Measured:
                return run(
                    [python, "-m", "benchmarks.source_read", kind, str(path)],
                    TF_CPP_MIN_LOG_LEVEL="3",
                    XDG_CACHE_HOME=str(path.parent / "cache"),
                )

            pairs = [
                ("one by one at random: ArrayRecord", "one", "array_record-one", "at least 2"),
                ("by 256 at random: ArrayRecord", "many", "array_record-many", "at least 2"),
                ("shuffled by Grain: ArrayRecord", "grain", "array_record-grain", "at least 1.5"),
            ]
            if size == 900:
                pairs = [
                    ("in order, decoded: `tfrecord`", "decoded", "tfrecord-decoded", "at least 5"),
                    ("in order, decoded: tf.data", "decoded", "tfdata-decoded", "at least 3"),
                ]
            for name, ours, theirs, target in pairs:
                other = sys.executable if theirs.startswith("tfdata") else peers
                taken = alternate(
                    arguments.runs, partial(reading, peers, ours), partial(reading, other, theirs)
                )
                rows.append(row(f"{what}, {name} / ours", *taken, target, faster=True))
    return rows


def _write(path: Path, size: int, count: int) -> None:
    source = random.Random(size)
    with path.open("wb") as file:
        for number in range(count):
            payload = encode(
                {
                    "image": bytes_feature(source.randbytes(size - 100)),
                    "label": int64_feature(number % 10),
                    "height": int64_feature(28),
                    "width": int64_feature(28),
                }
            )
            header, footer = frame(payload)
            file.writelines((header, payload, footer))
    os.utime(path, (1e9, 1e9))
