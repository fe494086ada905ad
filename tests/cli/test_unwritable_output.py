"""Output that cannot be written: one line, exit code 3, and never a result that was not shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest
from tests_support import flip

from tfrecreg.core.registry.init import init

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
LINES = [
    "error: cannot write the output: No space left on device",
    "hint: write the output to another place, or free some space",
]
COMMANDS: dict[str, list[str]] = {
    "check": ["check", "digits"],
    "check --json": ["check", "digits", "--json"],
    "list": ["list"],
    "stats": ["stats", "digits"],
    "help": ["--help"],
    "an error": ["show", "digits@9.9.9", "--json"],
}


def run(
    root: Path,
    *arguments: str,
    out: IO[str] | int = subprocess.PIPE,
    err: IO[str] | int = subprocess.PIPE,
    **more: Any,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tfrecreg", "-C", str(root), *arguments],
        stdout=out,
        stderr=err,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100"},
        **more,
    )


@needs_full
@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "stats"])
def test_a_full_stdout_is_one_line_and_3(digits_original: Path, command: str) -> None:
    with FULL.open("w") as full:
        done = run(digits_original, *COMMANDS[command], out=full)
    assert done.stderr.splitlines()[-2:] == LINES
    assert "Traceback" not in done.stderr
    assert done.returncode == 3


@pytest.mark.medium
@needs_full
@pytest.mark.parametrize("command", ["check --json", "an error"])
def test_messages_that_cannot_be_written_are_3(digits_registry: Path, command: str) -> None:
    flip(sorted(digits_registry.glob("data/digits/*train*"))[0], 40)
    with FULL.open("w") as full:
        arguments = [each for each in COMMANDS[command] if each != "--json"]
        done = run(digits_registry, *arguments, err=full)
    assert done.returncode == (1 if command == "check --json" else 3)


@needs_full
def test_a_bug_that_cannot_be_told_is_3(tmp_path: Path) -> None:
    code = (
        "import tfrecreg.core.registry.listing as c\n"
        "def broken(registry): raise RuntimeError('a bug')\n"
        "c.list_datasets = broken\n"
        "from tfrecreg.cli.main import run\n"
        "run()\n"
    )
    init(tmp_path, with_dvc=False)
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, "-C", str(tmp_path), "list"], stderr=full, check=False
        )
    assert done.returncode == 3


@pytest.mark.medium
@pytest.mark.parametrize("command", ["check", "list"])
def test_a_closed_stdout_is_one_line_and_3(digits_original: Path, command: str) -> None:
    done = run(digits_original, *COMMANDS[command], preexec_fn=lambda: os.close(1))
    assert done.stderr.splitlines()[-2:] == [
        "error: cannot write the output: Bad file descriptor",
        LINES[1],
    ]
    assert done.returncode == 3
    done = run(digits_original, *COMMANDS[command], preexec_fn=lambda: (os.close(1), os.close(2)))
    assert done.returncode == 3


@pytest.mark.medium
@pytest.mark.parametrize("command", ["check", "check --json", "list"])
def test_a_reader_who_leaves_ends_it_quietly(digits_original: Path, command: str) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = run(digits_original, *COMMANDS[command], out=write)
    finally:
        os.close(write)
    assert done.stderr == ""
    assert done.returncode == 141
