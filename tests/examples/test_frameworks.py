"""Grain and PyTorch, which the development environment does not have, in one of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from package_support import (
    CHECKOUT,
    Interpreter,
    NoNetworkError,
    find_python,
    fresh_environment,
    make_wheel,
)

TORCH = "torch==2.13.0"
"""Pinned, because other numbers may bring gigabytes of CUDA where this one is a wheel for CPUs."""

INSTALLATION = 600
"""Seconds after which the installation of PyTorch is given up."""


def installed(folder: Path) -> Interpreter:
    """An environment with this project, Grain, PyTorch and what the tests need."""
    python = find_python("3.11") or sys.executable  # the one that local wheels are for
    wheel = make_wheel(folder)
    wanted = [f"{wheel}[images]", "grain", "hypothesis", "numpy", "pip", "pytest"]
    try:
        made = fresh_environment(folder / "env", python, *wanted)
    except NoNetworkError as error:
        pytest.skip(f"Grain cannot be installed: {error}")
    # With pip, which finds local wheels by the user's own settings, unlike uv.
    command = [made.python, "-m", "pip", "install", "--quiet", TORCH]
    try:
        done = subprocess.run(
            command, env=os.environ, capture_output=True, text=True, timeout=INSTALLATION
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"`pip install {TORCH}` takes more than {INSTALLATION} seconds")
    if done.returncode:
        pytest.skip(f"`pip install {TORCH}` fails: {done.stderr.strip().splitlines()[-1]}")
    return made


@pytest.mark.slow
def test_grain_pytorch_and_numpy_read_every_record(tmp_path: Path) -> None:
    """One test, because the environment takes longer to make than everything in it to run."""
    made = installed(tmp_path)
    files = ["tests/training/test_grain.py", "tests/training/test_torch.py"]
    done = made.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *files, cwd=CHECKOUT)
    assert done.code == 0, done.out + done.err
    # Nothing else in this line: nothing was skipped.
    assert re.fullmatch(r"[1-9]\d* passed in .*", done.out.splitlines()[-1]), done.out

    printed = {}
    for framework in ("numpy", "grain", "torch"):
        program = CHECKOUT / "examples/imagenet_input.py"
        done = made.run(program, "--framework", framework, cwd=tmp_path)
        assert done.code == 0, done.out + done.err
        printed[framework] = done.out
    for epoch in range(2):
        assert f"epoch {epoch}: 200 images, 200 different ones of 200" in printed["numpy"]
    assert printed["numpy"] == printed["grain"] == printed["torch"]
