"""Beam's portable job API, as Flink and Spark serve it: the command, the job server and the workers
are separate processes that talk over gRPC.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from beam_support import free_port, job_server
from sources_support import SOURCES, build_arguments, digests, make_raw, new_registry, tfrecreg
from tests_support import flip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """Options of commands that send their pipelines to the job server."""
    folder = tmp_path_factory.mktemp("beam")
    with job_server(folder, str(folder)) as made:
        yield made


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
