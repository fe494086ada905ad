"""Dask: clusters, what dies, and what is told of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from threading import Timer

import pytest
from dask_support import Cluster, cluster
from engines_support import exit_hard, fail, process_of, refuse_two, touch_late

from tfrecreg.core.plugins.engines import open_engine
from tfrecreg.core.values.errors import FailureError, RawDataError, UsageError, install_command
from tfrecreg.core.workers.handshake import terms
from tfrecreg.core.workers.remote import AHEAD

SLOW = pytest.mark.slow

TESTS = str(Path(__file__).parents[2] / "support")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("dask"), env={"PYTHONPATH": TESTS}) as made:
        yield made


@SLOW
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


@SLOW
def test_a_cluster_of_the_command_ends_with_it(light_workers: None) -> None:
    with closing(open_engine("dask", jobs=2)) as engine:
        workers = set(engine.run(process_of, range(8)))
    assert os.getpid() not in workers
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


@SLOW
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


# `importorskip` would import Dask, which takes seconds.
@pytest.mark.medium
@pytest.mark.skipif(find_spec("distributed") is None, reason="the extra `dask` is not installed")
def test_a_scheduler_without_workers_is_a_failure_within_the_timeout() -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as made:
        late = Timer(30, made.scale, [1])  # one who waits for ever gets a worker, and no failure
        late.start()
        try:
            with (
                closing(open_engine("dask", address=made.scheduler_address, timeout=2)) as engine,
                pytest.raises(FailureError) as caught,
            ):
                list(engine.run(process_of, [0]))
        finally:
            late.cancel()
    assert caught.value.message == "the Dask scheduler has had no worker for 2 seconds"
    assert "dask worker" in caught.value.hint


@SLOW
def test_a_task_that_ends_its_workers_is_a_failure(tmp_path: Path) -> None:
    fewer = {"PYTHONPATH": TESTS, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with cluster(tmp_path / "dask", env=fewer) as made:
        with (
            closing(open_engine("dask", address=made.address, timeout=10)) as engine,
            pytest.raises(FailureError) as caught,
        ):
            list(engine.run(exit_hard, range(3)))
        assert caught.value.message.startswith("a task ended every worker that ran it")


@SLOW
def test_a_client_that_is_garbage_keeps_no_other_from_starting() -> None:
    """The finalizer of a client that gave up waits for a lock that the one that starts holds."""
    code = """
        import faulthandler
        import gc

        from distributed.utils import LoopRunner

        import tfrecreg

        class Client:
            def __init__(self):
                self.itself, self.runner = self, LoopRunner()

            def __del__(self):
                self.runner.stop()

        class Lock:
            held = LoopRunner._lock

            def __enter__(self):
                self.held.acquire()
                if gc.isenabled():  # as any allocation may
                    gc.collect()

            def __exit__(self, *ended):
                self.held.release()

        if __name__ == "__main__":
            faulthandler.dump_traceback_later(60, exit=True)
            gc.set_threshold(0)
            LoopRunner._lock = Lock()
            Client()
            with tfrecreg.engine("dask", jobs=1) as engine:
                print(list(engine.run(len, ["ab"])))
            print(gc.isenabled(), gc.collect() > 0)
    """
    command = [sys.executable, "-c", dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["[2]", "True True"], done.stderr


@SLOW
def test_a_worker_that_ends_while_it_is_greeted_is_left_out(tmp_path: Path) -> None:
    with cluster(tmp_path / "dask", env={"PYTHONPATH": TESTS}) as made:
        wait_for_workers(made, 2)
        gone, left = made.workers
        gone.send_signal(signal.SIGSTOP)  # it is asked, and does not answer
        Timer(2, made.kill, [gone]).start()
        with closing(open_engine("dask", address=made.address)) as engine:
            engine.warm(process_of)
            gone.wait(1)  # it was killed; poll() says None while another thread waits for it
            assert set(engine.run(process_of, range(4))) == {left.pid}


@SLOW
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
    assert install_command("pets", version="1.2") in caught.value.hint


def wait_for_workers(made: Cluster, count: int) -> None:
    deadline = time.monotonic() + 60
    while made.log().count("Register worker") < count:
        assert time.monotonic() < deadline, made.log()
        time.sleep(0.05)
