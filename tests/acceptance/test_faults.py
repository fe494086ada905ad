"""Whatever call of the system is refused, and with what: no harm is done, and it is said.

A refusal is raised where the storage calls the system, in this process. Half of them are of one
call, half last: then cleaning up is refused, too.
"""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest
from deeds_support import Deed
from deeds_support import deed as deed  # the fixture
from fault_support import NUMBERS, Faulty, Refusing
from system_support import installed
from system_support import unsynced as unsynced  # and this one
from tests_support import tree

from tfrecreg.errors import StorageError, TfrecregError
from tfrecreg.storage import is_temporary

QUICK = ("build", "release", "yank", "gc", "salvage")
ALL = (*QUICK, "first", "tag")
SAMPLE = 3

pytestmark = pytest.mark.filterwarnings(
    # A generator that an error left waiting is closed by the collector, its file perhaps before it.
    "ignore:Exception ignored in. <_io.FileIO:pytest.PytestUnraisableExceptionWarning"
)


def calls_of(deed: Deed, number: int) -> int:
    """How many calls of the deed the system may end so."""
    deed.reset()
    counting = Faulty(number, 0)
    with installed(counting):
        deed.do()
    return counting.calls


def trial(deed: Deed, number: int, at: int, *, lasting: bool) -> None:
    deed.reset()
    system = Faulty(number, at, lasting=lasting)
    failed: TfrecregError | None = None
    try:
        with installed(system):
            deed.do()
    except TfrecregError as error:
        failed = error
    where = (errno.errorcode[number], at, lasting, system.refused[:3], failed)
    assert system.refused, where
    try:
        if failed is None:
            deed.expect_done(os.strerror(number))
        else:
            assert failed.exit_code == 3
            assert os.strerror(number) in failed.message
            places = {str(deed.folder), *(str(Path(path).parent) for _, path in system.refused)}
            assert any(place in failed.message for place in places)
            assert failed.hint
            deed.expect_unharmed()
            cleaning = any(kind in ("unlink", "rmdir") for kind, _ in system.refused)
            left = [path for path in tree(deed.root) if is_temporary(path)]
            assert not left or cleaning
        deed.again()
        deed.expect_done()
    except Exception as error:
        raise AssertionError(f"after {where}") from error


@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
@pytest.mark.parametrize("deed", QUICK, indirect=True)
def test_a_call_that_is_refused_does_no_harm_sampled(deed: Deed, number: int) -> None:
    total = calls_of(deed, number)
    for at in random.Random(number).sample(range(1, total + 1), min(SAMPLE, total)):
        trial(deed, number, at, lasting=at % 2 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
@pytest.mark.parametrize("deed", ALL, indirect=True)
def test_a_call_that_is_refused_does_no_harm_whichever_it_is(
    deed: Deed, number: int, lasting: bool
) -> None:
    for at in range(1, calls_of(deed, number) + 1):
        trial(deed, number, at, lasting=lasting)


SHARD = "/digits-train.tfrecord-00000-of-00002"


@pytest.mark.parametrize("deed", ["first"], indirect=True)
@pytest.mark.parametrize(
    ("folder", "message", "hint"),
    [
        (
            "build",
            "the new build could not be read back, and the old one stays: ",
            "build again when that is mended: what was made so far is gone on with",
        ),
        (
            "data/digits",
            "the gate could not judge `digits`, nothing was released: ",
            "`tfrecreg check digits` says more",
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
