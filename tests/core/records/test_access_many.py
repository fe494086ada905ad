"""Many records by number in one call: each as if it were read alone."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

import pytest
from check_support import PAYLOADS, STREAM, blocks, framed, members
from tests_support import flip

from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.values.errors import DamagedRecordError, NoSuchRecordError


@pytest.mark.parametrize("form", ["plain", "members", "blocks"])
def test_many_records_are_read_as_each_alone(tmp_path: Path, form: str) -> None:
    make = {"plain": lambda: STREAM, "members": lambda: members(PAYLOADS), "blocks": None}[form]
    path = tmp_path / "x.tfrecord"
    path.write_bytes(make() if make is not None else blocks(STREAM))
    records = Records(path)
    wanted = random.Random(1).choices(range(-60, 60), k=200)
    assert records.read_each(wanted) == [PAYLOADS[each] for each in wanted]
    assert records[10:50:3].read_each([0, -1, 5]) == [PAYLOADS[at] for at in (10, 49, 25)]
    assert records.read_each([]) == []
    with pytest.raises(NoSuchRecordError):
        records.read_each([0, 60])


def test_damaged_ones_among_many_are_errors_in_their_place(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(STREAM)
    places = Records(path).offsets
    flip(path, int(places[20]) + 13)
    flip(path, int(places[30]) + 3)
    found = Records(path).read_each(range(60))
    wrong = {at: each for at, each in enumerate(found) if isinstance(each, DamagedRecordError)}
    assert sorted(wrong) == [20, 30]
    assert [each for at, each in enumerate(found) if at not in wrong] == [
        each for at, each in enumerate(PAYLOADS) if at not in wrong
    ]
    for at, error in wrong.items():
        with pytest.raises(DamagedRecordError) as caught:
            Records(path)[at]
        assert error.message == caught.value.message


@pytest.mark.parametrize("scanner", ["native", "python"])
def test_a_run_of_records_is_scanned_and_damage_in_it_found(
    tmp_path: Path, scanner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every byte of a stretch of records, flipped: the record that it is in, and no other."""
    from tfrecreg.core.records.reading import access
    from tfrecreg.core.records.scanner import scanner_kind

    if scanner == "native" and scanner_kind() != "native":
        pytest.skip("the scanner is not compiled")
    monkeypatch.setenv("TFRECREG_SCANNER", scanner)
    monkeypatch.setattr(access, "_SCANNERS", threading.local())
    path = tmp_path / "x.tfrecord"
    path.write_bytes(STREAM)
    records = Records(path)
    starts = records.offsets.tolist()
    stat = path.stat()
    for at in range(starts[10], starts[13]):
        flip(path, at, 0x01)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        records.close()
        found = records.read_each(range(5, 25))
        record = next(number for number in (12, 11, 10) if at >= starts[number])
        wrong = [5 + each for each, what in enumerate(found) if not isinstance(what, bytes)]
        assert wrong == [record]
        flip(path, at, 0x01)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize(
    ("at", "number", "code"),
    [(3, 2, "CRC001"), (8, 2, "CRC001"), (700, 2, "CRC002"), (-2, 1, "CRC002")],
)
def test_damage_in_a_large_record_is_found_alone_and_among_many(
    tmp_path: Path, at: int, number: int, code: str
) -> None:
    payloads = [bytes([number]) * (40_000 + number) for number in range(5)]
    path = tmp_path / "shard"
    path.write_bytes(b"".join(map(framed, payloads)))
    with Records(path) as records:
        assert records.read_each([4, 2, 0]) == [payloads[each] for each in (4, 2, 0)]
        place = int(records.offsets[2]) + at
        with path.open("r+b") as file:  # the file that is open, not another in its place
            file.seek(place)
            file.write(bytes([path.read_bytes()[place] ^ 1]))
        found = records.read_each(range(5))
        with pytest.raises(DamagedRecordError) as caught:
            records[number]
    assert [each for each in found if isinstance(each, bytes)] == [
        payload for other, payload in enumerate(payloads) if other != number
    ]
    assert str(found[number]) == str(caught.value)
    assert f"is damaged: {code}" in caught.value.message
