"""Killed at the n-th storage call, an adoption costs nobody a file; run again, it ends the same."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from foreign_support import write_set
from kill_support import calls_of, in_child
from sweep_support import part
from system_support import unsynced as unsynced  # a fixture: what is killed loses no page
from tests_support import tree

from tfrecreg.builtin.adopt.request import AdoptRequest
from tfrecreg.builtin.adopt.run import adopt
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.config import FailOn

ADOPTED = ("labels.json", "ledger.jsonl", "manifest.json", "index")


class Story:
    """A registry with a released build that was adopted, and more of the same to adopt."""

    def __init__(self, folder: Path, how: str) -> None:
        self.root, self.foreign, self.how = folder / "registry", folder / "foreign", how
        init(self.root, with_dvc=False)
        write_set(self.foreign, "train", 5, 2)
        if how == "in-place":
            shutil.copytree(self.foreign, self.root / "data/pets")
        self.adopt()
        release(open_registry(self.root), ReleaseRequest(name="pets", version="1.0.0"))
        write_set(self.foreign, "test", 2, 1, first=50)
        if how == "in-place":
            shutil.copytree(self.foreign, self.root / "data/pets", dirs_exist_ok=True)
        self.given = tree(self.foreign)
        self.old = self.root.with_name("old")
        shutil.copytree(self.root, self.old)
        self.before = tree(self.root / "data")
        self.adopt()
        self.after = tree(self.root / "data")
        assert self.before != self.after
        self.reset()

    def reset(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self.old, self.root)

    def adopt(self) -> None:
        paths = () if self.how == "in-place" else (str(self.foreign),)
        request = AdoptRequest(name="pets", paths=paths, how=self.how)  # type: ignore[arg-type]  # a test's own word
        adopt(open_registry(self.root), request)

    def clean(self, reference: str) -> bool:
        options = CheckOptions(only=("crc", "manifest"), fail_on=FailOn.WARNING)
        (report,) = check([reference], registry=str(self.root), options=options)
        return report.status == "pass"


def trial(story: Story, at: int) -> None:
    story.reset()
    if not in_child(story.adopt, at):
        found = tree(story.root / "data")
        if story.how == "copy":
            assert found in (story.before, story.after), at
            assert story.clean("pets@1.0.0"), at
        else:  # the new file, which nobody lists yet, is beside those of the release
            mine = {path: data for path, data in story.after.items() if not _made(path)}
            assert {path: found[path] for path in mine} == mine, at
    story.adopt()
    assert story.clean("pets@1.0.0"), at
    assert story.clean("pets"), at
    assert tree(story.root / "data") == story.after, at
    assert tree(story.foreign) == story.given, at
    assert not list(story.root.glob(".tfrecreg/stage/adopt-*")), at


def _made(path: str) -> bool:
    return path.removeprefix("pets/").partition("/")[0] in ADOPTED


@pytest.fixture(scope="module", params=["copy", "in-place"])
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("adopt"), request.param)


@pytest.mark.medium
@pytest.mark.parametrize("part", range(3))
def test_a_killed_adoption_costs_nobody_a_file_sampled(story: Story, part: int) -> None:
    story.reset()
    total = calls_of(story.adopt)
    for at in random.Random(part).sample(range(1, total + 1), 6):
        trial(story, at)


@pytest.mark.slow
def test_a_killed_adoption_costs_nobody_a_file_at_every_call(story: Story) -> None:
    story.reset()
    total = calls_of(story.adopt)
    assert total > 50
    for at in part(range(1, total + 1)):
        trial(story, at)
