"""Plans of drawn digits, and the build that they have to end in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from parts_support import Site

from tfrecreg.operations.builds.data import build
from tfrecreg.operations.builds.parts.prepare_plan import plan_to
from tfrecreg.operations.demo.digits import write_digits
from tfrecreg.operations.init import init
from tfrecreg.registry.registry import open_registry
from tfrecreg.storage.local import LocalStorage


@pytest.fixture(scope="session")
def original_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    write_digits(LocalStorage(folder / "raw"), train=30, test=9, seed=1)
    init(folder / "registry", with_dvc=False)
    shutil.copytree(folder / "registry", folder / "whole")
    site = Site(folder)
    build(open_registry(folder / "whole"), site.request())
    return folder


@pytest.fixture(scope="session")
def original_parts(original_site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    shutil.copytree(original_site / "registry", folder / "registry")
    found = Site(folder)
    plan_to(found.registry, found.request(raw=str(original_site / "raw")), found.plan)
    found.part(1, 1)
    return folder


@pytest.fixture
def made(original_parts: Path, tmp_path: Path) -> Site:
    """A copy with all parts of the plan; the raw data are not to be touched."""
    return Site(Path(shutil.copytree(original_parts, tmp_path / "made")))


@pytest.fixture
def site(original_site: Path, tmp_path: Path) -> Site:
    """A copy with a plan and no shards."""
    shutil.copytree(original_site, tmp_path / "site")  # with the times of the raw files
    found = Site(tmp_path / "site")
    found.write_plan()
    return found
