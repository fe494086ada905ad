from __future__ import annotations

import re

import pytest

from tfrecreg.errors import StorageError, UsageError
from tfrecreg.guard import Brought, Misbehaviour, calling, reason_of


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
    with pytest.raises(KeyboardInterrupt), calling(Brought("source", "x"), "items"):
        raise KeyboardInterrupt


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), BaseException("base")])
def test_whatever_else_ends_programs_is_an_error_in_a_plugin(error: BaseException) -> None:
    with pytest.raises(Misbehaviour) as caught, calling(Brought("source", "x"), "items"):
        raise error
    assert reason_of(caught.value).startswith(type(error).__name__)
