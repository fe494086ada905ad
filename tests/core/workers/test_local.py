"""The local engine: its processes end, whatever happens. `test_executor` has its contract."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from textwrap import dedent

import psutil
import pytest
from engines_support import late_first, misbehave, process_of, shout, sleep_long
from tests_support import interruptible

from tfrecreg.core.values.errors import FailureError, UsageError
from tfrecreg.core.workers import pool
from tfrecreg.core.workers.interface import result_of
from tfrecreg.core.workers.local import LocalEngine, usable_cores

JOBS = pytest.mark.parametrize("jobs", [1, 2])


def children() -> set[int]:
    """Our processes, but for the one that `multiprocessing` keeps to clean up after us."""
    return {
        child.pid
        for child in psutil.Process().children(recursive=True)
        if "resource_tracker" not in " ".join(child.cmdline())
    }


@pytest.fixture(autouse=True)
def nobody_is_left(light_workers: None) -> Iterator[None]:
    before = children()
    yield
    assert children() <= before


def test_one_job_works_in_this_process_and_two_work_in_others() -> None:
    for engine in (LocalEngine(), LocalEngine(1)):
        assert engine.jobs == 1
        before = children()
        engine.warm(process_of)
        assert children() <= before
        assert set(engine.run(process_of, range(3))) == {os.getpid()}
    workers = set(LocalEngine(2).run(process_of, range(8)))
    assert os.getpid() not in workers
    assert 1 <= len(workers) <= 2


def test_a_single_task_is_not_worth_a_process() -> None:
    assert list(LocalEngine(4).run(process_of, [0])) == [os.getpid()]


def test_an_error_that_cannot_travel_is_told_in_words() -> None:
    with pytest.raises(FailureError, match=r"(?m)^a task failed in its worker: .*one and another$"):
        list(LocalEngine(2).run(partial(misbehave, "stubborn"), range(3)))


@pytest.mark.medium
def test_results_that_cannot_be_packed_are_errors() -> None:
    with pytest.raises(Exception, match=r"Can't (pickle|get) local object"):
        list(LocalEngine(2).run(partial(misbehave, "lambda"), range(3)))


@pytest.mark.parametrize(
    ("end", "how", "hint"),
    [
        ("kill", "was killed by SIGKILL", "run out of memory: try fewer `--jobs`"),
        ("die", "ended with exit code 7", "`--jobs 1`"),
    ],
)
def test_a_worker_that_dies_is_a_failure_that_says_how(end: str, how: str, hint: str) -> None:
    with pytest.raises(FailureError) as caught:
        list(LocalEngine(2).run(partial(misbehave, end), range(6)))
    assert caught.value.message == f"a worker process {how} before its task was done"
    assert hint in caught.value.hint
    assert caught.value.exit_code == 3


@pytest.mark.medium
def test_workers_are_started_only_for_tasks_that_there_are() -> None:
    results = LocalEngine(8).run(late_first, range(2))
    before = children()
    assert next(results) == 0
    assert len(children() - before) <= 2
    assert list(results) == [1]


@pytest.mark.parametrize("large", [False, True])
def test_stopping_early_ends_the_workers_at_once(large: bool) -> None:
    # A large task does not fit into a pipe: stopping may not wait for somebody to read it.
    if large:
        tasks: Iterator[bytes] = (b"x" * (1 if n == 0 else 1 << 22) for n in range(9))
        results = LocalEngine(2).run(sleep_long, tasks)
        assert next(results) == b"x"
    else:
        results = LocalEngine(2).run(sleep_long, range(9))
        assert next(results) == 0
    before = time.monotonic()
    results.close()
    assert time.monotonic() - before < 5


def test_an_error_in_the_tasks_themselves_ends_the_workers() -> None:
    def tasks() -> Iterator[int]:
        yield from (0, 1, 2)
        raise UsageError("no more")

    with pytest.raises(UsageError, match="no more"):
        list(LocalEngine(2).run(late_first, tasks()))


@JOBS
def test_what_tasks_print_goes_to_stderr(jobs: int, capfd: pytest.CaptureFixture[str]) -> None:
    assert list(LocalEngine(jobs).run(shout, range(3))) == [0, 1, 2]
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.count("a plugin prints") == 3


@pytest.mark.medium
def test_two_runs_at_once_do_not_disturb_each_other() -> None:
    first, second = (LocalEngine(2).run(late_first, range(6)) for _ in range(2))
    assert next(first) == 0
    assert next(second) == 0
    first.close()
    assert list(second) == [1, 4, 9, 16, 25]


SCRIPT = """
    import time
    from tfrecreg.core.workers.local import LocalEngine

    def nap(task):
        time.sleep(0 if task == 0 else 60)
        return task

    {guard}
        for number in LocalEngine(2).run(nap, range(6)):
            print(number, flush=True)
