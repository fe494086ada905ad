"""The program that the benchmark `check` times: checking one build, without imports.

usage: python -m benchmarks.check_read crc|ref JOBS REGISTRY      prints seconds

`crc` reads the shards as bare files, `ref` also compares them with their manifest.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

TURNS = 3
"""Number of checks; the fastest counts."""


def main() -> None:
    from tfrecreg.core.check.options import CheckOptions
    from tfrecreg.core.check.run import check
    from tfrecreg.core.workers.local import LocalEngine

    kind, jobs, out = sys.argv[1:]
    os.chdir(out)
    if kind == "crc":
        targets = sorted(map(str, Path("data/bench").glob("*.tfrecord*")))
        options = CheckOptions(only=("crc",))
    else:
        targets = ["bench"]
        options = CheckOptions(only=("crc", "manifest"))
    took = []
    for _ in range(TURNS):
        start = time.perf_counter()
        reports = check(targets, options=options, engine=LocalEngine(int(jobs)))
        took.append(time.perf_counter() - start)
        assert all(report.status == "pass" for report in reports)
    print(f"{kind} jobs={jobs} seconds={min(took):.4f}")


if __name__ == "__main__":
    main()
