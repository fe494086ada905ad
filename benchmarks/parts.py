"""What a build in parts adds to the work of a build in one go."""

from __future__ import annotations

import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.pairs import Measured, alternate, row, run
from benchmarks.raw import digits, images

__all__ = ["main"]

_PARTS = 4
_GZIP_AT_MOST = 10_000
"""JPEGs that are compressed once more, which takes seven times as long."""
_DIGITS = 10
"""Digits for each JPEG."""
_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": ""}
"""The six processes load bytecode, as those of an installed package do."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        rows = []
        for what, raw, options in _builds(Path(work), arguments.count):
            home = Path(work) / "registry"
            program = [sys.executable, "-m", "tfrecreg"]
            run([*program, "init", str(home), "--no-dvc"])
            program += ["-C", str(home)]
            new = ["build", "bench", "--raw", str(raw), "--base", "none", *options]
            parts, one = alternate(
                arguments.runs,
                partial(_in_parts, program, new, Path(work) / "plan"),
                partial(run, [*program, *new, "--jobs", "1"], **_ENVIRONMENT),
            )
            rows.append(row(f"{what}, CPU seconds", parts, one, "at most 1.1", work=True))
            rows.append(row(f"{what}, wall", parts, one, ""))
            shutil.rmtree(home)
            shutil.rmtree(raw)
        return rows


def _builds(work: Path, count: int) -> Iterator[tuple[str, Path, list[str]]]:
    """What is built, its raw data, and the options."""
    folder = ["--source", "imagefolder"]
    raw = work / "images"
    for number, extra, note in (
        (count, [], ""),
        (min(count, _GZIP_AT_MOST), ["--compression", "gzip"], ", with gzip"),
    ):
        images(raw, number)
        size = sum(path.stat().st_size for path in raw.rglob("*.jpg")) / 1e6
        yield f"{number:,} JPEGs, {size:,.0f} MB{note}", raw, [*folder, *extra]
    raw = work / "digits"
    digits(raw, _DIGITS * count)
    yield f"{_DIGITS * count:,} digits", raw, ["--source", "mnist", "--shards", str(2 * _PARTS)]


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
