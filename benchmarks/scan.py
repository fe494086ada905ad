"""Reading with both checksums, against the limit of C and against tf.data."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from argparse import Namespace
from functools import partial
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run
from tfrecreg.core.records.framing import frame

__all__ = ["main"]

_SMALL = 900
_LARGE = 100_000
"""Sizes of a payload in bytes: of a digit with its keys, and of an image."""
_BYTES = 2_700
"""Bytes of large records per small record, so that both files take a similar time."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        limit = Path(work) / "limit"
        source = Path(__file__).with_name("limit.c")
        subprocess.run(["cc", "-O3", str(source), "-o", str(limit)], check=True)
        rows = []
        for size, count in (
            (_SMALL, arguments.count),
            (_LARGE, arguments.count * _BYTES // _LARGE),
        ):
            path = Path(work) / f"{size}.tfrecord"
            _write(path, size, count)
            rows += _rows(path, f"{count:,} records of {size:,} bytes", limit, size, arguments.runs)
            path.unlink()
        return rows


def _write(path: Path, size: int, count: int) -> None:
    source = random.Random(size)
    with path.open("wb") as file:
        for _ in range(count):
            payload = source.randbytes(size)
            header, footer = frame(payload)
            file.writelines((header, payload, footer))


def _rows(path: Path, what: str, limit: Path, size: int, runs: int) -> list[str]:
    def reading(kind: str) -> Measured:
        return run(
            [sys.executable, "-m", "benchmarks.scan_read", kind, str(path)],
            TF_CPP_MIN_LOG_LEVEL="3",
        )

    native, python, tfdata = (partial(reading, kind) for kind in ("native", "python", "tfdata"))
    bare = partial(run, [str(limit), str(path)])
    large = size == _LARGE
    rows = []
    peak = 0
    for name, ours, theirs, target in (
        ("limit / compiled scanner", native, bare, "at least 0.9" if large else "at least 0.8"),
        ("limit / scanner in Python", python, bare, "at least 0.9" if large else ""),
        ("tf.data / compiled scanner", native, tfdata, "at least 3" if large else "at least 7"),
        ("tf.data / scanner in Python", python, tfdata, "at least 3" if large else "at least 1"),
    ):
        readings, others = alternate(runs, ours, theirs)
        rows.append(row(f"{what}: {name}", readings, others, target, faster=True))
        peak = max(peak, *(each.peak for each in readings))
    print(f"{what}: {path.stat().st_size / 1e6:,.0f} MB, read in {peak / 1e6:.0f} MB of memory")
    return rows
