"""What CI runs: the quick tests and the sweeps, whatever becomes of the first."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

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
"""


@pytest.mark.parametrize(
    "broken", [[], ["test"], ["test-slow"], ["test", "test-slow"]], ids=" ".join
)
def test_both_run_and_either_fails_the_run(tmp_path: Path, broken: list[str]) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(RUN, tmp_path / ".ci/run")
    (tmp_path / "Makefile").write_text(MAKEFILE, "utf-8")
    # Where `make` runs this test, the inner one must not take itself for a part of it.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        [tmp_path / ".ci/run"],
        env={**kept, "BROKEN": " ".join(broken)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["ran test", "ran test-slow"]
    assert done.returncode == bool(broken), done.stderr
    last = done.stderr.splitlines()[-1:]
    assert last == ([f"failed: {' '.join(broken)}"] if broken else [])
