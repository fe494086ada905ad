from __future__ import annotations

import io
import sys

import pytest

from tfrecreg.core.plugins.guard import calling


@pytest.mark.parametrize("ends_first", [0, 1])
def test_calls_of_two_threads_leave_stdout_as_it_was(
    monkeypatch: pytest.MonkeyPatch, ends_first: int
) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    calls = [calling(), calling()]
    for each in calls:
        each.__enter__()
        assert sys.stdout is sys.stderr
    for each in calls if ends_first == 0 else reversed(calls):
        assert sys.stdout is sys.stderr
        each.__exit__(None, None)
    assert sys.stdout is out
