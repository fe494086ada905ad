"""`diff` and `salvage` with workers give the same results; a killed worker ends the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from radosgw_support import ENVIRONMENT
from s3_support import S3, s3_server
from sources_support import new_registry, tfrecreg
from tests_support import flip

pytestmark = pytest.mark.slow

TESTS = str(Path(__file__).parents[1] / "support")
ENGINES = {
    "two jobs": ("--jobs", "2"),
    "processes": ("--engine", "futures:executors_support:processes"),
}
"""Options by engine. `test_engines` runs checks on all engines, with the same kind of tasks."""
DIGITS = 1500
MAKE = """
import sys
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage
write_digits(LocalStorage(sys.argv[1]), train=int(sys.argv[2]), test=100, seed=3)
"""
EAGER = """
import sys
from tfrecreg.cli.main import main
from tfrecreg.builtin.releases.diff import compare
compare._TASK_SECONDS, compare._PAIR_SECONDS = 200, 1
sys.exit(main(sys.argv[1:]))
"""
"""The command line, with many tasks, and with processes of this machine, for few records."""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The builds `png` and `raw` of the same digits, with damage in two shards of `raw`."""
    folder = tmp_path_factory.mktemp("registry")
    subprocess.run([sys.executable, "-c", MAKE, folder / "digits", str(DIGITS)], check=True)
    registry = new_registry(folder / "registry")
    for name in ("png", "raw"):
        more = ("--shards", "6", "--option", f"encoding={name}")
        done = tfrecreg(
            *("-C", registry, "build", name, "--source", "mnist", "--raw", folder / "digits"), *more
        )
        assert done.returncode == 0, done.stderr
    for number in (1, 4):
        flip(registry / f"data/raw/raw-train.tfrecord-{number:05d}-of-00006", 20_000)
    return registry


DIFF = ("diff", "png", "raw", "--json", "--records")


@pytest.fixture(scope="module")
def difference(registry: Path) -> str:
    done = tfrecreg("-C", registry, *DIFF, "--jobs", "1")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["features"]["compared"] > DIGITS / 2
    assert document["features"]["unread"] > 0
    assert len(document["records"]) == DIGITS + 100
    return done.stdout


@pytest.fixture(scope="module")
def rescued(registry: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The salvage of `raw` in one process."""
    output = tmp_path_factory.mktemp("rescued") / "out"
    done = tfrecreg("salvage", registry / "data/raw", "--output", output, "--jobs", "1")
    assert done.returncode == 0, done.stderr
    return output


def files(folder: Path) -> dict[str, bytes]:
    """All files of a salvage."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("engine", ENGINES)
def test_documents_and_files_do_not_depend_on_the_engine(
    engine: str, registry: Path, difference: str, rescued: Path, tmp_path: Path
) -> None:
    options = ENGINES[engine]
    assert said(begun("-C", registry, *DIFF, *options)) == difference
    output = tmp_path / "out"
    said(begun("salvage", registry / "data/raw", "--output", output, *options))
    assert files(output) == files(rescued)


def test_a_store_is_read_by_the_workers(
    registry: Path, difference: str, rescued: Path, tmp_path: Path
) -> None:
    with s3_server() as s3:
        for name in ("png", "raw"):
            s3.put(name, registry / "data" / name)
        where = {name: f"s3://{name}" for name in ("png", "raw")}
        compared = []
        for options in (("--jobs", "1"), ENGINES["processes"]):
            compared.append(
                said(begun("diff", *where.values(), "--json", "--records", *options, s3=s3))
            )
        output = tmp_path / "out"
        said(begun("salvage", where["raw"], "--output", output, *ENGINES["processes"], s3=s3))
    found, expected = files(output), files(rescued)
    assert found.pop("salvage.json") != expected.pop("salvage.json")  # it names the URL
    assert found == expected
    assert compared[0] == compared[1]
    ours, theirs = json.loads(difference), json.loads(compared[0])
    for field in ("totals", "labels", "records"):
        assert ours[field] == theirs[field]
    assert ours["features"]["counts"] == theirs["features"]["counts"]


def begun(*command: str | Path, s3: S3 | None = None) -> subprocess.Popen[str]:
    environment = {}
    if s3 is not None:
        environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{s3.port}"}
    return subprocess.Popen(
        [sys.executable, "-c", EAGER, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": TESTS, **environment},
    )


def said(command: subprocess.Popen[str]) -> str:
    """What a command printed, when it has ended well."""
    out, err = command.communicate(timeout=120)
    assert command.returncode == 0, err
    return out


def kill_a_worker(command: subprocess.Popen[str]) -> None:
    """Kill one process that works for a command: they need a moment for their imports."""
    while command.poll() is None:
        for child in psutil.Process(command.pid).children():
            if "spawn_main" in " ".join(child.cmdline()):
                child.kill()
                return
        time.sleep(0.01)
    pytest.fail(f"no worker was started: {command.communicate()}")


def test_a_killed_worker_ends_the_command(registry: Path, tmp_path: Path) -> None:
    arguments = ("salvage", registry / "data/raw", "--output", tmp_path / "out")
    command = begun(*arguments, "--jobs", "2")
    kill_a_worker(command)
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out) == (3, ""), err
    error, hint = err.strip().splitlines()[-2:]
    assert error == "error: a worker process was killed by SIGKILL before its task was done"
    assert hint == "hint: it may have run out of memory: try fewer `--jobs`"
    assert list(tmp_path.iterdir()) == []
