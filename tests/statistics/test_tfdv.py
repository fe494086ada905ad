from __future__ import annotations

import logging
import subprocess
import sys
from importlib.util import find_spec

import pytest
from statistics_support import needs_tfdv

from tfrecreg.errors import MissingExtraError
from tfrecreg.statistics import missing_tfdv, tfdv
from tfrecreg.statistics.tfdv import load_tfdv, tfdv_version


def absent(name: str):
    return None if name == "tensorflow_data_validation" else find_spec(name)


def test_where_it_can_be_had_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfdv, "find_spec", absent)
    monkeypatch.setattr(tfdv.sys, "version_info", (3, 11, 0))
    monkeypatch.setattr(tfdv.sys, "platform", "linux")
    monkeypatch.setattr(tfdv.platform, "machine", lambda: "x86_64")
    error = missing_tfdv()
    assert isinstance(error, MissingExtraError)
    assert error.message == "statistics needs the extra `tfdv`, which is not installed"
    assert error.hint == "pip install 'tfrecreg[tfdv]'"


@pytest.mark.parametrize(
    ("version", "system", "machine"),
    [((3, 12, 1), "linux", "x86_64"), ((3, 11, 1), "darwin", "arm64")],
)
def test_where_it_cannot_be_had_that_is_said(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], system: str, machine: str
) -> None:
    monkeypatch.setattr(tfdv, "find_spec", absent)
    monkeypatch.setattr(tfdv.sys, "version_info", version)
    monkeypatch.setattr(tfdv.sys, "platform", system)
    monkeypatch.setattr(tfdv.platform, "machine", lambda: machine)
    monkeypatch.setattr(tfdv.platform, "python_version", lambda: ".".join(map(str, version)))
    error = missing_tfdv()
    assert error is not None
    python = ".".join(map(str, version))
    assert error.message == (
        "statistics needs TensorFlow Data Validation, which has no release for "
        f"Python {python} on {system} {machine}"
    )
    assert "Python 3.10 or 3.11 on Linux x86-64" in error.hint
    assert error.exit_code == 3


def test_importing_it_says_nothing_and_leaves_logging_as_it_was() -> None:
    needs_tfdv()
    code = (
        "import logging; from tfrecreg.statistics import load_tfdv; load_tfdv();"
        "assert logging.getLogger().handlers == []"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_is_imported_once() -> None:
    needs_tfdv()
    handlers = list(logging.getLogger().handlers)
    assert load_tfdv() is load_tfdv()
    assert logging.getLogger().handlers == handlers
    assert load_tfdv().api.__version__ == tfdv_version()
