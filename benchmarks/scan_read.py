"""The program that the benchmark `scan` times: one file read to its end, without imports.

usage: python -m benchmarks.scan_read native|python|tfdata FILE      prints records and seconds
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

TURNS = 5
"""Number of readings of the file; the fastest counts, as in ``limit.c``."""


def ours(path: str) -> Callable[[], int]:
    """A function that reads a file as ``check --only crc`` does, and returns its number of sound
    records.
    """
    from tfrecreg.core.check.options import CheckOptions
    from tfrecreg.core.check.run import check
    from tfrecreg.core.workers.local import LocalEngine

    options = CheckOptions(only=("crc",))

    def read() -> int:
        (report,) = check([path], options=options, engine=LocalEngine(1))
        assert report.status == "pass", report.findings
        return report.records

    return read


def tfdata(path: str) -> Callable[[], int]:
    """A function that reads a file by tf.data in batches, with both checksums, and returns its
    number of records.
    """
    import tensorflow as tf

    def read() -> int:
        batches = tf.data.TFRecordDataset(path, buffer_size=8 << 20).batch(256)
        return int(batches.reduce(0, lambda count, batch: count + tf.shape(batch)[0]))

    return read


def main() -> None:
    kind, path = sys.argv[1:]
    os.environ["TFRECREG_SCANNER"] = kind if kind in ("native", "python") else "auto"
    read = tfdata(path) if kind == "tfdata" else ours(path)
    best = 0.0
    for turn in range(TURNS):
        start = time.perf_counter()
        records = read()
        took = time.perf_counter() - start
        best = took if turn == 0 else min(best, took)
    print(f"{kind} records={records} seconds={best:.5f}")


if __name__ == "__main__":
    main()
