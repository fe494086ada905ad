"""Many requests at once: their results in order, their errors, and how many there are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tfrecreg.errors import StorageError
from tfrecreg.storage.daemon_threads import AT_ONCE, at_once

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


def test_as_many_calls_as_threads_run_together() -> None:
    everyone = threading.Barrier(AT_ONCE)
    places = list(at_once(lambda _: everyone.wait(WAIT), range(AT_ONCE)))
    assert sorted(places) == list(range(AT_ONCE))


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


def test_an_interrupt_does_not_wait() -> None:
    """As Ctrl-C while a result is waited for, which Python raises there."""
    gate = threading.Event()
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        assert number == 0 or gate.wait(WAIT)
        return number

    results = at_once(work, range(1000))
    assert next(results) == 0
    with pytest.raises(KeyboardInterrupt):
        results.throw(KeyboardInterrupt())
    assert not gate.is_set()
    gate.set()
    assert list(at_once(lambda number: number, range(3 * AT_ONCE))) == list(range(3 * AT_ONCE))
    assert len(begun) <= 1 + 2 * AT_ONCE


def test_a_fork_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from tfrecreg.storage import daemon_threads

    before = daemon_threads.shared_threads()
    assert daemon_threads.shared_threads() is before
    seen: list[Any] = []
    monkeypatch.setattr(before, "process", -1)
    monkeypatch.setattr(daemon_threads, "_threads", before)
    seen.append(daemon_threads.shared_threads())
    assert seen[0] is not before
    assert list(at_once(str, range(3))) == ["0", "1", "2"]
