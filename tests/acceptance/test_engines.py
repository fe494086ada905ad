"""The same bytes and the same findings on every engine, with the real libraries."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from dask_support import Cluster, cluster
from package_support import (
    Interpreter,
    find_python,
    fresh_environment,
    make_wheel,
)
from sources_support import SOURCES, build_arguments, digests, make_raw, new_registry, tfrecreg
from tests_support import flip, interruptible

pytestmark = pytest.mark.slow

ENGINES = {
    "two jobs": ("--jobs", "2"),
    "dask": ("--engine", "dask", "--engine-option", "address={address}"),
    "beam": ("--engine", "beam"),
    "processes": ("--engine", "futures:executors_support:processes"),
}
"""Options by engine; `address` is the address of a scheduler with two workers."""
EVERY_SOURCE = "processes"
"""The engine that builds from each source. All engines pickle the same tasks."""
SHARD = "mnist-train.tfrecord-00003-of-00012"


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw")
    make_raw(folder)
    return folder


@pytest.fixture(scope="module")
def reference(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry whose builds were made in one process."""
    registry = new_registry(tmp_path_factory.mktemp("registry") / "reference")
    for source in SOURCES:
        done = tfrecreg(*build_arguments(registry, source, raw, "--jobs", "1"))
        assert done.returncode == 0, done.stderr
    return registry


@pytest.fixture(scope="module")
def damaged(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A copy with damage, and the document of its check in one process."""
    registry = tmp_path_factory.mktemp("damaged") / "registry"
    shutil.copytree(reference, registry)
    data = registry / "data" / "mnist"
    flip(data / SHARD, 40)
    flip(data / SHARD.replace("00003", "00005"), 12)
    (data / SHARD.replace("00003", "00007")).unlink()
    shutil.copy(data / SHARD.replace("00003", "00001"), data / SHARD.replace("00003", "00002"))
    done = tfrecreg("-C", registry, "check", "mnist", "--json", "--jobs", "1")
    assert done.returncode == 1, done.stderr
    codes = {each["code"] for each in json.loads(done.stdout)["findings"]}
    assert codes >= {"CRC002", "SHD001", "SHD004"}
    return registry, done.stdout


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("dask")) as made:
        yield made


@pytest.mark.parametrize("engine", ENGINES)
def test_builds_and_checks_do_not_depend_on_the_engine(
    engine: str,
    raw: Path,
    reference: Path,
    damaged: tuple[Path, str],
    scheduler: Cluster,
    tmp_path: Path,
) -> None:
    options = [each.format(address=scheduler.address) for each in ENGINES[engine]]
    path = {"PYTHONPATH": str(Path(__file__).parents[1] / "support")}
    registry = new_registry(tmp_path / "registry")
    for source in SOURCES if engine == EVERY_SOURCE else ("mnist",):
        done = tfrecreg(*build_arguments(registry, source, raw, *options), env=path)
        assert done.returncode == 0, done.stderr
        assert_same_build(registry, reference, source)
    done = tfrecreg("-C", damaged[0], "check", "mnist", "--json", *options, env=path)
    assert (done.returncode, done.stdout) == (1, damaged[1]), done.stderr


def assert_same_build(registry: Path, reference: Path, source: str) -> None:
    """Every file has the SHA-256 of the reference's, and the manifest its digest."""
    build, expected = registry / "data" / source, reference / "data" / source
    assert digests(build) == digests(expected)
    manifests = [json.loads((each / "manifest.json").read_bytes()) for each in (build, expected)]
    assert manifests[0]["digest"] == manifests[1]["digest"]


def running(registry: Path, raw: Path, *options: str) -> subprocess.Popen[str]:
    """A build that has finished its first shard, in a process group of its own."""
    command = [sys.executable, "-m", "tfrecreg", *build_arguments(registry, "mnist", raw)]
    build = subprocess.Popen(
        [*command, "--records-per-shard", "5", "--compression", "gzip", "--jobs", "2", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(registry)},
    )
    while not list(registry.glob(".tfrecreg/**/journal/*.json")):
        assert build.poll() is None, build.communicate()
        time.sleep(0.01)
    return build


@pytest.mark.parametrize("engine", ["dask", "beam"])
def test_an_interrupt_ends_the_command_and_its_workers(
    engine: str, raw: Path, tmp_path: Path
) -> None:
    registry = new_registry(tmp_path / "registry")
    with interruptible(), running(registry, raw, "--engine", engine) as build:
        workers = psutil.Process(build.pid).children(recursive=True)
        os.killpg(build.pid, signal.SIGINT)  # as a terminal does
        _, err = build.communicate(timeout=60)
        assert psutil.wait_procs(workers, timeout=10)[1] == []
    assert build.returncode == 130, err
    assert "Traceback" not in err
    assert err.rstrip().endswith("error: interrupted")
    assert not (registry / "data" / "mnist").exists()


def ray_environment(folder: Path) -> Interpreter:
    """An environment with this project and Ray, whose pins differ from TFDV's."""
    python = find_python("3.11") or sys.executable
    try:
        return fresh_environment(folder / "env", python, f"{make_wheel(folder)}[ray]")
    except AssertionError as error:
        pytest.skip(f"Ray cannot be installed: {str(error).splitlines()[0]}")


def test_builds_and_a_check_on_ray(
    raw: Path, reference: Path, damaged: tuple[Path, str], tmp_path: Path
) -> None:
    ray = str(ray_environment(tmp_path).python)
    registry = new_registry(tmp_path / "registry")
    options = ("--engine", "ray", "--jobs", "2")
    done = tfrecreg(*build_arguments(registry, "mnist", raw, *options), python=ray)
    assert done.returncode == 0, done.stderr
    assert_same_build(registry, reference, "mnist")
    done = tfrecreg("-C", damaged[0], "check", "mnist", "--json", *options, python=ray)
    found, expected = json.loads(done.stdout), json.loads(damaged[1])
    assert done.returncode == 1, done.stderr
    assert found["findings"] == expected["findings"]
    nowhere = ("--engine", "ray", "--engine-option", "address=127.0.0.1:9")
    done = tfrecreg("-C", registry, "check", "mnist", *nowhere, python=ray)
    assert done.returncode == 3
    assert "error: the engine `ray` failed: ConnectionRefusedError: " in done.stderr
