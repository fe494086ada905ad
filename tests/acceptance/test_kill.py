"""Killed at the n-th storage call, a build leaves the old one whole; run again, it ends the same.

Each trial runs in a forked child that kills itself with SIGKILL right before or right after its
n-th call of a method of the storage, so nothing gets a chance to clean up.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import pytest
from kill_support import calls_of, in_child
from sweep_support import part
from system_support import unsynced as unsynced  # a fixture: what is killed loses no page
from tests_support import tree

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build import assemble as make
from tfrecreg.core.build import plan
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.shards import ShardPolicy
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine


class Segmenting(LocalEngine):
    """Says that it has workers, so shards are made in segments; it works in this process."""

    def __init__(self) -> None:
        super().__init__(1)
        self.jobs = 8

    def warm(self, function: Callable[[Any], Any]) -> None:
        """There are none to start."""

    def run(
        self, function: Callable[[Any], Any], tasks: Iterable[Any]
    ) -> Generator[Any, None, None]:
        yield from LocalEngine(1).run(function, tasks)


class Story:
    """A registry with a released build of one seed of digits, and raw data of another."""

    def __init__(self, folder: Path, train: int, shards: int, engine: Engine | None = None) -> None:
        self.engine = engine
        self.root = folder / "registry"
        self.policy = ShardPolicy(shards=shards)
        for seed in (1, 2):
            raw = LocalStorage(folder / f"raw{seed}")
            write_digits(raw, train=train, test=3, seed=seed)
        self.raws = {seed: str(folder / f"raw{seed}") for seed in (1, 2)}
        init(self.root, with_dvc=False)
        self.build(1)
        self.release("1.0.0")
        self.old = self.root.with_name("old")
        shutil.copytree(self.root, self.old)
        self.build(2)
        self.built = tree(self.root / "data")
        self.new = self.root.with_name("new")
        shutil.copytree(self.root, self.new)
        self.reset()

    def reset(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self.old, self.root)

    def build(self, seed: int) -> None:
        request = BuildRequest(
            name="digits", source="mnist", raw=self.raws[seed], policy=self.policy
        )
        build(open_registry(self.root), request, engine=self.engine)

    def release(self, version: str) -> None:
        release(open_registry(self.root), ReleaseRequest(name="digits", version=version))

    def clean(self, reference: str) -> bool:
        options = CheckOptions(only=("crc", "manifest"), fail_on=FailOn.WARNING)
        (report,) = check([reference], registry=str(self.root), options=options)
        return report.status == "pass"


def build_trial(story: Story, at: int) -> None:
    story.reset()
    before = tree(story.root / "data")
    if not in_child(lambda: story.build(2), at):
        assert tree(story.root / "data") in (before, story.built), at
        assert story.clean("digits"), at
        assert story.clean("digits@1.0.0"), at
    story.build(2)
    assert tree(story.root / "data") == story.built, at
    assert not list(story.root.glob(".tfrecreg/stage/digits/*")), at


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("small"), train=6, shards=2)


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.slow if part else ()) for part in range(4)]
)
def test_a_build_killed_at_a_segment_leaves_the_old_one_whole(
    tmp_path: Path, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "WORTH_SECONDS", 0)
    monkeypatch.setattr(plan, "SEGMENT_BYTES", 1000)
    story = Story(tmp_path, train=20, shards=1, engine=Segmenting())
    total = calls_of(lambda: story.build(2))
    rng = random.Random(part)
    for at in rng.sample(range(1, total + 1), 6):
        build_trial(story, at)


@pytest.mark.medium
@pytest.mark.parametrize("part", range(4))
def test_a_killed_build_leaves_the_old_one_whole_sampled(small: Story, part: int) -> None:
    small.reset()
    total = calls_of(lambda: small.build(2))
    rng = random.Random(part)
    for at in rng.sample(range(1, total + 1), 6):
        build_trial(small, at)


@pytest.mark.slow
def test_a_killed_build_leaves_the_old_one_whole_at_every_call(small: Story) -> None:
    small.reset()
    total = calls_of(lambda: small.build(2))
    assert total > 50
    for at in part(range(1, total + 1)):
        build_trial(small, at)


@pytest.mark.slow
def test_a_killed_large_build_leaves_the_old_one_whole(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    story = Story(tmp_path_factory.mktemp("large"), train=3000, shards=12)
    total = calls_of(lambda: story.build(2))
    for at in part(random.Random(9).sample(range(1, total + 1), 50)):
        build_trial(story, at)


def release_trial(story: Story, at: int) -> None:
    shutil.rmtree(story.root)
    shutil.copytree(story.new, story.root)
    lived = in_child(lambda: story.release("2.0.0"), at)
    folder = story.root / "registry/digits/2.0.0"
    if folder.exists():
        assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "schema.pbtxt"]
        assert story.clean("digits@2.0.0"), at
    else:
        assert not lived
        assert [str(each) for each in open_registry(story.root).dataset("digits").versions] == [
            "1.0.0"
        ]
    assert story.clean("digits@1.0.0"), at
    story.release("2.0.0")
    assert story.clean("digits@2.0.0"), at


@pytest.mark.medium
def test_a_killed_release_is_there_whole_or_not_at_all_sampled(small: Story) -> None:
    shutil.rmtree(small.root)
    shutil.copytree(small.new, small.root)
    total = calls_of(lambda: small.release("2.0.0"))
    for at in random.Random(4).sample(range(1, total + 1), 10):
        release_trial(small, at)


@pytest.mark.slow
def test_a_killed_release_is_there_whole_or_not_at_all_at_every_call(small: Story) -> None:
    shutil.rmtree(small.root)
    shutil.copytree(small.new, small.root)
    total = calls_of(lambda: small.release("2.0.0"))
    for at in part(range(1, total + 1)):
        release_trial(small, at)
