"""Checking records of four sizes on one core, by all validators and by the schema's alone.

The seconds are those of the processor, in a process that has checked a small set before.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from argparse import Namespace

from benchmarks.pairs import run

__all__ = ["main"]

_KINDS = ((300, "", 1), (900, "", 1), (900, "ragged", 1), (10_000, "", 3), (100_000, "", 15))
"""Bytes of a record, its kind, and the part of `--count` that is made of it."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    rows = []
    for size, kind, part in _KINDS:
        count = arguments.count // part
        with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
            program = [sys.executable, "-m", "benchmarks.records_read"]
            run([*program, "make", work, str(size), str(count), kind])
            for only in ("", "schema"):
                command = f"`check --only {only}`" if only else "`check`"
                what = f"{count:,} records of {size:,} bytes{kind and f', {kind}'}: {command}"
                check = [*program, "check", work, only]
                taken = [run(check).inner for _ in range(arguments.runs)]
                middle = statistics.median(taken)
                each = f"**{middle / count * 1e6:.1f} µs** a record"
                rows.append(f"| {what} | {middle:.2f} s | | {each} | |")
    return rows
