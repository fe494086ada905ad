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
from sources_support import SOURCES, build_arguments, digests, make_raw, new_registry, tfrecreg
from tests_support import flip

pytestmark = pytest.mark.slow


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def serving(folder: Path, module: str, port: int, *arguments: str) -> Iterator[None]:
    """A server of Beam, from when it listens until the end."""
    with (folder / f"{module.rpartition('.')[2]}.log").open("wb") as log:
        # The pool starts its workers with the `python` of the path.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        server = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
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
    beam = "apache_beam.runners"
    with (
        serving(folder, f"{beam}.portability.local_job_service_main", jobs, "--port", str(jobs)),
        serving(folder, f"{beam}.worker.worker_pool_main", workers, f"--service_port={workers}"),
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


def test_builds_and_checks_are_those_of_one_process(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    make_raw(tmp_path)
    here, there = new_registry(tmp_path / "here"), new_registry(tmp_path / "there")
    for source in SOURCES:
        for registry, more in ((here, ("--jobs", "1")), (there, options)):
            done = tfrecreg(*build_arguments(registry, source, tmp_path, *more))
            assert done.returncode == 0, done.stderr
        assert digests(there / "data" / source) == digests(here / "data" / source)
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
