"""What a build in parts adds to the work of a build in one go."""

from __future__ import annotations

import shutil
import sys
import tempfile
from argparse import Namespace
from functools import partial
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run
from benchmarks.raw import images

__all__ = ["main"]

_PARTS = 4
_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": ""}
"""The six processes load bytecode, as those of an installed package do."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        raw, home = Path(work) / "raw", Path(work) / "registry"
        images(raw, arguments.count)
        size = sum(path.stat().st_size for path in raw.rglob("*.jpg")) / 1e6
        what = f"{arguments.count:,} JPEGs, {size:,.0f} MB"
        program = [sys.executable, "-m", "tfrecreg"]
        run([*program, "init", str(home), "--no-dvc"])
        program += ["-C", str(home)]
        new = ["build", "bench", "--source", "imagefolder", "--raw", str(raw), "--base", "none"]
        parts, one = alternate(
            arguments.runs,
            partial(_in_parts, program, new, Path(work) / "plan"),
            partial(run, [*program, *new, "--jobs", "1"], **_ENVIRONMENT),
        )
        name = f"{what}: plan, {_PARTS} parts and publishing, one after the other / `build`"
        return [
            row(f"{name}, CPU seconds", parts, one, "at most 1.1", work=True),
            row(f"{name}, wall", parts, one, ""),
        ]


def _in_parts(program: list[str], new: list[str], plan: Path) -> Measured:
    """All commands of a build in parts, in one process each; their seconds added up."""
    shutil.rmtree(plan, ignore_errors=True)
    share = [*program, "build", "--plan", str(plan), "--jobs", "1"]
    commands = [[*program, *new, "--plan-to", str(plan)]]
    commands += [[*share, "--part", f"{number}/{_PARTS}"] for number in range(1, _PARTS + 1)]
    commands.append([*share, "--parts-only"])
    done = [run(command, **_ENVIRONMENT) for command in commands]
    seconds = sum(each.wall for each in done)
    work = sum(each.work for each in done)
    return Measured(seconds, seconds, max(each.peak for each in done), "", work)
