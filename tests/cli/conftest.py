"""Running the command line as a user does, in this process, and a registry to run it in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tfrecreg
from tfrecreg.cli.digits import write_digits
from tfrecreg.cli.main import main
from tfrecreg.core.registry.init import init
from tfrecreg.core.storage.local import LocalStorage


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """``cli("check", "x")``: exit code, stdout and stderr, at a fixed width and without colour."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    # Starting worker processes is most of what a small build costs; some tests ask for them.
    monkeypatch.setenv("TFRECREG_JOBS", "1")

    def call(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Raw data: drawn digits in MNIST's format. Read only."""
    folder = tmp_path_factory.mktemp("drawn")
    write_digits(LocalStorage(folder), train=60, test=20, seed=1)
    return folder


@pytest.fixture
def raw(drawn: Path, tmp_path: Path) -> Path:
    """A copy of the drawn digits, to do things to."""
    folder = tmp_path / "raw"
    folder.mkdir()
    for each in drawn.iterdir():
        (folder / each.name).write_bytes(each.read_bytes())
    return folder


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty registry without DVC, and the current folder."""
    folder = tmp_path / "registry-root"
    init(folder, with_dvc=False)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="session")
def built_original(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with a build of the drawn digits, two shards a split, to copy."""
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(drawn, folder / "raw")
    root = folder / "registry-root"
    digits = tfrecreg.init(root, with_dvc=False)["digits"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        digits.build(source="mnist", raw="../raw", shards=2)
    return root


@pytest.fixture
def built(built_original: Path, raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry with a build of the drawn digits, two shards a split, and the current folder."""
    folder = Path(shutil.copytree(built_original, tmp_path / "registry-root"))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def here(digits_registry: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry with `digits` 1.0.0 and its build, and the current folder."""
    monkeypatch.chdir(digits_registry)
    return digits_registry
