"""Many requests at once: their results in order, their errors, and how many there are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from package_support import CHECKOUT

from tfrecreg.core.storage.file_systems import AT_ONCE, at_once
from tfrecreg.core.values.errors import StorageError

WAIT = 20


def test_results_come_in_the_order_of_the_tasks() -> None:
    """The first task ends last."""
    others = threading.Semaphore(0)

    def work(number: int) -> int:
        if number == 0:
            for _ in range(AT_ONCE):
                assert others.acquire(timeout=WAIT)
        others.release()
        return number * number

    assert list(at_once(work, range(100))) == [number * number for number in range(100)]
    assert list(at_once(work, [])) == []


def test_tasks_and_results_that_wait_are_bounded() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    for number in at_once(lambda number: number, tasks()):
        assert len(taken) <= number + 2 * AT_ONCE + 1
        if number == 300:
            break
    assert len(taken) < 400


def test_the_first_error_comes_when_the_others_have_stopped() -> None:
    begun: list[int] = []
    ended: list[int] = []
    started, failed = threading.Semaphore(0), threading.Event()

    def work(number: int) -> None:
        begun.append(number)
        started.release()
        if number == 3:
            for _ in range(AT_ONCE):  # all threads are at work
                assert started.acquire(timeout=WAIT)
            failed.set()
            raise StorageError(f"cannot write `{number}`")
        if number > 3:
            assert failed.wait(WAIT)
        ended.append(number)

    with pytest.raises(StorageError, match="cannot write `3`"):
        for _ in at_once(work, range(1000)):
            pass
    assert sorted([*ended, 3]) == sorted(begun)
    assert len(begun) <= 3 * AT_ONCE


_INTERRUPTED = """
import signal, time
from tfrecreg.core.storage.file_systems import at_once

def work(number):
    if number == 0:
        print("begun", flush=True)
    time.sleep(600)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
for _ in at_once(work, range(100)):
    pass
"""


def test_ctrl_c_ends_a_process_whose_requests_hang() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WAIT)
    finally:
        process.kill()
        process.communicate()
    assert err.rstrip().endswith("KeyboardInterrupt")
