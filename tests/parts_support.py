"""Registries with a plan, in a folder or in a store."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfrecreg.amounts import SkipLimit
from tfrecreg.operations.builds.parts.collect import Collected, CollectRequest, collect_parts
from tfrecreg.operations.builds.parts.one_part import PartResult, PlanPart, run_part
from tfrecreg.operations.builds.parts.prepare_plan import plan_to
from tfrecreg.operations.builds.settings import BuildRequest
from tfrecreg.progress import SILENT
from tfrecreg.registry.registry import Registry, open_registry
from tfrecreg.shards import ShardPolicy

__all__ = ["Site", "StoredSite", "stored_site"]

URL, DATA = "memory://lake/plan", "memory://lake/data"


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

    def collect(self, verify: str | None = None, progress: Any = SILENT, **more: Any) -> Collected:
        amount = SkipLimit.parse(verify) if verify is not None else None
        request = CollectRequest(plan=str(self.plan), verify=amount, **more)
        return collect_parts(self.registry, request, progress=progress)

    def shard(self, split: str, number: int) -> str:
        return f"digits-{split}.tfrecord-{number:05d}-of-00003"

    @property
    def data(self) -> Path:
        return self.folder / "registry/data"


class StoredSite(Site):
    """A site whose plan is in a store, and its shards there or in a bucket.

    Its folder has a copy of both, which is sent before each work: so a forger has files.
    """

    memory: Any
    shards: str

    def send(self) -> None:
        self.memory.store.clear()
        for path in self.plan.rglob("*"):
            name = path.relative_to(self.plan).as_posix()
            place = f"/lake/plan/{name}"
            if name.startswith("build/"):
                place = f"{self.shards}/{name.removeprefix('build/')}"
            if path.is_file():
                self.memory.pipe_file(place, path.read_bytes())

    def part(self, number: int, of: int, **more: Any) -> PartResult:
        self.send()
        return run_part(URL, PlanPart(number, of), **more)

    def collect(self, verify: str | None = None, progress: Any = SILENT, **more: Any) -> Collected:
        self.send()
        amount = SkipLimit.parse(verify) if verify is not None else None
        request = CollectRequest(plan=URL, verify=amount, **more)
        return collect_parts(self.registry, request, progress=progress)


def stored_site(site: Site, memory: Any, data: bool) -> StoredSite:
    """The parts of `site`, made again in a store."""
    found = StoredSite(site.folder)
    found.memory = memory
    raw = json.loads((site.plan / "plan.json").read_bytes())["planned"]["raw"]
    if data:
        (site.folder / "registry/datasets").mkdir(exist_ok=True)
        (site.folder / "registry/datasets/digits.toml").write_text(f'data = "{DATA}"\n')
    document = plan_to(found.registry, found.request(raw=raw), URL).document
    run_part(URL, PlanPart(1, 1))
    found.shards = "/lake/plan/build"
    if document.data is not None:
        found.shards = document.data.removeprefix("memory:/")
    shutil.rmtree(site.plan)
    memory.get("/lake/plan/", str(site.plan), recursive=True)
    if data:
        memory.get(f"{found.shards}/", str(site.plan / "build"), recursive=True)
    return found
