"""Checking records of four sizes, all validators and the schema's alone.

The table has CPU seconds: nothing runs beside, and the process that checks has been warmed up.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from benchmarks.pairs import Measured, run

__all__ = ["main"]

SIZES = {300: 1.0, 900: 1.0, 10_000: 1 / 3, 100_000: 1 / 15}
"""Bytes of a record to the share of `--count` that is made of that size."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    rows = []
    for size, share in SIZES.items():
        count = int(arguments.count * share)
        with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
            command = [sys.executable, "-m", "benchmarks.records_read"]
            run([*command, "make", work, str(size), str(count)])
            for only in ("", "schema"):
                what = f"{count:,} records of {size:,} bytes: `check REF`"
                what += f" `--only {only}`" if only else ""
                taken = [
                    _seconds(run([*command, "check", work, only])) for _ in range(arguments.runs)
                ]
                middle = statistics.median(taken)
                each = f"{middle / count * 1e6:.1f} µs a record"
                rows.append(f"| {what} | {middle:.2f} s | | **{each}** | |")
                print(rows[-1], min(taken), max(taken), file=sys.stderr)
    return rows


def _seconds(measured: Measured) -> float:
    return measured.inner


if __name__ == "__main__":
    print("\n".join(main(Namespace(count=60_000, runs=3, work=None))), Path.cwd())
