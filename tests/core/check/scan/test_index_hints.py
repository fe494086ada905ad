"""What an index adds after damage: exact numbers, and nothing is read while all is well."""

from __future__ import annotations

from pathlib import Path

import pytest
from scan_support import Counting, Looking, framed, payload, shard, target

from tfrecreg.builtin.validators.crc import CrcValidator
from tfrecreg.core.check.scan.indexes import IndexHints
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.check.scan.run import run_scan
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.workers.local import LocalEngine

COUNT, BEFORE, LOST = 40, 10, 5


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with a shard of forty records and its index."""
    with ShardWriter(LocalStorage(tmp_path), "shard", index_path="index") as writer:
        for number in range(COUNT):
            writer.write(payload(number), digest=bytes(16), key=f"key {number}")
    return tmp_path


def overwrite(folder: Path) -> None:
    """Zeros over five whole records: by its bytes alone nobody can tell how many these were."""
    size = len(framed(payload(0)))
    data = bytearray((folder / "shard").read_bytes())
    data[BEFORE * size : (BEFORE + LOST) * size] = bytes(LOST * size)
    (folder / "shard").write_bytes(bytes(data))


def looked_at(found: Shard) -> tuple[list[Finding], list[int | None]]:
    """What `crc` says, and the odd numbers that a validator was told."""
    result = run_scan(target(found), [CrcValidator(), Looking()], LocalEngine(1))
    assert result.complete
    crc = [each for each in result.findings if each.code.startswith("CRC")]
    (odd,) = [each for each in result.findings if each.code == "ODD001"]
    return crc, [each.record for each in odd.locations]


def test_an_intact_shard_is_scanned_without_its_index(written: Path) -> None:
    storage = Counting(LocalStorage(written))
    looked_at(shard(storage, "shard", index="index"))
    assert storage.opened == ["shard"]


def test_with_an_index_the_numbers_behind_damage_are_exact(written: Path) -> None:
    overwrite(written)
    storage = LocalStorage(written)
    crc, odd = looked_at(shard(storage, "shard", index="index"))
    assert sum(each.count for each in crc) == LOST
    assert {each.record for finding in crc for each in finding.locations} == set(
        range(BEFORE, BEFORE + LOST)
    )
    intact = [*range(BEFORE), *range(BEFORE + LOST, COUNT)]
    assert odd == [number for number in intact if number % 2][:20]
    crc, odd = looked_at(shard(storage, "shard"))
    assert sum(each.count for each in crc) == 1  # one stretch, of nobody knows how many records
    assert odd[:5] == [1, 3, 5, 7, 9]


@pytest.mark.parametrize("damage", ["missing", "changed", "of another shard"])
def test_a_bad_index_does_no_harm(written: Path, damage: str) -> None:
    overwrite(written)
    storage = LocalStorage(written)
    without = looked_at(shard(storage, "shard"))
    if damage == "missing":
        (written / "index").unlink()
    elif damage == "changed":
        (written / "index").write_bytes((written / "index").read_bytes()[:-1])
    else:
        with ShardWriter(storage, "other", index_path="index2") as writer:
            for number in range(COUNT):
                writer.write(payload(number, 35 + 5 * number), digest=bytes(16), key="")
        (written / "index2").replace(written / "index")
    assert looked_at(shard(storage, "shard", index="index")) == without


def test_hints_are_read_once_and_when_they_are_asked_for(written: Path) -> None:
    storage = Counting(LocalStorage(written))
    hints = IndexHints(shard(storage, "shard", index="index"))
    assert storage.opened == []
    size = len(framed(payload(0)))
    assert [int(each) for each in hints.offsets] == [number * size for number in range(COUNT)]
    assert list(hints.members) == []
    assert len(hints.offsets) == COUNT
    assert storage.opened == ["index"]


def test_gzip_members_are_hints_as_well(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    with ShardWriter(storage, "shard", compression="gzip", index_path="index") as writer:
        for number in range(3):
            writer.write(payload(number, 1 << 20), digest=bytes(16), key="")
    hints = IndexHints(shard(storage, "shard", index="index"))
    assert hints.members[0] == (0, 0)
    assert len(hints.members) == 3


def test_without_an_index_there_are_no_hints(tmp_path: Path) -> None:
    hints = IndexHints(shard(LocalStorage(tmp_path), "shard"))
    assert list(hints.offsets) == list(hints.members) == []
