"""Grain and PyTorch, which the development environment lacks, in a fresh environment."""

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
    find_python,
    fresh_environment,
    make_wheel,
)

TORCH = "torch==2.13.0"
"""Pinned, because other numbers may bring gigabytes of CUDA where this one is a wheel for CPUs."""

INSTALLATION = 600
"""Seconds after which the installation of PyTorch is given up."""


READERS = (
    "tests/builtin/training/test_grain.py",
    "tests/builtin/training/test_torch.py",
    "tests/test_torch.py",
    "tests/builtin/look/test_snippets.py::test_grain_reads_batches",
    "tests/builtin/look/test_snippets.py::test_torch_reads_batches",
    "tests/builtin/look/test_snippets.py::test_torch_reads_payloads",
)
"""The tests that need Grain or PyTorch."""

ON_THE_PAGE = re.compile(
    r"<!-- not run: tests/examples/test_frameworks\.py runs this with (?P<framework>\w+),.*?-->\n"
    r"```python\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

BEFORE = """\
import tfrecreg

rank, world_size, epoch = 1, 2, 0
train = tfrecreg.data_source("digits@1.0.0", "train", registry={registry!r}, decode=True)
"""
"""What a block of `docs/frameworks.md` takes from the page."""

AFTER = {
    "PyTorch": (
        "print(state['done'], batch['image/encoded'].shape)",
        "100 torch.Size([36, 28, 28, 1])\n",
    ),
    "torchdata": ("print(left, state is not None)", "52 True\n"),
    "Grain": (
        "print([len(batch['image/encoded']) for batch in dataset])\n"
        "print({each['tokens'].shape for each in batches})\n"
        "kept = sum((each['tokens_segment_ids'] > 0).sum() for each in rows)\n"
        "print(kept == sum(len(each['tokens']) for each in texts))",
        "[64, 64, 64, 8]\n{(8, 1024)}\nTrue\n",
    ),
}
"""What shows that the block did its work on 200 records, and what that prints."""


def installed(folder: Path) -> Interpreter:
    """An environment with this project, Grain, PyTorch and what the tests need."""
    python = find_python("3.11") or sys.executable  # the one that local wheels are for
    wheel = make_wheel(folder)
    wanted = [f"{wheel}[images]", "grain", "hypothesis", "numpy", "pip", "pytest"]
    made = fresh_environment(folder / "env", python, *wanted)
    # With pip, which finds local wheels by the user's own settings, unlike uv.
    # Compiling all modules of PyTorch takes longer than compiling those that are imported.
    command = [made.python, "-m", "pip", "install", "--quiet", "--no-compile", TORCH, "torchdata"]
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
def test_grain_pytorch_and_numpy_read_every_record(tmp_path: Path, digits_original: Path) -> None:
    """One test, because the environment takes longer to make than everything in it to run."""
    made = installed(tmp_path)
    done = made.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *READERS, cwd=CHECKOUT)
    assert done.code == 0, done.out + done.err
    # Nothing else in this line: nothing was skipped.
    assert re.fullmatch(r"[1-9]\d* passed in .*", done.out.splitlines()[-1]), done.out

    page = (CHECKOUT / "docs/frameworks.md").read_text("utf-8")
    blocks: dict[str, str] = {}
    for found in ON_THE_PAGE.finditer(page):
        name = found["framework"]
        blocks[name] = blocks.get(name, "") + "\n" + found["text"]
    assert set(blocks) == set(AFTER)
    for framework, (after, expected) in AFTER.items():
        script = tmp_path / f"with_{framework}.py"
        before = BEFORE.format(registry=str(digits_original))
        script.write_text(f"{before}\n{blocks[framework]}\n{after}\n", "utf-8")
        done = made.run(script, cwd=tmp_path)
        assert (done.code, done.out) == (0, expected), done.out + done.err

    printed = {}
    for framework in ("numpy", "grain", "torch"):
        program = CHECKOUT / "examples/imagenet_input.py"
        done = made.run(program, "--framework", framework, cwd=tmp_path)
        assert done.code == 0, done.out + done.err
        printed[framework] = done.out
    for epoch in range(2):
        assert f"epoch {epoch}: 200 images, 200 different ones of 200" in printed["numpy"]
    assert printed["numpy"] == printed["grain"] == printed["torch"]
