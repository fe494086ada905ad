"""What CI runs: the quick tests, here and on other Pythons, and the sweeps, whatever fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from package_support import CHECKOUT

RUN = CHECKOUT / ".ci/run"

if not RUN.exists():
    pytest.skip(".ci/run is not shipped", allow_module_level=True)
if shutil.which("make") is None:
    pytest.skip("there is no make", allow_module_level=True)

MAKEFILE = """
test test-slow:
	@echo "ran $@"
	@case " $(BROKEN) " in *" $@ "*) exit 1;; esac
types test-versions:
	@echo "ran $@ $(notdir $(PYTHON)) $(VENV)"
	@case " $(BROKEN) " in *" $@ "*) exit 1;; esac
"""
STARTS = "#!/bin/sh\nexit 0\n"
IS_A_SHIM = "#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n"


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)


@pytest.fixture
def ci(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`.ci/run` where Python 3.10 is on the PATH, and shims of 3.10 and 3.13 are behind it."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(RUN, tmp_path / ".ci/run")
    (tmp_path / "Makefile").write_text(MAKEFILE, "utf-8")
    for name in ("python3.10", "python3.13"):
        program(tmp_path / "shims" / name, IS_A_SHIM)
    program(tmp_path / "bin/python3.10", STARTS)
    program(tmp_path / "bin/chromium", STARTS)  # else it would be installed

    def run(*broken: str) -> subprocess.CompletedProcess[str]:
        # Where `make` runs this test, the inner one must not take itself for a part of it.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        path = os.pathsep.join([str(tmp_path / "bin"), str(tmp_path / "shims"), kept["PATH"]])
        return subprocess.run(
            [tmp_path / ".ci/run"],
            env={
                **kept,
                "PATH": path,
                "PYENV_ROOT": str(tmp_path / "pyenv"),
                "BROKEN": " ".join(broken),
            },
            capture_output=True,
            text=True,
            check=False,
        )

    return run


TARGETS = ["test", "types", "test-versions", "test-slow"]


@pytest.mark.parametrize(
    "broken",
    [[], *([each] for each in TARGETS), TARGETS],
    ids=" ".join,
)
def test_all_run_and_each_fails_the_run(ci: Any, broken: list[str]) -> None:
    done = ci(*broken)
    assert done.stdout.splitlines() == [
        "ran test",
        "ran types python3.10 .venv-3.10",
        "ran test-versions python3.10 .venv-3.10",
        "tests of other Pythons: ran on 3.10; not installed: 3.13",
        "ran test-slow",
    ]
    assert done.returncode == bool(broken), done.stderr
    names = [each if each in ("test", "test-slow") else f"{each} (3.10)" for each in broken]
    last = done.stderr.splitlines()[-1:]
    assert last == ([f"failed: {' '.join(names)}"] if broken else [])
