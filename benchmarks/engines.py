"""The cost of each engine beside the local one, with as many workers on this machine."""

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

_JOBS = 2
_ENGINES = {
    "dask": "distributed",
    "ray": "ray",
    "futures:concurrent.futures:ProcessPoolExecutor": "concurrent.futures",
    "futures:loky:get_reusable_executor": "loky",
}
"""The module that an engine needs."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        raw = Path(work) / "raw"
        images(raw, arguments.count)

        def doing(what: str, engine: str) -> Measured:
            command = [sys.executable, "-m", "benchmarks.engines_run", what, engine, str(_JOBS)]
            return run([*command, str(raw), f"{work}/{engine.replace(':', '-')}"])

        rows = []
        for what in ("build", "check"):
            for engine, module in _ENGINES.items():
                if find_spec(module) is None:
                    print(f"{engine}: `{module}` is not installed")
                    continue
                theirs, local = alternate(
                    arguments.runs, partial(doing, what, engine), partial(doing, what, "local")
                )
                said = f"{what} of {arguments.count:,} JPEGs, {_JOBS} workers: local / {engine}"
                rows.append(row(said, theirs, local, "", faster=True))
        return rows
