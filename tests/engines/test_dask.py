"""Dask: clusters, what dies, and what is told of it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from dask_support import Cluster, cluster
from engines_support import exit_hard, fail, process_of, refuse_two, touch_late
from sources_support import build_arguments, digests, make_raw, new_registry, tfrecreg

from tfrecreg.cli.main import main
from tfrecreg.engines import open_engine
from tfrecreg.engines.handshake import terms
from tfrecreg.engines.remote import AHEAD
from tfrecreg.errors import FailureError, RawDataError, UsageError

pytestmark = pytest.mark.slow

KILLS = 20
TESTS = str(Path(__file__).parents[1])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("dask"), env={"PYTHONPATH": TESTS}) as made:
        yield made


def test_results_and_errors_arrive_in_order(shared: Cluster, tmp_path: Path) -> None:
    with closing(open_engine("dask", address=shared.address)) as engine:
        engine.warm(process_of)
        assert 1 <= engine.jobs <= 2
        workers = set(engine.run(process_of, range(20)))
        assert workers <= {each.pid for each in shared.workers}
        results = engine.run(refuse_two, range(9))
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(RawDataError, match="`two` is one too many"):
            next(results)
        with pytest.raises(ZeroDivisionError):
            list(engine.run(fail, range(3)))
        stopped = engine.run(touch_late, (str(tmp_path / str(number)) for number in range(100)))
        next(stopped)
        stopped.close()
        assert len(list(tmp_path.iterdir())) <= AHEAD * 2
    assert all(each.poll() is None for each in shared.workers)  # they are not ours to end


def test_a_cluster_of_the_command_ends_with_it(light_workers: None) -> None:
    with closing(open_engine("dask", jobs=2)) as engine:
        workers = set(engine.run(process_of, range(8)))
    assert os.getpid() not in workers
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def test_an_address_that_does_not_answer_is_a_failure_within_the_timeout() -> None:
    engine = open_engine("dask", address="tcp://127.0.0.1:9", timeout=1)
    with pytest.raises(FailureError) as caught:
        list(engine.run(process_of, [0]))
    assert caught.value.message == (
        "no Dask scheduler at `tcp://127.0.0.1:9` answers within 1 seconds"
    )
    assert "dask scheduler" in caught.value.hint
    with pytest.raises(UsageError, match="`nonsense://x` is not the address of a Dask scheduler"):
        list(open_engine("dask", address="nonsense://x").run(process_of, [0]))


def test_a_scheduler_without_workers_is_a_failure_within_the_timeout(tmp_path: Path) -> None:
    with cluster(tmp_path / "dask", workers=0) as made:
        with (
            closing(open_engine("dask", address=made.address, timeout=1)) as engine,
            pytest.raises(FailureError) as caught,
        ):
            list(engine.run(process_of, [0]))
        assert caught.value.message == "the Dask scheduler has had no worker for 1 seconds"
        assert "dask worker" in caught.value.hint


def test_a_task_that_ends_its_workers_is_a_failure(tmp_path: Path) -> None:
    fewer = {"PYTHONPATH": TESTS, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with cluster(tmp_path / "dask", env=fewer) as made:
        with (
            closing(open_engine("dask", address=made.address, timeout=10)) as engine,
            pytest.raises(FailureError) as caught,
        ):
            list(engine.run(exit_hard, range(3)))
        assert caught.value.message.startswith("a task ended every worker that ran it")


def test_each_worker_is_compared_before_work_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site" / "pets-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pets\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[tfrecreg]\npets = pets_plugin\n")
    monkeypatch.syspath_prepend(info.parent)
    terms.cache_clear()
    with cluster(tmp_path / "dask", workers=0) as made:
        made.add_worker({"PYTHONPATH": f"{info.parent}:{TESTS}"})
        made.add_worker({"PYTHONPATH": TESTS})
        wait_for_workers(made, 2)
        engine = open_engine("dask", address=made.address)
        with pytest.raises(FailureError) as caught:
            engine.warm(process_of)
    terms.cache_clear()
    assert "lacks the plugin distribution `pets` 1.2" in caught.value.message
    assert "pip install pets==1.2" in caught.value.hint


def wait_for_workers(made: Cluster, count: int) -> None:
    deadline = time.monotonic() + 60
    while made.log().count("Register worker") < count:
        assert time.monotonic() < deadline, made.log()
        time.sleep(0.05)


def begun(registry: Path) -> int:
    """How many shards the journal has."""
    return len(list(registry.glob(".tfrecreg/**/journal/*.json")))


def test_whatever_is_killed_the_next_run_ends_with_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_raw(tmp_path / "raw")
    reference = new_registry(tmp_path / "reference")
    arguments = ("mnist", tmp_path / "raw", "--records-per-shard", "10", "--compression", "gzip")
    assert tfrecreg(*build_arguments(reference, *arguments)).returncode == 0
    expected = digests(reference / "data" / "mnist")
    choice = random.Random(7)
    resumed = 0
    with cluster(tmp_path / "dask") as made:
        for number in range(KILLS):
            registry = tmp_path / f"registry-{number}"
            registry.mkdir()
            (registry / "tfrecreg.toml").write_bytes((reference / "tfrecreg.toml").read_bytes())
            options = ("--engine", "dask", "--engine-option", f"address={made.address}")
            command = build_arguments(registry, *arguments, *options)
            kept = kill_at_random(made, command, registry, choice)
            build = registry / "data" / "mnist"
            if build.exists():
                assert digests(build) == expected
                continue
            capsys.readouterr()
            assert main(command) == 0
            assert digests(build) == expected
            if kept:
                resumed += 1
                err = capsys.readouterr().err
                assert f"{kept} finished shard" in err
    assert resumed


def kill_at_random(made: Cluster, command: list[str], registry: Path, choice: random.Random) -> int:
    """Run the command and kill something in its run; how many shards were finished."""
    victim = choice.choice(("worker", "scheduler", "driver"))
    wait = choice.random() * 0.5
    driver = subprocess.Popen(
        [sys.executable, "-m", "tfrecreg", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not begun(registry) and driver.poll() is None:
        time.sleep(0.01)
    time.sleep(wait)
    if victim == "worker":
        made.kill(made.workers.pop(0))
        made.add_worker()
    elif victim == "scheduler":
        made.kill(made.scheduler)
    else:
        driver.kill()
    _, err = driver.communicate(timeout=90)
    if victim == "worker":
        assert driver.returncode == 0, err
    elif victim == "scheduler":
        assert driver.returncode in (0, 3), err
        if driver.returncode:
            error, hint = err.strip().splitlines()[-2:]
            assert error == f"error: the Dask scheduler {made.address} was lost"
            assert hint == "hint: run the command again: a build goes on from its finished shards"
        made.stop()
        made.start()
    return begun(registry)
