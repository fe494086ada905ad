"""Stories: commands one after the other, and all that they print, as one text.

What differs between runs and machines is replaced: paths, times, durations, digests, versions,
encoded images. `make accept` writes the texts that `tests/golden` compares with: look at the
difference before you commit it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from image_support import bmp
from registry_support import write
from tests_support import flip

from tfrecreg.cli.main import main

OUTPUTS = Path(__file__).with_name("outputs")
_CHANGES = (
    (re.compile(r"\b(?:sha256:|blake3:)?(?=[0-9a-f]*\d)[0-9a-f]{12,}\b"), "HEX"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z| UTC|\+00:00)?"), "TIME"),
    (re.compile(r"(codecs +)\w.*"), r"\1VERSIONS"),
    (re.compile(r"\b3\.1[0-9]\.\d+\w*\b"), "PYTHON"),
)
_SETTINGS = {"COLUMNS": "160", "NO_COLOR": "1", "TFRECREG_JOBS": "1"}


Run = Callable[..., None]


def told(name: str, folder: Path) -> str:
    """The text of a story that is told in an empty folder, where commands print the same on each
    machine.
    """
    printed: list[str] = []

    def run(*arguments: str) -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*arguments])
        printed.append(f"$ tfrecreg {' '.join(arguments)}\n{out.getvalue()}")
        printed.extend(f"! {line}\n" for line in err.getvalue().splitlines())
        printed.append(f"({code})\n\n" if code else "\n")

    with pytest.MonkeyPatch.context() as patch:
        for variable, value in _SETTINGS.items():
            patch.setenv(variable, value)
        for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(variable, str(folder / variable))
        patch.chdir(folder)
        _animals(folder / "raw")
        run("init", "registry", "--no-dvc")
        os.chdir("registry")
        STORIES[name](run)
    text = "".join(printed).replace(str(folder), "HERE")
    for pattern, put in _CHANGES:
        text = pattern.sub(put, text)
    return text


def _animals(raw: Path) -> None:
    """Images of different widths, without compression: no library changes their bytes."""
    for number in range(12):
        kind = "cat" if number % 3 else "dog"
        write(raw / f"train/{kind}/{number:02}.bmp", bmp(8 + number, 12))
    for name, width in (("20", 20), ("20.5", 20), ("21", 21)):  # the second is a copy of the first
        write(raw / f"test/dog/{name}.bmp", bmp(width, 12))
    write(raw / "test/cat/22.bmp", bmp(40, 40))
    write(raw / "train/cat/empty.bmp", b"")


def life(run: Run) -> None:
    """From raw data to the second release."""
    raw = ("--source", "imagefolder", "--raw", "../raw")
    run("list")
    run("build", "animals", "--raw", "../raw", "--dry-run")
    run("build", "animals", *raw)
    run("build", "animals", *raw, "--max-skipped", "1", "--shards", "2", "--save-options")
    for command in ("list", "show", "check", "stats", "digest", "head"):
        run(command, *(["animals"] if command != "list" else []))
    run("check", "animals", "--format", "markdown")
    run("check", "animals", "--raw", "../raw", "--same-as", "animals", "--expect", "train=13")
    run("release", "animals", "--note", "the first")
    write(Path("../raw/train/dog/30.bmp"), bmp(30, 12))
    Path("../raw/train/cat/01.bmp").unlink()
    run("build", "animals", *raw, "--max-skipped", "1")
    run("diff", "animals@1.0.0", "animals", "--records")
    run("release", "animals")
    for command in ("list", "log", "show", "audit"):
        run(command, *(["animals"] if command not in ("list", "audit") else []))
    run("show", "animals@1.0.0", "--provenance")
    run("yank", "animals@1.0.0", "--reason", "a copy in both splits")
    run("log", "animals")


def damage(run: Run) -> None:
    """Damaged shards: what each command says, and what is left."""
    raw = ("--source", "imagefolder", "--raw", "../raw", "--max-skipped", "1", "--shards", "3")
    run("build", "animals", *raw, "--release", "1.0.0")
    first, second, third = sorted(Path("data/animals").glob("animals-train*"))
    flip(first, 300, 1)
    second.write_bytes(second.read_bytes()[:-7])
    third.unlink()
    Path("data/animals/stray.txt").write_text("stray")
    for form in ("text", "github"):
        run("check", "animals", "--format", form)
    run("check", str(first))
    run("check", "animals", "--save-json", "report.json", "--fail-on", "never")
    run("gate", "animals", "--report", "report.json")
    run("audit")
    run("salvage", "data/animals", "--output", "../saved")
    run("repair", "animals", "--raw", "../raw")
    run("check", "animals")
    run("explain", "CRC002")
    run("list")


STORIES = {"life": life, "damage": damage}


if __name__ == "__main__":
    for name in sys.argv[1:] or STORIES:
        with tempfile.TemporaryDirectory() as folder:
            (OUTPUTS / f"{name}.txt").write_text(told(name, Path(folder).resolve()), "utf-8")
