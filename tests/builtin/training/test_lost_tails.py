"""What follows the last sound record of a file is nothing, or an error: never one record less."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from check_support import framed

import tfrecreg
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.values.errors import DamagedRecordError, RefusedError

from .conftest import Write, payload

RECORDS = 60
PAYLOADS = [payload(number) for number in range(RECORDS)]
STREAM = framed(*PAYLOADS)
LAST = len(STREAM) - len(framed(PAYLOADS[-1]))
"""Where the last record begins."""
HALF = len(framed(*PAYLOADS[:30]))
MEMBERS = gzip.compress(STREAM[:HALF], mtime=0), gzip.compress(STREAM[HALF:], mtime=0)


def destroyed(data: bytes, start: int, stop: int) -> bytes:
    return data[:start] + random.Random(1).randbytes(stop - start) + data[stop:]


TAILS: dict[str, tuple[bytes, int]] = {
    "last record destroyed": (destroyed(STREAM, LAST, len(STREAM)), 59),
    "last record zeroed": (STREAM[:LAST] + bytes(len(STREAM) - LAST), 59),
    "last two records destroyed": (
        destroyed(STREAM, len(framed(*PAYLOADS[:58])), len(STREAM)),
        58,
    ),
    "cut in the last header": (STREAM[: LAST + 5], 59),
    "cut behind the last length": (STREAM[: LAST + 8], 59),
    "cut in the last payload": (STREAM[:-9], 59),
    "a byte more": (STREAM + b"\0", 60),
    "bytes more": (STREAM + bytes(100), 60),
    "gzip of a destroyed record": (
        gzip.compress(destroyed(STREAM, LAST, len(STREAM)), mtime=0),
        59,
    ),
    "gzip of a cut header": (gzip.compress(STREAM[: LAST + 5], mtime=0), 59),
    "gzip with zeros behind": (b"".join(MEMBERS) + bytes(1000), 60),
    "gzip with other bytes behind": (b"".join(MEMBERS) + b"tail of another file", 60),
    "last member zeroed": (MEMBERS[0] + bytes(len(MEMBERS[1])), 30),
    "last member destroyed": (
        MEMBERS[0] + destroyed(MEMBERS[1], 0, len(MEMBERS[1])),
        30,
    ),
    "cut in the header of the last member": (MEMBERS[0] + MEMBERS[1][:7], 30),
    "cut in the trailer of a member": (MEMBERS[0][:-3], 30),
    "member between others destroyed": (
        MEMBERS[0] + destroyed(MEMBERS[1], 0, len(MEMBERS[1])) + MEMBERS[0],
        60,
    ),
}


@pytest.fixture(params=TAILS)
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, int]:
    """A damaged file that is old enough for its offsets to be kept, and its sound records."""
    data, sound = TAILS[request.param]
    path = tmp_path / "x.tfrecord"
    path.write_bytes(data)
    os.utime(path, (1e9, 1e9))
    return path, sound


def read(source: Any) -> tuple[list[bytes], list[str]]:
    """The payloads of single reads, and the messages of those that fail."""
    found, errors = [], []
    for number in range(len(source)):
        try:
            found.append(source[number])
        except DamagedRecordError as error:
            errors.append(error.message)
    return found, errors


def open_records(path: Path) -> Any:
    return Records(path)


def open_source(path: Path) -> Any:
    return tfrecreg.data_source(path, raw=True)


@pytest.mark.parametrize("opened", [open_records, open_source])
def test_damage_behind_the_last_record_is_an_error(
    damaged: tuple[Path, int], opened: Callable[[Path], Any]
) -> None:
    path, sound = damaged
    for _ in range(2):  # the second time by what was kept, if anything was
        source = opened(path)
        found, errors = read(source)
        assert len(found) == sound
        assert set(found) <= set(PAYLOADS)
        assert len(errors) == len(source) - sound >= 1
        assert all("x.tfrecord`, at byte " in each and " is damaged: " in each for each in errors)
        with pytest.raises(DamagedRecordError):
            list(source)


def test_it_is_a_record_that_may_be_skipped(damaged: tuple[Path, int]) -> None:
    path, sound = damaged
    source = tfrecreg.data_source(path, raw=True, damaged="skip", max_damaged=9)
    assert len(list(source)) == sound
    assert len(source.skipped) == len(source) - sound >= 1
    none = tfrecreg.data_source(path, raw=True, damaged="skip", max_damaged=0)
    with pytest.raises(RefusedError, match="were left out, but `max_damaged` allows 0"):
        list(none)


def test_no_certificate_calls_it_complete(damaged: tuple[Path, int]) -> None:
    path, _ = damaged
    source = tfrecreg.data_source(path, raw=True, damaged="skip", max_damaged=9)
    certificate = source.certificate()
    certificate.add_payloads(source)
    with pytest.raises(DamagedRecordError):
        source.report(certificate)


def test_its_message_says_what_is_there(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(STREAM[: LAST + 5])
    records = Records(path)
    assert records.damaged == (59,)
    with pytest.raises(DamagedRecordError) as caught:
        records[59]
    assert caught.value.message == (
        f"`{path}`, at byte {LAST}, is damaged: CRC004: 5 bytes are left, but a record takes at "
        f"least 16: 0x{STREAM[LAST : LAST + 5].hex()}"
    )
    assert caught.value.hint == f"tfrecreg check {path}"
    assert caught.value.exit_code == 1


def test_damage_of_no_known_record_comes_behind_all_others(tmp_path: Path) -> None:
    """So that records have the numbers that `check` tells."""
    path = tmp_path / "x.tfrecord"
    path.write_bytes(TAILS["member between others destroyed"][0])
    records = Records(path)
    assert records.damaged == (60,)
    assert list(records[:60]) == PAYLOADS[:30] * 2
    with pytest.raises(DamagedRecordError) as caught:
        records[60]
    assert caught.value.message.startswith(
        f"`{path}`, at byte {HALF}, is damaged: CRC007: gzip member at byte {len(MEMBERS[0])}"
    )