"""


def script(folder: Path, guard: str) -> subprocess.Popen[str]:
    path = folder / "script.py"
    path.write_text(dedent(SCRIPT).format(guard=guard), "utf-8")
    with interruptible():
        return subprocess.Popen(
            [sys.executable, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            start_new_session=True,
        )


@pytest.mark.parametrize(
    "end",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_a_parent_that_is_killed_leaves_no_workers(tmp_path: Path, end: int) -> None:
    with script(tmp_path, 'if __name__ == "__main__":') as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "0\n"  # so the workers are there, and busy
        workers = psutil.Process(parent.pid).children(recursive=True)
        assert len(workers) >= 2
        parent.send_signal(end)
        _, alive = psutil.wait_procs(workers, timeout=10)
        assert alive == []
        assert parent.wait(10) != 0


@pytest.mark.medium
def test_a_worker_whose_result_nobody_takes_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    """As when a plugin has ended the parent, which something else tells."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    worker = context.Process(target=pool._work, args=(theirs, late_first))
    worker.start()
    theirs.close()
    ours.send_bytes(pickle.dumps((late_first, 3)))
    assert result_of(ours.recv_bytes()) == 9
    ours.send_bytes(pickle.dumps((late_first, 0)))  # it takes a moment
    ours.close()
    worker.join(30)
    assert worker.exitcode == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.medium
def test_an_interrupt_from_the_keyboard_is_the_parents_to_tell(tmp_path: Path) -> None:
    # A terminal sends it to the workers as well.
    with script(tmp_path, 'if __name__ == "__main__":') as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "0\n"
        workers = psutil.Process(parent.pid).children(recursive=True)
        for worker in workers:
            worker.send_signal(signal.SIGINT)
        assert psutil.wait_procs(workers, timeout=0.5)[0] == []
        os.killpg(parent.pid, signal.SIGINT)
        _, err = parent.communicate(timeout=30)
    assert parent.returncode == -signal.SIGINT
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")


def test_a_script_without_a_main_guard_is_told_of_it(tmp_path: Path) -> None:
    with script(tmp_path, "if True:") as parent:
        _, err = parent.communicate(timeout=60)
    assert parent.returncode == 1
    *_, last, hint = err.strip().splitlines()
    assert last == (
        "tfrecreg.core.values.errors.FailureError: a worker process ended with exit code 1 "
        "before its task was done"
    )
    assert hint.startswith("hint: a script that asks for more than one job must keep its code")


def test_usable_cores_are_those_that_this_process_may_use() -> None:
    assert usable_cores() >= 1
    if hasattr(os, "sched_setaffinity"):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        try:
            assert usable_cores() == 1
        finally:
            os.sched_setaffinity(0, allowed)


def test_workers_that_were_warmed_do_the_tasks() -> None:
    engine = LocalEngine(2)
    before = children()
    engine.warm(process_of)
    warmed = children() - before
    assert len(warmed) == 2
    assert set(engine.run(process_of, range(6))) <= warmed


def test_closing_ends_workers_that_nothing_ran_on_and_the_engine_works_on() -> None:
    engine = LocalEngine(2)
    before = children()
    engine.warm(process_of)
    engine.close()
    assert children() <= before
    assert list(engine.run(late_first, range(3))) == [0, 1, 4]
    engine.close()


BUILD = """
from pathlib import Path

import tfrecreg
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage

if not Path("raw").exists():
    write_digits(LocalStorage("raw"), train=20_000, test=10, seed=1)
    tfrecreg.init(".", with_dvc=False)
engine = tfrecreg.engine("local", jobs=2)
tfrecreg.open(".")["digits"].build(source="mnist", raw="raw", engine=engine)
"""


@pytest.mark.slow
def test_a_build_without_a_main_guard_is_told_of_it(tmp_path: Path) -> None:
    """Its worker would wait for the lock of its parent for ever."""
    path = tmp_path / "script.py"
    path.write_text(BUILD, "utf-8")
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        cwd=tmp_path,
        timeout=100,
    )
    assert done.returncode == 1
    assert "a worker process is importing this script, which changes a registry" in done.stderr
    *_, error, hint = done.stderr.splitlines()
    assert "a worker process ended with exit code 1 before its task was done" in error
    assert hint.startswith("hint: a script that asks for more than one job must keep its code")
    assert not (tmp_path / "data/digits").exists()
