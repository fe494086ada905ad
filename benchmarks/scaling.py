"""Weak scaling: one worker on some images, and two workers on twice as many."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run
from benchmarks.raw import images

__all__ = ["main"]

_ENGINES = {"local": "tfrecreg", "dask": "distributed"}
"""The module that an engine needs."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        for workers in (1, 2):
            images(Path(work) / f"raw{workers}", arguments.count * workers)

        def doing(what: str, engine: str, workers: int) -> Measured:
            command = [sys.executable, "-m", "benchmarks.engines_run", what, engine, str(workers)]
            return run([*command, f"{work}/raw{workers}", f"{work}/{engine}{workers}"])

        rows = []
        for what in ("build", "check"):
            for engine, module in _ENGINES.items():
                if find_spec(module) is None:
                    print(f"{engine}: `{module}` is not installed")
                    continue
                two, one = alternate(
                    arguments.runs, partial(doing, what, engine, 2), partial(doing, what, engine, 1)
                )
                count = arguments.count
                said = f"{what}, {engine}: {count:,} JPEGs, 1 worker / {2 * count:,}, 2 workers"
                rows.append(row(said, two, one, "", faster=True))
        return rows
