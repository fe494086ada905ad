from __future__ import annotations

import logging
import subprocess
import sys
from importlib.util import find_spec

import pytest
from statistics_support import needs_tfdv

from tfrecreg.builtin.statistics import tfdv
from tfrecreg.builtin.statistics.tfdv import load_tfdv, missing_tfdv
from tfrecreg.core.values.errors import MissingExtraError
from tfrecreg.core.values.install_hint import install_command


def absent(name: str):
    return None if name == "tensorflow_data_validation" else find_spec(name)


GLIBC = ("glibc", "2.39")


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch):
    """What is said on another machine that has no TFDV."""

    def said(version: str, system: str, machine: str, libc: tuple[str, str] = ("", "")):
        monkeypatch.setattr(tfdv, "find_spec", absent)
        monkeypatch.setattr(tfdv.sys, "version_info", tuple(map(int, version.split("."))))
        monkeypatch.setattr(tfdv.sys, "platform", system)
        monkeypatch.setattr(tfdv.platform, "machine", lambda: machine)
        monkeypatch.setattr(tfdv.platform, "python_version", lambda: version)
        monkeypatch.setattr(tfdv.platform, "libc_ver", lambda: libc)
        error = missing_tfdv()
        assert error is not None
        return error

    return said


@pytest.mark.parametrize(
    "machine",
    [
        ("3.10.13", "linux", "x86_64", ("glibc", "2.17")),
        ("3.11.7", "linux", "x86_64", ("glibc", "2.36")),
        ("3.11.7", "linux", "x86_64", GLIBC),
        ("3.12.3", "linux", "x86_64", GLIBC),
        ("3.13.5", "linux", "x86_64", ("glibc", "2.41")),
        ("3.10.13", "darwin", "arm64"),
        ("3.13.5", "darwin", "arm64"),
    ],
)
def test_where_it_can_be_had_the_extra_is_named(on, machine) -> None:
    error = on(*machine)
    assert isinstance(error, MissingExtraError)
    assert (
        error.message == "TensorFlow Data Validation needs the extra `tfdv`, which is not installed"
    )
    assert error.hint == install_command(extra="tfdv")


@pytest.mark.parametrize(
    ("machine", "named"),
    [
        (("3.12.1", "linux", "x86_64", ("glibc", "2.36")), "linux x86_64 with glibc 2.36"),
        (("3.12.1", "linux", "x86_64", ("glibc", "2.4")), "linux x86_64 with glibc 2.4"),
        (("3.13.0", "linux", "x86_64"), "linux x86_64"),
        (("3.14.0", "linux", "x86_64", GLIBC), "linux x86_64 with glibc 2.39"),
        (("3.14.0", "darwin", "arm64"), "darwin arm64"),
        (("3.11.1", "darwin", "x86_64"), "darwin x86_64"),
        (("3.11.1", "linux", "aarch64", GLIBC), "linux aarch64 with glibc 2.39"),
    ],
)
def test_where_it_cannot_be_had_that_is_said(on, machine, named) -> None:
    error = on(*machine)
    assert error.message == (
        f"TensorFlow Data Validation has no release for Python {machine[0]} on {named}"
    )
    assert error.hint == (
        "use Python 3.10 or 3.11 on Linux x86-64, or Python 3.12 or 3.13 where glibc is 2.39 or "
        "later (Debian 13, Ubuntu 24.04), or a Mac with Apple silicon: "
        + install_command(extra="tfdv")
    )
    assert error.exit_code == 3


@pytest.mark.slow
def test_a_process_without_a_stream_of_errors_imports_it_too() -> None:
    needs_tfdv()
    home = "tfrecreg.builtin.statistics.tfdv"
    code = f"import os; os.close(2); from {home} import load_tfdv; load_tfdv()"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_importing_it_says_nothing_and_leaves_logging_as_it_was() -> None:
    needs_tfdv()
    code = (
        "import logging; from tfrecreg.builtin.statistics.tfdv import load_tfdv; load_tfdv();"
        "assert logging.getLogger().handlers == []"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_is_imported_once() -> None:
    needs_tfdv()
    handlers = list(logging.getLogger().handlers)
    assert load_tfdv() is load_tfdv()
    assert logging.getLogger().handlers == handlers
