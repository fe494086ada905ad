"""Statistics, conformance and anomalies in one pass, against TFDV through Beam."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from pathlib import Path

import numpy as np

from benchmarks.pairs import Measured, alternate, row, run
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.records.framing import frame

__all__ = ["SCHEMA", "main"]

SCHEMA = """
feature { name: "image" type: BYTES presence { min_fraction: 1 } image_domain {} }
feature { name: "label" type: INT presence { min_fraction: 1 } int_domain { min: 0 max: 999 } }
feature { name: "height" type: INT }
feature { name: "width" type: INT }
feature { name: "name" type: BYTES }
"""

_LARGE = (60_000, 140_000)
_SMALL = (784, 785)
"""Sizes of an image in bytes: the minimum, and the end of the range."""
_EACH = 100
"""Number of small records per large one, for about the same number of bytes."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        rows = []
        for sizes, count in ((_LARGE, arguments.count), (_SMALL, arguments.count * _EACH)):
            path = Path(work) / "records.tfrecord"
            _write(path, sizes, count)
            weight = path.stat().st_size
            what = f"{count:,} records of {weight // count:,} bytes, {weight / 1e6:,.0f} MB"
            rows += _rows(path, what, arguments.runs, large=sizes is _LARGE)
            path.unlink()
        return rows


def _write(path: Path, sizes: tuple[int, int], count: int) -> None:
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for number in range(count):
            payload = encode(
                {
                    "image": bytes_feature(rng.bytes(int(rng.integers(*sizes)))),
                    "label": int64_feature(number % 1000),
                    "height": int64_feature(480),
                    "width": int64_feature(640),
                    "name": bytes_feature(b"%d.jpg" % number),
                }
            )
            header, footer = frame(payload)
            file.writelines((header, payload, footer))


def _rows(path: Path, what: str, runs: int, *, large: bool) -> list[str]:
    def making(kind: str) -> Measured:
        return run([sys.executable, "-m", "benchmarks.stats_make", kind, str(path)])

    target = "at least 40" if large else "at least 10"
    ours, theirs = alternate(runs, lambda: making("ours"), lambda: making("tfdv"))
    again, informed = alternate(runs, lambda: making("ours"), lambda: making("tfdv-schema"))
    peak = max(each.peak for each in ours)
    return [
        row(f"{what}: TFDV / ours", ours, theirs, target, faster=True),
        row(f"{what}: TFDV with our schema / ours", again, informed, "", faster=True),
        row(
            f"{what}: TFDV / ours, whole processes; ours took {peak / 1e6:,.0f} MB",
            ours,
            theirs,
            "at least 3",
            inner=False,
            faster=True,
        ),
    ]
