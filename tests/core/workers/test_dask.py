"""Dask: clusters, dying workers, and the errors about them."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Timer

import pytest
from dask_support import cluster
from engines_support import misbehave, process_of

from tfrecreg import engine as open_engine
from tfrecreg.core.values.errors import FailureError, UsageError

pytestmark = pytest.mark.slow

TESTS = str(Path(__file__).parents[2] / "support")


def test_a_cluster_of_the_command_ends_with_it(light_workers: None) -> None:
    with closing(open_engine("dask", jobs=2)) as engine:
        workers = set(engine.run(process_of, range(8)))
    assert os.getpid() not in workers
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def test_a_cluster_of_others_runs_tasks_and_goes_on(tmp_path: Path) -> None:
    with cluster(tmp_path / "dask", env={"PYTHONPATH": TESTS}) as made:
        with closing(open_engine("dask", address=made.address)) as engine:
            assert 1 <= engine.jobs <= 2
            workers = set(engine.run(process_of, range(20)))
            assert workers <= {each.pid for each in made.workers}
        assert all(each.poll() is None for each in made.workers)


@pytest.mark.parametrize(
    ("address", "error"), [("tcp://127.0.0.1:9", FailureError), ("nonsense://x", UsageError)]
)
def test_an_address_that_does_not_answer_is_an_error(
    address: str, error: type[FailureError | UsageError]
) -> None:
    with pytest.raises(error) as caught:
        list(open_engine("dask", address=address, timeout=1).run(process_of, [0]))
    assert address in caught.value.message


def test_a_scheduler_without_workers_is_a_failure_within_the_timeout() -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as made:
        late = Timer(30, made.scale, [1])  # one who waits for ever gets a worker, and no failure
        late.start()
        try:
            with (
                closing(open_engine("dask", address=made.scheduler_address, timeout=2)) as engine,
                pytest.raises(FailureError, match="has had no worker for 2 seconds"),
            ):
                list(engine.run(process_of, [0]))
        finally:
            late.cancel()


@pytest.mark.parametrize(
    ("failures", "message"), [("0", "KilledWorker"), ("9", "has had no worker for 3 seconds")]
)
def test_a_task_that_ends_its_workers_is_a_failure(
    tmp_path: Path, failures: str, message: str
) -> None:
    env = {"PYTHONPATH": TESTS, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": failures}
    with (
        cluster(tmp_path / "dask", env=env) as made,
        closing(open_engine("dask", address=made.address, timeout=3)) as engine,
        pytest.raises(FailureError, match=message) as caught,
    ):
        list(engine.run(partial(misbehave, "die"), range(3)))
    assert caught.value.exit_code == 3
