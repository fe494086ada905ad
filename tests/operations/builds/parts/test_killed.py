"""Parts, and the command that publishes, killed at any call of the storage: the next run ends with
the same bytes, nothing is half published, and finished shards are not made again.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from kill_support import calls_of, in_child
from sweep_support import part
from system_support import unsynced as unsynced  # a fixture: what is killed loses no page
from tests_support import tree

from tfrecreg.operations.origin import origin_of
from tfrecreg.operations.release import ReleaseRequest, release
from tfrecreg.registry.lookup import resolve
from tfrecreg.storage.writer import is_temporary

PUBLISHED = ("data", "registry", "schemas", "datasets")


def published(site) -> dict[str, bytes]:
    """All but what a killed writer left under a hidden name, which `gc` removes."""
    files = tree(site.folder / "registry").items()
    return {
        name: data
        for name, data in files
        if name.partition("/")[0] in PUBLISHED and not is_temporary(name)
    }


class Trials:
    """Kill some work of a plan at a call, do it again, and compare."""

    def __init__(self, site, work: Callable[[], object], *, parts: bool) -> None:
        self.site = site
        self.work = work
        if parts:
            site.part(1, 2)
        self.start = Path(shutil.copytree(site.folder, site.folder.with_name("start")))
        self.before = published(site)
        self.total = calls_of(work)
        self.end = published(site)
        self.whole = tree(site.folder / "whole/data")

    def reset(self) -> None:
        for name in ("plan", "registry"):
            shutil.rmtree(self.site.folder / name)
            shutil.copytree(self.start / name, self.site.folder / name)

    def kill(self, at: int) -> None:
        self.reset()
        if not in_child(self.work, at):
            data = tree(self.site.data)
            assert data in ({}, self.whole) or set(data) == {".gitignore"}, at
        receipts = {
            path.stem: path.stat().st_ino for path in (self.site.plan / "receipts").glob("*.json")
        }
        self.work()
        assert published(self.site) == self.end, at
        after = {
            path.stem: path.stat().st_ino for path in (self.site.plan / "receipts").glob("*.json")
        }
        assert {name: after[name] for name in receipts} == receipts, at
        assert not list((self.site.folder / "registry").glob(".tfrecreg/stage/digits/*")), at
        self.site.collect()
        assert tree(self.site.data) == self.whole, at


def trials(site, work: str) -> Trials:
    if work == "part":
        return Trials(site, lambda: site.part(1, 1), parts=False)
    return Trials(site, lambda: site.collect(verify="1"), parts=True)


@pytest.mark.medium
@pytest.mark.parametrize("work", ["part", "collect"])
def test_killed_work_of_a_plan_is_completed_sampled(site, work: str) -> None:
    made = trials(site, work)
    for at in random.Random(1).sample(range(1, made.total + 1), 3):
        made.kill(at)


@pytest.mark.slow
@pytest.mark.parametrize("work", ["part", "collect"])
def test_killed_work_of_a_plan_is_completed(site, work: str) -> None:
    made = trials(site, work)
    assert made.total > 70
    for at in part(random.Random(2).sample(range(1, made.total + 1), min(100, made.total))):
        made.kill(at)


@pytest.mark.parametrize(
    "sample", [4, pytest.param(100, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_killed_release_has_its_receipts_or_is_not_there(made, sample: int) -> None:
    made.collect(parts_only=True)
    root = made.folder / "registry"
    start = Path(shutil.copytree(root, made.folder / "start"))

    def work() -> None:
        release(made.registry, ReleaseRequest(name="digits", version="1.0.0"))

    total = calls_of(work)
    for at in part(random.Random(3).sample(range(1, total + 1), min(sample, total))):
        shutil.rmtree(root)
        shutil.copytree(start, root)
        lived = in_child(work, at)
        folder = root / "registry/digits/1.0.0"
        files = ["manifest.json", "receipts.jsonl.gz", "schema.pbtxt"]
        assert folder.exists() or not lived
        assert not folder.exists() or sorted(path.name for path in folder.iterdir()) == files
        work()
        assert sorted(path.name for path in folder.iterdir()) == files
        assert origin_of(resolve(made.registry, "digits@1.0.0")).parts is not None
