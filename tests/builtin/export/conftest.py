"""Builds of any features, and an interpreter that has TensorFlow Datasets."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from diff_support import put_build
from registry_support import write

from tfrecreg.core.example.model import Example
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import Registry, open_registry

PlaceBuild = Callable[..., Registry]

READER = Path(__file__).parent / "read_tfds.py"


@pytest.fixture
def place_build(tmp_path: Path) -> PlaceBuild:
    """``place_build({"train": [[example, …], …]}, schema)``: a registry with the build `things`.

    Splits are lists of shards, shards lists of examples.
    """

    def place(
        splits: Mapping[str, Sequence[Sequence[Example]]],
        schema: str,
        *,
        labels: Mapping[str, Sequence[str]] | None = None,
        compression: Any = "none",
        config: str = "",
    ) -> Registry:
        root = tmp_path / "registry-root"
        init(root, with_dvc=False)
        shards = {
            split: [{str(key): each for key, each in enumerate(part)} for part in parts]
            for split, parts in splits.items()
        }
        more: dict[str, Any] = {"labels": labels, "compression": compression, "indexed": False}
        put_build(root, shards, name="things", schema=schema, raw=1234, **more)
        if config:
            write(root / "datasets/things.toml", config)
        return open_registry(root)

    return place


@pytest.fixture(scope="session")
def tfds_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An interpreter with TFDS, in an environment of its own: its pins clash with TFDV's.

    `TFRECREG_TFDS_PYTHON` names one that is there already.
    """
    packages = ("tensorflow-datasets", "tensorflow", "array-record", "pillow")
    yield from _python_with(packages, "TFRECREG_TFDS_PYTHON", tmp_path_factory)


@pytest.fixture(scope="session")
def croissant_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An interpreter with mlcroissant, in an environment of its own.

    `TFRECREG_CROISSANT_PYTHON` names one that is there already.
    """
    yield from _python_with(("mlcroissant",), "TFRECREG_CROISSANT_PYTHON", tmp_path_factory)


@pytest.fixture(scope="session")
def huggingface_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An interpreter with Hugging Face's datasets, in an environment of its own.

    `TFRECREG_DATASETS_PYTHON` names one that is there already.
    """
    packages = ("datasets", "pillow")
    yield from _python_with(packages, "TFRECREG_DATASETS_PYTHON", tmp_path_factory)


def _python_with(
    packages: Sequence[str], variable: str, factory: pytest.TempPathFactory
) -> Iterator[str]:
    given = os.environ.get(variable)
    if given:
        yield given
        return
    base = factory.getbasetemp()
    together = "PYTEST_XDIST_WORKER" in os.environ
    if together:
        base = base.parent  # one environment for all workers
    venv = base / f"{packages[0]}-venv"
    with (base / f"{packages[0]}-venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        python = venv / "bin/python"
        if not (venv / "installed").exists():
            _install(venv, packages, variable)
            (venv / "installed").touch()
    yield str(python)
    if not together:
        shutil.rmtree(venv)  # pytest keeps its folders of some runs, and this one is large


def _install(venv: Path, packages: Sequence[str], variable: str) -> None:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    python = str(venv / "bin/python")
    if uv is not None:
        steps = [
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(venv)],
            [uv, "pip", "install", "--quiet", "--python", python, *packages],
        ]
    else:
        steps = [
            [sys.executable, "-m", "venv", "--clear", str(venv)],
            [python, "-m", "pip", "install", "--quiet", *packages],
        ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, timeout=1800)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            pytest.skip(
                f"{packages[0]} cannot be installed here (set {variable} to an interpreter that "
                f"has it): {said[-1] if said else step}"
            )


@pytest.fixture(scope="session")
def read_tfds(tfds_python: str) -> Callable[..., Any]:
    """``read_tfds(folder, …)``: what `read_tfds.py` prints of exported folders."""

    def read(*folders: str | Path) -> list[Any]:
        done = run_python(tfds_python, str(READER), *map(str, folders))
        assert done.returncode == 0, done.stderr[-4000:]
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    return read


@pytest.fixture
def run_tfds(tfds_python: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``run_tfds("script.py", …, cwd=…)`` in the environment that has TFDS."""
    return lambda *arguments, **options: run_python(tfds_python, *arguments, **options)


def run_python(
    python: str, *arguments: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [python, *arguments],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=cwd,
        env=environment,
    )
