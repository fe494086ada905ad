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
_DIGITS = 25
"""Digits for each JPEG."""
_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": ""}
"""The six processes load bytecode, as those of an installed package do."""


def main(arguments: Namespace) -> list[str]:
    """Run it and return the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tfrecreg-bench-", dir=arguments.work) as work:
        rows = []
        for what, raw, options in _builds(Path(work), arguments.count):
            place = Path(work) / "place"
            new = ["bench", "--raw", str(raw), "--base", "none", *options]
            parts, one = alternate(
                arguments.runs,
                partial(_in_parts, place, new),
                partial(_in_one, place, new),
            )
            rows.append(row(f"{what}, CPU seconds", parts, one, "at most 1.1", work=True))
            rows.append(row(f"{what}, wall", parts, one, ""))
            shutil.rmtree(place)
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


def _program(place: Path) -> list[str]:
    """The command in a new registry: to remove the build of the run before is work, too."""
    shutil.rmtree(place, ignore_errors=True)
    program = [sys.executable, "-m", "tfrecreg"]
    run([*program, "init", str(place / "registry"), "--no-dvc"])
    return [*program, "-C", str(place / "registry")]


def _in_one(place: Path, new: list[str]) -> Measured:
    return run([*_program(place), "build", *new, "--jobs", "1"], **_ENVIRONMENT)


def _in_parts(place: Path, new: list[str]) -> Measured:
    """All commands of a build in parts, in one process each; their seconds added up."""
    program, plan = _program(place), place / "plan"
    commands = [[*program, "parts", "plan", *new, str(plan)]]
    commands += [
        [*program, "parts", "build", str(plan), "--part", f"{number}/{_PARTS}", "--jobs", "1"]
        for number in range(1, _PARTS + 1)
    ]
    commands.append([*program, "parts", "publish", str(plan), "--parts-only", "--jobs", "1"])
    done = [run(command, **_ENVIRONMENT) for command in commands]
    seconds = sum(each.wall for each in done)
    work = sum(each.work for each in done)
    return Measured(seconds, seconds, max(each.peak for each in done), "", work)
