"""Building a CSV, against pyarrow's reading of it and our writer in one process."""

from __future__ import annotations

import random
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run

__all__ = ["main"]

_CITIES = ("Paris", "Rome", "Köln", "Oslo")


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        raw, out = Path(work) / "raw", Path(work) / "out"
        raw.mkdir()
        _write(raw / "train.csv", arguments.count)

        def ours() -> Measured:
            command = [sys.executable, "-m", "benchmarks.build", "table"]
            return run([*command, str(raw), str(out)])

        def theirs() -> Measured:
            command = [sys.executable, "-m", "benchmarks.table_arrow"]
            return run([*command, str(raw / "train.csv"), f"{out}.tfrecord"])

        builds, others = alternate(arguments.runs, ours, theirs)
        what = f"{arguments.count:,} rows of 5 columns: build / pyarrow and our writer"
        return [
            row(what, builds, others, "at most 1.5"),
            row(f"{what}, CPU seconds of all processes", builds, others, "", work=True),
        ]


def _write(path: Path, count: int) -> None:
    rng = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        file.write("id,price,quantity,city,comment\n")
        for number in range(count):
            comment = "text, " * rng.randrange(1, 6) + str(number)
            file.write(
                f"{number},{rng.randrange(100_000) / 100},{rng.randrange(1000)},"
                f'{rng.choice(_CITIES)},"{comment}"\n'
            )
