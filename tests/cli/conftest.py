"""Raw data, and registries to run the command line in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import tfrecreg
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.registry.init import init
from tfrecreg.core.storage.local import LocalStorage


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
