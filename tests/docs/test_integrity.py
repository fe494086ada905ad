"""The page on damage: its table is what the readers do today."""

from __future__ import annotations

import fcntl
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from tfrecreg.core.values.codes import CORE_CODES
from tfrecreg.core.values.findings import TensorflowOutcome

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
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="the extra `tf` is missing")
@pytest.mark.skipif(find_spec("apache_beam") is None, reason="the extra `beam` is missing")
def test_the_table_is_what_the_readers_do_today(tfrecord_python: str) -> None:
    program = [sys.executable, str(DOCS / "integrity_table.py")]
    done = subprocess.run(
        [*program, "--tfrecord", tfrecord_python, "--check"],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-20_000:]


def rows(program: str = "integrity_table") -> list[list[str]]:
    """The cells of a table."""
    page = (DOCS / "integrity.md").read_text("utf-8")
    table = page.partition(f"docs/{program}.py`: do not edit. -->\n")[2].partition("<!--")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


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


@pytest.mark.slow
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="the extra `tf` is missing")
@pytest.mark.skipif(find_spec("dvc") is None, reason="the extra `dvc` is missing")
def test_the_table_by_way_of_asking_is_what_is_found_today() -> None:
    program = [sys.executable, str(DOCS / "integrity_ways.py"), "--check"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-20_000:]


@pytest.fixture(scope="module")
def ways() -> Iterator[ModuleType]:
    """The program that makes the table by way of asking."""
    pytest.importorskip("fsspec", reason="the extra `remote` is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        yield importlib.import_module("integrity_ways")


@pytest.fixture(scope="module")
def sound(ways: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = ways.sound(tmp_path_factory.mktemp("ways"), with_dvc=False)
    return root


@pytest.mark.parametrize(
    "name", ["a shard cut between two records", "an index missing", "the manifest cut"]
)
def test_a_row_by_way_of_asking_is_what_is_found_today(
    ways: ModuleType, sound: Path, tmp_path: Path, name: str
) -> None:
    titles, _, *table = rows("integrity_ways")
    assert titles[1:] == list(ways.WAYS)
    quick = [way for way in ways.WAYS if way != "`load`"]  # which imports TensorFlow
    (fault,) = (each for each in ways.FAULTS if each.name == name)
    expected = dict(zip(titles, next(row for row in table if row[0] == name), strict=True))
    found = ways.row(fault, sound, tmp_path, quick)
    assert dict(zip(quick, found, strict=True)) == {way: expected[way] for way in quick}


def test_what_is_not_found_by_a_way_of_asking_is_explained(ways: ModuleType) -> None:
    titles, _, *table = rows("integrity_ways")
    assert [row[0] for row in table] == [fault.name for fault in ways.FAULTS]
    assert not any(ways.UNEXPLAINED in row for row in table)
    for fault, row in zip(ways.FAULTS, table, strict=True):
        for way, cell in zip(titles[1:], row[1:], strict=True):
            if cell.startswith("no ("):
                assert ways.reason(way, fault) == ways.notes()[int(cell[4:-1]) - 1]
    # By its reference, everything is found.
    assert [row[0] for row in table if row[1] == "pass" or row[1].startswith("no")] == ["nothing"]
