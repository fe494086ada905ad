"""The cost of a page in addition to the check that it shows."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from functools import partial
from pathlib import Path

from benchmarks.pairs import alternate, row, run
from benchmarks.raw import digits, images

__all__ = ["main"]


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    rows = []
    kinds = (
        ("mnist", digits, arguments.count, "digits"),
        ("imagefolder", images, arguments.count // 20, "JPEGs"),
    )
    for source, write, count, what in kinds:
        with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
            raw, out = Path(work) / "raw", Path(work) / "out"
            write(raw, count)
            build = [sys.executable, "-m", "benchmarks.build", source, str(raw), str(out)]
            print(run(build).output.strip())
            program = [sys.executable, "-m", "tfrecreg", "-C", str(out)]
            page = str(Path(work) / "page.html")
            ours, check = alternate(
                arguments.runs,
                partial(run, [*program, "report", "bench", "--output", page, "-j", "1"]),
                partial(run, [*program, "check", "bench", "-j", "1"]),
            )
            name = f"{count:,} {what}: `report` / `check`, whole processes"
            rows.append(row(name, ours, check, "at most 1.5", inner=False))
    return rows
