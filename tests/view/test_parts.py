"""Parts of the viewer alone: what is kept, and work in a process of its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from check_support import framed
from view_support import serving

from tfrecreg.builtin.view.background import Child
from tfrecreg.builtin.view.selections import ViewChoice, all_of, command_line, python_line
from tfrecreg.errors import FailureError, UsageError
from tfrecreg.example.encode import encode
from tfrecreg.example.features import bytes_feature, float_feature, int64_feature

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_conditions_hold_together_whatever_comments_they_have() -> None:
    assert all_of(["a = 1"]) == "a = 1"
    assert all_of(["a = 1 -- x", "b"]) == "(a = 1 -- x\n) AND (b)"


def test_the_lines_to_copy_are_quoted() -> None:
    choice = ViewChoice(splits=("train",), where=("label = 'a b'",))
    assert command_line("my set@1.0.0", choice) == (
        "tfrecreg head 'my set@1.0.0' --split train --where 'label = '\"'\"'a b'\"'\"''"
    )
    line = python_line("x", ["train", "test"], ViewChoice(where=("n > 1",)))
    assert line == "tfrecreg.data_source('x', 'train+test', where='n > 1')"


def added(report: Callable[[int], None], first: int, second: int) -> int:
    for number in range(3):
        report(number)
    return first + second


def refused(report: Callable[[int], None]) -> None:
    raise UsageError("no", hint="do not")


def failed(report: Callable[[int], None]) -> None:
    raise ZeroDivisionError("by zero")


def died(report: Callable[[int], None]) -> None:
    os._exit(3)


def slept(report: Callable[[int], None]) -> None:
    report(1)
    threading.Event().wait()


@pytest.mark.medium
def test_a_child_answers_reports_and_passes_errors_on() -> None:
    child = Child()
    told: list[int] = []
    try:
        assert child.call(added, 1, 2, report=told.append) == 3
        assert told == [0, 1, 2]
        with pytest.raises(UsageError, match="no") as caught:
            child.call(refused)
        assert caught.value.hint == "do not"
        with pytest.raises(FailureError, match="ZeroDivisionError: by zero"):
            child.call(failed)
        with pytest.raises(FailureError, match="its process ended before it was done"):
            child.call(died)
        assert child.call(added, 2, 2) == 4  # by a new one
    finally:
        child.close()


@pytest.mark.medium
def test_a_child_is_ended_whatever_it_does() -> None:
    child = Child()
    began = threading.Event()
    ended: list[str] = []

    def call() -> None:
        try:
            child.call(slept, report=lambda _: began.set())
        except FailureError as error:
            ended.append(error.message)

    thread = threading.Thread(target=call)
    thread.start()
    assert began.wait(60)
    child.close()
    thread.join(60)
    assert ended == ["its process ended before it was done"]
    with pytest.raises(FailureError, match="the viewer ends"):
        child.call(added, 1, 2)


@pytest.mark.slow
def test_a_record_is_shown_as_tensorflow_parses_it(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")
    path = tmp_path / "a.tfrecord"
    payload = encode(
        {
            "n": int64_feature(7),
            "x": float_feature(0.5),
            "t": bytes_feature(b"\xff<b>"),
        }
    )
    path.write_bytes(framed(payload, b"no example"))
    with serving(path) as viewing:
        found = viewing.ask("/api/t/0/tensors/0/0")["tensors"]
        said = viewing.error("/api/t/0/tensors/0/1", 400)
    assert [(each["name"], each["dtype"], each["shape"], each["values"]) for each in found] == [
        ("n", "int64", [1], "7"),
        ("t", "string", [1], "4 bytes"),
        ("x", "float32", [1], "0.5"),
    ]
    assert said == "the record is not a tf.train.Example | it has no features"


COSTLY = "(SELECT count(*) FROM range(1000000000000)) > 5"


def write_numbers(path: Path) -> Path:
    path.write_bytes(framed(*(encode({"n": int64_feature(each)}) for each in range(4))))
    return path


def test_costly_conditions_that_were_given_up_end_and_others_are_answered(tmp_path: Path) -> None:
    with serving(write_numbers(tmp_path / "a.tfrecord")) as viewing:
        viewing.wait("/api/t/0", "catalog", "ready")
        for number in range(8):
            where = {"where": f"{COSTLY} AND n > {number}"}
            with pytest.raises(httpx.ReadTimeout):
                viewing.client.get("/api/t/0/select", params=where, timeout=0.3)
            assert viewing.ask("/api/t/0/select", where=f"n >= {number}")["count"] == 4 - min(
                number, 4
            )
        time.sleep(2)
        spent = time.process_time()
        time.sleep(1)
        assert time.process_time() - spent < 0.3  # nobody searches any more


def test_a_costly_question_ends_after_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(write_numbers(tmp_path / "a.tfrecord")) as viewing:
        viewing.wait("/api/t/0", "catalog", "ready")
        monkeypatch.setattr("tfrecreg.builtin.view.background.ANSWER_SECONDS", 1)
        began = time.monotonic()
        assert "within 1 seconds" in viewing.error("/api/t/0/select", 400, where=COSTLY)
        assert time.monotonic() - began < 10
