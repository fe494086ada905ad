"""The page on damage: its table is what the readers do today."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfrecreg.codes import CORE_CODES
from tfrecreg.findings import TensorflowOutcome

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def tfrecord_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An interpreter that has `tfrecord`, installed from PyPI into an environment of its own.

    `TFRECREG_TFRECORD_PYTHON` names one that is there already.
    """
    given = os.environ.get("TFRECREG_TFRECORD_PYTHON")
    if given:
        yield given
        return
    venv = tmp_path_factory.getbasetemp() / "tfrecord-venv"
    with venv.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _install(venv)
    yield str(venv / "bin/python")
    shutil.rmtree(venv)


def _install(venv: Path) -> None:
    python = str(venv / "bin/python")
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is not None:
        steps = [
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(venv)],
            [uv, "pip", "install", "--quiet", "--python", python, "tfrecord"],
        ]
    else:
        steps = [
            [sys.executable, "-m", "venv", "--clear", str(venv)],
            [python, "-m", "pip", "install", "--quiet", "tfrecord"],
        ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, timeout=600)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            pytest.skip(
                "`tfrecord` cannot be installed here (set TFRECREG_TFRECORD_PYTHON to an "
                f"interpreter that has it): {said[-1] if said else step}"
            )


@pytest.mark.slow
def test_the_table_is_what_the_readers_do_today(tfrecord_python: str) -> None:
    pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")
    pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")
    program = [sys.executable, str(DOCS / "integrity_table.py")]
    done = subprocess.run(
        [*program, "--tfrecord", tfrecord_python, "--check"],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-20_000:]


def rows() -> list[list[str]]:
    """The cells of the table."""
    page = (DOCS / "integrity.md").read_text("utf-8")
    table = page.partition("do not edit. -->\n")[2].partition("<!--")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_the_table_has_every_code_and_only_codes_that_there_are() -> None:
    found = {code for row in rows() for code in re.findall(r"\b[A-Z]{3}[0-9]{3}\b", row[-1])}
    assert found <= set(CORE_CODES)
    assert {f"CRC00{number}" for number in range(1, 10)} <= found
    assert {"SHD001", "SHD002", "SHD003", "SHD004", "SHD005", "SHD006", "SHD007"} <= found


def test_nothing_is_trained_on_silently_that_is_not_found() -> None:
    """Bold: other data than there should be, without an error."""
    bold = [row for row in rows() if "**" in row[1]]
    assert len(bold) > 10
    assert [row[0] for row in bold if row[-1] == "nothing"] == []
    assert [row[0] for row in rows() if row[1].startswith("crashes")] == [
        "a length of 2^40, its checksum right"
    ]


def test_the_page_explains_every_outcome() -> None:
    page = (DOCS / "integrity.md").read_text("utf-8")
    for outcome in TensorflowOutcome:
        assert f"| `{outcome.value}` |" in page
