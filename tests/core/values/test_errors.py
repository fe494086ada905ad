"""What a library user sees of an error: in a traceback, in a log, in another process."""

from __future__ import annotations

import pickle
import traceback

import pytest

from tfrecreg.core.values.errors import (
    MissingExtraError,
    NoSuchRecordError,
    RefusedError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.install_hint import install_command


@pytest.mark.parametrize(
    "error",
    [
        UsageError("no dataset `mnits`", hint="available: mnist"),
        RefusedError("no dataset `mnits`", hint="available: mnist"),
        NoSuchRecordError("no dataset `mnits`", hint="available: mnist"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_traceback_shows_the_message_and_the_hint(error: TfrecregError) -> None:
    shown = "".join(traceback.format_exception_only(type(error), error))
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    assert shown == f"{name}: no dataset `mnits`\nhint: available: mnist\n"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_error_without_a_hint_is_its_message() -> None:
    assert str(UsageError("no dataset `mnits`")) == "no dataset `mnits`"


def test_a_missing_extra_shows_the_command_that_installs_it() -> None:
    error = MissingExtraError("loading with tf.data", "tf")
    assert str(error) == (
        "loading with tf.data needs the extra `tf`, which is not installed\n"
        f"hint: {install_command(extra='tf')}"
    )
    again = pickle.loads(pickle.dumps(error))
    assert (again.extra, str(again)) == ("tf", str(error))
