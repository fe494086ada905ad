"""Whichever call of the system is refused, with any errno: no harm is done, and the error says it.

A refusal is raised where the storage calls the system. Half of the refusals concern one call. The
other half last, so that cleaning up is refused as well. `test_fault_steps` refuses calls outside of
the storage.
"""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest
from child_support import Failure, apart
from deeds_support import Deed
from deeds_support import deed as deed  # the fixture
from sweep_support import part
from system_support import NUMBERS, Faulty, Refusing, installed
from system_support import unsynced as unsynced  # and this one
from tests_support import tree

from tfrecreg.core.storage.writer import is_temporary
from tfrecreg.core.values.errors import StorageError, TfrecregError

QUICK = ("build", "release", "repair", "yank", "gc", "salvage")
ALL = ("build", "release", "yank", "gc", "salvage")
SAMPLE = 2
FURTHER = 11
"""One trial of this number goes on to the next command, and to `gc`."""

pytestmark = pytest.mark.filterwarnings(
    # A generator that an error left waiting is closed by the collector, its file perhaps before it.
    "ignore:Exception ignored in. <_io.FileIO:pytest.PytestUnraisableExceptionWarning"
)


def calls_of(deed: Deed, number: int) -> int:
    """How many calls of the deed the system may end so."""
    deed.reset()

    def counted() -> int:
        counting = Faulty(number, 0)
        with installed(counting):
            deed.do()
        return counting.calls

    calls: int = apart(counted)
    return calls


def trial(deed: Deed, number: int, at: int, *, lasting: bool, further: bool = True) -> None:
    deed.reset()

    system = Faulty(number, at, lasting=lasting)
    failure = None
    try:
        with installed(system):
            deed.do()
    except Exception as error:
        failure = Failure.of(error)
    calls = system.refused
    where = (errno.errorcode[number], at, lasting, calls[:3], failure)
    assert calls, where
    try:
        if failure is None:
            deed.expect_done()
        else:
            assert failure.expected
            assert failure.exit_code == 3
            assert os.strerror(number) in failure.message
            places = {str(deed.folder), *(str(Path(path).parent) for _, path in calls)}
            assert any(place in failure.message for place in places)
            cleaning = any(kind in ("unlink", "rmdir") for kind, _ in calls)
            left = [path for path in tree(deed.root) if is_temporary(path)]
            assert not left or cleaning
        # It begins with looking whether any harm was done.
        deed.expect_recovered(deed.adds if failure is None else (), further=further)
    except Exception as error:
        raise AssertionError(f"after {where}") from error


@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
@pytest.mark.parametrize("deed", QUICK, indirect=True)
def test_a_call_that_is_refused_does_no_harm_sampled(deed: Deed, number: int) -> None:
    total = calls_of(deed, number)
    for at in random.Random(number).sample(range(1, total + 1), min(SAMPLE, total)):
        trial(deed, number, at, lasting=at % 2 == 0, further=at % 4 < 2)


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
@pytest.mark.parametrize("deed", ALL, indirect=True)
def test_a_call_that_is_refused_does_no_harm_whichever_it_is(deed: Deed, number: int) -> None:
    """Every call is refused, and after every second one all later calls as well."""
    for at in part(range(1, calls_of(deed, number) + 1)):
        trial(deed, number, at, lasting=at % 2 == 0, further=at % FURTHER == 0)


SHARD = "/digits-train.tfrecord-00000-of-00002"


@pytest.mark.parametrize("deed", ["first"], indirect=True)
@pytest.mark.parametrize(
    ("folder", "message", "hint"),
    [
        (
            "build",
            "the new build could not be read back: ",
            "",
        ),
        (
            "data/digits",
            "the gate could not judge `digits`, so nothing was released: ",
            "tfrecreg check digits",
        ),
    ],
)
def test_what_cannot_be_read_is_a_failure_and_no_verdict(
    deed: Deed, folder: str, message: str, hint: str
) -> None:
    deed.reset()
    with installed(Refusing("read", folder + SHARD)), pytest.raises(TfrecregError) as caught:
        deed.do()
    assert caught.value.message.startswith(f"{message}`{SHARD[1:]}` was not read: cannot read `")
    assert caught.value.message.endswith("`: Input/output error")
    assert (caught.value.hint, caught.value.exit_code) == (hint, 3)
    deed.do()
    deed.expect_done()


@pytest.mark.parametrize("deed", ["release"], indirect=True)
def test_a_release_does_not_keep_for_good_what_another_try_may_not_meet(deed: Deed) -> None:
    deed.reset()
    path = f"versions/digits/1.0.0{SHARD}"
    with installed(Refusing("read", path)), pytest.raises(StorageError) as caught:
        deed.do()
    assert caught.value.message == f"cannot read `{deed.root}/{path}`: Input/output error"
    assert caught.value.exit_code == 3
    deed.expect_unharmed()
    assert deed.seen() == deed.before
