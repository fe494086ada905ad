from __future__ import annotations

import contextlib
import io
import re
import sys

import pytest

from tfrecreg.core.plugins.guard import Misbehaviour, PluginId, calling, reason_of
from tfrecreg.core.values.errors import StorageError, UsageError


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StorageError("cannot read `x`", hint="look"), "cannot read `x`"),
        (UsageError("\x1b[31m not escaped"), r"\x1b[31m not escaped"),
        (ValueError("one\ntwo"), "ValueError: one (test_guard.py, line N)"),
        (ValueError(), "ValueError (test_guard.py, line N)"),
        (KeyError("\u202e"), r"KeyError: '\\u202e' (test_guard.py, line N)"),
        (SystemExit(3), "SystemExit: 3 (test_guard.py, line N)"),
    ],
)
def test_a_reason_is_one_escaped_line_with_its_place(error: BaseException, reason: str) -> None:
    assert re.sub(r"line \d+", "line N", reason_of(raised(error))) == reason


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert reason_of(ValueError("one")) == "ValueError: one"


def test_an_interrupt_is_nobodys_to_catch() -> None:
    with pytest.raises(KeyboardInterrupt), calling(PluginId("source", "x"), "items"):
        raise KeyboardInterrupt


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), BaseException("base")])
def test_whatever_else_ends_programs_is_an_error_in_a_plugin(error: BaseException) -> None:
    with pytest.raises(Misbehaviour) as caught, calling(PluginId("source", "x"), "items"):
        raise error
    assert reason_of(caught.value).startswith(type(error).__name__)


@pytest.mark.parametrize("ends_first", [0, 1])
def test_calls_of_two_threads_leave_stdout_as_it_was(
    monkeypatch: pytest.MonkeyPatch, ends_first: int
) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    calls = [calling(PluginId("source", name), "items") for name in "ab"]
    for each in calls:
        each.__enter__()
        assert sys.stdout is sys.stderr
    for each in calls if ends_first == 0 else reversed(calls):
        assert sys.stdout is sys.stderr
        each.__exit__(None, None)
    assert sys.stdout is out


def test_output_that_a_plugin_redirects_goes_where_it_says() -> None:
    with calling(PluginId("source", "x"), "items"):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            with calling(PluginId("source", "y"), "items"):
                assert sys.stdout is sys.stderr
            print("told")
        assert sys.stdout is sys.stderr
    assert said.getvalue() == "told\n"


EVIL = PluginId("validator", "evil", "hostile", "6.6")
