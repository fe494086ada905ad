"""The three sources on real data: jobs and parts in several shells give the same files."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests_support import tree

from tfrecreg.operations.init import init

pytestmark = [pytest.mark.slow, pytest.mark.realdata]

DATA = {
    "mnist": ("mnist/notmnist-t10k", "--shards", "8"),
    "imagefolder": ("imagefolder/dali", "--shards", "6"),
    "coco": ("coco/dali", "--shards", "5", "--option", "masks=polygons"),
}


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "tfrecreg", *map(str, arguments)]


def run(*arguments: str | Path) -> str:
    done = subprocess.run(
        command(*arguments), check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def settings(realdata: Path, source: str) -> list[str | Path]:
    folder, *more = DATA[source]
    return ["--source", source, "--raw", realdata / folder, "--max-skipped", "10%", *more]


@pytest.mark.parametrize("source", DATA)
def test_jobs_and_parts_give_identical_builds(realdata: Path, tmp_path: Path, source: str) -> None:
    given = settings(realdata, source)
    for name in ("one", "two", "parts"):
        init(tmp_path / name, with_dvc=False)
    for name, jobs in (("one", "1"), ("two", "2")):
        run("-C", tmp_path / name, "build", "d", *given, "--jobs", jobs)
    plan = tmp_path / "plan"
    run("-C", tmp_path / "parts", "parts", "plan", "d", plan, *given)
    numbers = random.Random(source).sample(range(1, 5), 4)
    shells = [
        subprocess.Popen(command("parts", "build", plan, "--part", f"{number}/4", "--jobs", "1"))
        for number in numbers
    ]
    assert [shell.wait(300) for shell in shells] == [0, 0, 0, 0]
    said = run(
        *("-C", tmp_path / "parts", "parts", "publish", plan, "d"),
        *("--parts-only", "--verify", "100%"),
    )
    assert "built d" in said
    whole = tree(tmp_path / "one/data")
    assert tree(tmp_path / "two/data") == whole
    assert tree(tmp_path / "parts/data") == whole


def test_killed_processes_of_parts_are_completed(realdata: Path, tmp_path: Path) -> None:
    """SIGKILL at random moments, of parts with two processes and of the command that publishes."""
    given = settings(realdata, "mnist")
    for name in ("one", "parts"):
        init(tmp_path / name, with_dvc=False)
    run("-C", tmp_path / "one", "build", "d", *given)
    whole = tree(tmp_path / "one/data")
    plan = tmp_path / "plan"
    run("-C", tmp_path / "parts", "parts", "plan", "d", plan, *given)
    rng = random.Random(5)
    part = command("parts", "build", plan, "--part", "1/1", "--jobs", "2")
    publish = command("-C", tmp_path / "parts", "parts", "publish", plan, "--jobs", "1")
    for work, times in ((part, 6), (publish, 6)):
        for _ in range(times):
            process = subprocess.Popen(work, start_new_session=True, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0.2, 2.5))
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            data = tree(tmp_path / "parts/data")
            assert data in ({}, whole) or set(data) == {".gitignore"}
    run("parts", "build", plan, "--part", "1/1")
    run("-C", tmp_path / "parts", "parts", "publish", plan, "--parts-only")
    assert tree(tmp_path / "parts/data") == whole
