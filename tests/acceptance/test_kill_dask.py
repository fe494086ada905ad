"""SIGKILL for a worker, the scheduler or the command on Dask, at random moments.

A published build is whole or absent, and the next run ends with the same bytes without making
finished shards again. `TFRECREG_TEST_KILLS` sets the number of moments, `TFRECREG_TEST_SEED` the
seed, which a failure names.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from dask_support import Cluster, cluster
from sources_support import build_arguments, digests, make_raw, new_registry, tfrecreg

from tfrecreg.cli.main import main

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("TFRECREG_TEST_KILLS", "12"))
SEED = int(os.environ.get("TFRECREG_TEST_SEED", "7"))
VICTIMS = ("worker", "scheduler", "command")
SHARDS = 24
SETTINGS = ("--records-per-shard", "30", "--compression", "gzip", "--release", "1.0.0")


@dataclass
class Site:
    """A cluster, and a build that nothing was killed in."""

    made: Cluster
    raw: Path
    build: dict[str, str]
    """Digest of each file of the build."""
    release: list[str]
    """Files of the release."""
    kept: list[tuple[str, int]] = field(default_factory=list)
    """Victim, and number of finished shards that it left; none where the build was published."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("kill")
    make_raw(folder / "raw")
    whole = new_registry(folder / "whole")
    done = tfrecreg(*build_arguments(whole, "mnist", folder / "raw", *SETTINGS))
    assert done.returncode == 0, done.stderr
    files = digests(whole / "data/mnist")
    assert sum(name.endswith(".index") for name in files) == SHARDS
    with cluster(folder / "dask") as made:
        yield Site(made, folder / "raw", files, released(whole))


def released(registry: Path) -> list[str]:
    """The files of the release and the digests of its bytes."""
    folder = registry / "registry/mnist/1.0.0"
    names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))]
    bytes_of = digests(registry / "versions/mnist/1.0.0") if names else {}
    return names + [f"{name} {digest}" for name, digest in bytes_of.items()]


def finished(registry: Path) -> dict[str, int]:
    """The shards in the journal of a build in the making, with the inode of each."""
    found = {}
    for note in registry.glob(".tfrecreg/stage/mnist/plan-*/journal/*.json"):
        found[note.stem] = (note.parents[1] / "build" / note.stem).stat().st_ino
    return found


@dataclass(frozen=True)
class Moment:
    """When to kill: after some shards, or at any time since the start, and a little later."""

    shards: int
    seconds: float

    @classmethod
    def draw(cls, choice: random.Random) -> Moment:
        if choice.random() < 0.2:
            return cls(0, choice.uniform(0, 4))
        return cls(choice.randint(1, SHARDS), choice.uniform(0, 0.1))

    def wait(self, command: subprocess.Popen[str], registry: Path) -> None:
        notes = registry / ".tfrecreg/stage/mnist"
        while self.shards and command.poll() is None:
            if len(list(notes.glob("plan-*/journal/*.json"))) >= self.shards:
                break
            if (registry / "data/mnist").exists():
                break  # the journal is gone: it is published
            time.sleep(0.005)
        time.sleep(self.seconds)


@pytest.mark.parametrize("number", range(KILLS))
@pytest.mark.sweep
def test_whatever_is_killed_the_next_run_ends_with_the_same_bytes(
    site: Site, tmp_path: Path, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = random.Random(f"{SEED} {number}")
    victim, moment = VICTIMS[number % len(VICTIMS)], Moment.draw(choice)
    print(f"TFRECREG_TEST_SEED={SEED}, moment {number}: the {victim}, {moment}")
    registry = tmp_path / "registry"
    registry.mkdir()
    (registry / "tfrecreg.toml").write_text("")
    dask = ("--engine", "dask", "--engine-option", f"address={site.made.address}")
    # A command whose scheduler is gone before it connects waits for another one.
    short = ("--engine-option", "timeout=5") if victim == "scheduler" else ()
    arguments = build_arguments(registry, "mnist", site.raw, *SETTINGS, *dask, *short)
    kill(site, arguments, victim, moment)
    build, kept = registry / "data/mnist", finished(registry)
    assert not build.exists() or digests(build) == site.build
    assert released(registry) in ([], site.release)
    assert not released(registry) or build.exists()
    before = build.exists()
    engine = dask if choice.random() < 0.5 else ("--jobs", "1")
    capsys.readouterr()
    assert main(build_arguments(registry, "mnist", site.raw, *SETTINGS, *engine)) == 0
    err = capsys.readouterr().err
    assert digests(build) == site.build
    assert released(registry) == site.release
    site.kept.append((victim, 0 if before else len(kept)))
    if not before:
        noun = "shard" if len(kept) == 1 else "shards"
        assert not kept or f"{len(kept)} finished {noun}" in err
        assert {name: (build / name).stat().st_ino for name in kept} == kept
    shutil.rmtree(registry)


def test_some_of_the_killed_builds_were_resumed(site: Site) -> None:
    """Else the moments would show nothing about finished shards."""
    print(site.kept)
    # A part of the sweep, or a worker with few of the tests, may have met no such moment.
    assert len(site.kept) < KILLS or any(count for _, count in site.kept)


def kill(site: Site, arguments: list[str], victim: str, moment: Moment) -> None:
    """Run a build, kill something meanwhile, and wait for the command to end."""
    made, registry = site.made, Path(arguments[1])
    command = subprocess.Popen(
        [sys.executable, "-m", "tfrecreg", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    moment.wait(command, registry)
    if victim == "worker":
        made.kill(made.workers.pop(random.Random(str(moment)).randrange(2)))
        made.add_worker()
    elif victim == "scheduler":
        made.kill(made.scheduler)
    else:
        command.kill()
    _, err = command.communicate(timeout=90)
    if victim == "worker":
        assert command.returncode == 0, err
    elif victim == "scheduler":
        assert command.returncode in (0, 3), err
        if command.returncode:
            error, hint = err.strip().splitlines()[-2:]
            assert error.startswith("error: ")
            assert made.address in error
            assert hint.startswith("hint: ")
        made.stop()
        made.start()
