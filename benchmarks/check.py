"""The cost of a manifest's digests in addition to both checksums, in one pass."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from functools import partial
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run
from benchmarks.raw import images

__all__ = ["main"]


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        raw, out = Path(work) / "raw", Path(work) / "out"
        images(raw, arguments.count)
        build = [sys.executable, "-m", "benchmarks.build", "imagefolder", str(raw), str(out)]
        print(run(build).output.strip())

        def reading(kind: str, jobs: int) -> Measured:
            return run([sys.executable, "-m", "benchmarks.check_read", kind, str(jobs), str(out)])

        crc = partial(reading, "crc", 1)
        rows = []
        for jobs, target in ((1, "at least 0.45"), (2, "at least 0.8")):
            ours, alone = alternate(arguments.runs, partial(reading, "ref", jobs), crc)
            cores = "one core" if jobs == 1 else f"{jobs} cores"
            what = f"{arguments.count:,} JPEGs: CRC alone / `check REF` on {cores}"
            rows.append(row(what, ours, alone, target, faster=True))
        return rows
