"""Plans of drawn digits, and the build that they have to end in."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.amounts import SkipLimit
from tfrecreg.operations.builds import BuildRequest, build
from tfrecreg.operations.builds.parts import (
    Collected,
    CollectRequest,
    PartResult,
    PlanPart,
    collect_parts,
    plan_to,
    run_part,
)
from tfrecreg.operations.demo import write_digits
from tfrecreg.operations.init import init
from tfrecreg.registry import Registry, open_registry
from tfrecreg.shards import ShardPolicy
from tfrecreg.storage import LocalStorage


@dataclass
class Site:
    """A registry, raw data, a plan of 2 × 3 shards, and the build in one go."""

    folder: Path

    @property
    def registry(self) -> Registry:
        return open_registry(self.folder / "registry")

    @property
    def plan(self) -> Path:
        return self.folder / "plan"

    @property
    def raw(self) -> Path:
        return self.folder / "raw"

    def request(self, **changes: Any) -> BuildRequest:
        settings = {"source": "mnist", "raw": str(self.raw), "policy": ShardPolicy(shards=3)}
        return BuildRequest(name="digits", **{**settings, **changes})

    def write_plan(self, **changes: Any) -> None:
        plan_to(self.registry, self.request(**changes), self.plan)

    def part(self, number: int, of: int, **more: Any) -> PartResult:
        return run_part(str(self.plan), PlanPart(number, of), **more)

    def collect(self, verify: str | None = None, **more: Any) -> Collected:
        amount = SkipLimit.parse(verify) if verify is not None else None
        return collect_parts(
            self.registry, CollectRequest(plan=str(self.plan), verify=amount, **more)
        )

    def shard(self, split: str, number: int) -> str:
        return f"digits-{split}.tfrecord-{number:05d}-of-00003"

    @property
    def data(self) -> Path:
        return self.folder / "registry/data"


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
