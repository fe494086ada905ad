"""The keys of the records that findings name."""

from __future__ import annotations

from pathlib import Path

import pytest
from scan_support import Counting, finding, shard
from tests_support import flip

from tfrecreg.core.check.findings import with_keys
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.findings import Location


@pytest.fixture
def storage(tmp_path: Path) -> Counting:
    """Three shards, `a`, `b` and `c`, with indexes: ``a 0``, ``a 1`` …"""
    inner = LocalStorage(tmp_path)
    for name in "abc":
        with ShardWriter(inner, name, index_path=f"{name}.index") as writer:
            for number in range(3):
                writer.write(b"x", digest=bytes(16), key=f"{name} {number}")
    return Counting(inner)


def keys(storage: Counting, *locations: Location, indexed: str = "abc") -> list[str | None]:
    shards = [
        shard(storage, name, index=f"{name}.index" if name in indexed else None) for name in "abc"
    ]
    (found,) = with_keys([finding(locations=locations)], shards)
    return [each.key for each in found.locations]


def at(name: str | None, record: int | None, **more: str) -> Location:
    return Location(shard=name, record=record, **more)


def test_a_record_gets_its_key(storage: Counting) -> None:
    assert keys(storage, at("a", 0), at("c", 2), at("a", 2)) == ["a 0", "c 2", "a 2"]
    # Only the indexes that are needed are read, and each once.
    assert storage.opened == ["a.index", "c.index"]


def test_what_has_no_record_or_has_its_key_stays_as_it_is(storage: Counting) -> None:
    places = (at("a", None), at(None, 1), at(None, None), at("b", 1, key="its own"))
    assert keys(storage, *places) == [None, None, None, "its own"]
    assert storage.opened == []


def test_records_beyond_the_index_and_shards_beyond_the_target_have_none(
    storage: Counting,
) -> None:
    assert keys(storage, at("a", 3), at("a", -1), at("d", 0)) == [None, None, None]


def test_shards_without_an_index_have_none(storage: Counting) -> None:
    assert keys(storage, at("a", 0), at("b", 0), indexed="b") == [None, "b 0"]


@pytest.mark.parametrize("damage", ["flip", "remove"])
def test_a_damaged_index_costs_only_its_own_keys(storage: Counting, damage: str) -> None:
    path = Path(storage.inner.root) / "a.index"
    if damage == "flip":
        flip(path, 50)
    else:
        path.unlink()
    assert keys(storage, at("a", 0), at("b", 0)) == [None, "b 0"]


def test_nothing_else_of_a_finding_changes(storage: Counting) -> None:
    before = finding(locations=(at("a", 0),), count=7, message="as it was")
    (after,) = with_keys([before], [shard(storage, "a", index="a.index")])
    assert (after.count, after.message, after.code) == (7, "as it was", before.code)
    assert with_keys([], []) == []
