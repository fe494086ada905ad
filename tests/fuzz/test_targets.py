"""A short run of every target, the same each time. `make fuzz` has the long one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_escapes(name: str) -> None:
    target = TARGETS[name]
    settings(max_examples=150)(given(target.inputs)(target.check))()


@pytest.mark.slow
def test_the_long_run_stops_at_what_escapes() -> None:
    code = (
        "import sys, targets, runpy\n"
        "def fail(data): raise ZeroDivisionError(repr(data))\n"
        "target = targets.Target(targets.TARGETS['schema'].inputs, fail)\n"
        "targets.TARGETS['schema'] = target\n"
        f"sys.argv = ['run.py', '--seconds', '1', '--only', 'schema']\n"
        f"runpy.run_path({str(ROOT / 'tests/fuzz/run.py')!r}, run_name='__main__')\n"
    )
    path = os.pathsep.join(
        str(ROOT / name) for name in ("", "tests/fuzz", "tests/support", "plugins")
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 1, done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "check(" in done.stderr, "the smallest input is shown"
    assert "--seed" in done.stdout
