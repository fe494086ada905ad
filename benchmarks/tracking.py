"""The time that DVC adds to a release, against `dvc add` of the same folder."""

from __future__ import annotations

import statistics
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from benchmarks.pairs import Measured, alternate, run
from benchmarks.raw import images

__all__ = ["main"]


def main(arguments: Namespace) -> list[str]:
    """Run it and return the row of the table: whole processes on both sides."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        raw = Path(work) / "raw"
        images(raw, arguments.count)
        weight = sum(path.stat().st_size for path in raw.rglob("*.jpg"))

        def one(kind: str) -> Measured:
            out = f"{work}/{kind}"
            return run([sys.executable, "-m", "benchmarks.release", kind, str(raw), out])

        def both() -> Measured:
            plain, tracked = one("plain"), one("dvc")
            extra = tracked.inner - plain.inner
            return Measured(extra, extra, tracked.peak, tracked.output)

        ours, theirs = alternate(arguments.runs, both, lambda: one("add"))
        ratios = [a.inner / b.inner for a, b in zip(ours, theirs, strict=True)]
        seconds = [statistics.median(each.inner for each in side) for side in (ours, theirs)]
        return [
            f"| {arguments.count:,} JPEGs, {weight / 1e6:,.0f} MB: release with DVC - release "
            f"without / `dvc add` | {seconds[0]:.2f} s | {seconds[1]:.2f} s | "
            f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f}) | "
            "at most 1.2 |"
        ]
