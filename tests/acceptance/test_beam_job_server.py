"""Beam's portable job API, as Flink and Spark serve it: the command, the job server and the workers
are separate processes that talk over gRPC.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources_support import build_arguments, digests, make_raw, new_registry, tfrecreg
from tests_support import flip


def free_port() -> int:
    """A free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def _serving(folder: Path, module: str, port: int, *command: str) -> Iterator[None]:
    """A server of Beam that listens at the port."""
    with (folder / f"{module.rpartition('.')[2]}.log").open("wb") as log:
        # The pool starts its workers with the `python` of the path.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        server = subprocess.Popen(
            [*command],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": path},
        )
        try:
            while True:
                assert server.poll() is None, Path(log.name).read_text()
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield
        finally:
            server.terminate()
            server.wait(20)


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """Options of commands that send their pipelines to the job server."""
    folder = tmp_path_factory.mktemp("beam")
    jobs, workers = free_port(), free_port()
    server = "apache_beam.runners.portability.local_job_service_main"
    pool = "apache_beam.runners.worker.worker_pool_main"
    python = (sys.executable, "-m")
    with (
        _serving(folder, server, jobs, *python, server, "--port", str(jobs)),
        _serving(folder, pool, workers, *python, pool, f"--service_port={workers}"),
    ):
        given = {
            "runner": "PortableRunner",
            "job_endpoint": f"localhost:{jobs}",
            "environment_type": "EXTERNAL",
            "environment_config": f"localhost:{workers}",
            "folder": str(folder),
        }
        pairs = [f"--engine-option={name}={value}" for name, value in given.items()]
        yield "--engine", "beam", "--jobs", "2", *pairs


pytestmark = pytest.mark.slow


def test_builds_and_checks_are_those_of_one_process(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    make_raw(tmp_path)
    here, there = new_registry(tmp_path / "here"), new_registry(tmp_path / "there")
    for registry, more in ((here, ("--jobs", "1")), (there, options)):
        done = tfrecreg(*build_arguments(registry, "mnist", tmp_path, *more))
        assert done.returncode == 0, done.stderr
    assert digests(there / "data/mnist") == digests(here / "data/mnist")
    shard = sorted((here / "data/mnist").glob("*.tfrecord*"))[3]
    flip(shard, 40)
    shutil.copy(shard, there / "data/mnist")
    documents = []
    for registry, more in ((here, ("--jobs", "1")), (there, options)):
        done = tfrecreg("-C", registry, "check", "mnist", "--json", *more)
        assert done.returncode == 1, done.stderr
        documents.append(done.stdout)
    assert documents[0] == documents[1]


def test_a_job_server_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    make_raw(tmp_path)
    registry = new_registry(tmp_path / "registry")
    given = (
        "runner=PortableRunner",
        f"job_endpoint=localhost:{free_port()}",
        "job_server_timeout=3",
        f"folder={tmp_path}",
    )
    pairs = [f"--engine-option={each}" for each in given]
    done = tfrecreg(*build_arguments(registry, "mnist", tmp_path, "--engine", "beam", *pairs))
    assert done.returncode == 3, done.stderr
    *_, error, hint = done.stderr.splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("hint: ")
    assert not (registry / "data/mnist").exists()
