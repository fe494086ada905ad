"""Shards that did not change are not read again; whatever else there is, is noticed or read."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from scan_support import ODD, Looking, Watched, files, stream
from tests_support import flip

from tfrecreg.core.check.scan.cache import ScanCache
from tfrecreg.core.check.scan.interface import Need, Shard, Target
from tfrecreg.core.check.scan.run import ScanResult, run_scan
from tfrecreg.core.check.scan.tally import JsonCodec, Tally
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.workers.local import LocalEngine

pytestmark = pytest.mark.usefixtures("light_workers")


class Keeping(Looking):
    """A validator whose parts can be kept."""

    part_codec: Any = JsonCodec(tuple[Tally, int], [ODD])

    def __init__(self, name: str = "keeping", key: str | None = "", **more: Any) -> None:
        super().__init__(name, **more)
        self.key = key

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str | None:
        return self.key if self.key is None else f"{self.key} {dict(options)}"


class Place:
    """Three shards, old enough to be remembered, and a cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "shards"
        self.folder.mkdir()
        self.cache = folder / "cache"
        self.storage = Watched(LocalStorage(self.folder))
        self.target = files(self.folder, *map(stream, (3, 4, 5)), storage=self.storage)  # type: ignore[arg-type]  # it has what is used
        for path in self.folder.iterdir():
            self.age(path)

    @property
    def first(self) -> Path:
        return self.folder / "0.tfrecord"

    @staticmethod
    def age(path: Path, seconds: float = 1e9) -> None:
        os.utime(path, (seconds, seconds))

    def scan(self, *validators: Any, reuse: bool = True, **more: Any) -> ScanResult:
        """Scan with the cache; what was opened is in `storage.opened`."""
        self.storage.opened.clear()
        cache = ScanCache(LocalStorage(self.cache), "checks", reuse=reuse)
        engine = LocalEngine(more.pop("jobs", 1))
        target = more.pop("target", self.target)
        result = run_scan(target, validators or (Keeping(),), engine, cache=cache, **more)
        self.problem = cache.problem
        return result

    @property
    def read(self) -> list[str]:
        return self.storage.opened


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


ALL = ["0.tfrecord", "1.tfrecord", "2.tfrecord"]


def test_what_did_not_change_is_not_read_again_and_gives_the_same(place: Place) -> None:
    fresh = run_scan(place.target, [Keeping()], LocalEngine(1))
    first = place.scan()
    assert (place.read, first.cached) == (ALL, 0)
    again = place.scan()
    assert (place.read, again.cached) == ([], 3)
    for result in (first, again):
        result.cached = 0
        assert result == fresh
    assert fresh.records == 12
    assert fresh.findings[0].count == 5


def test_a_shard_that_changed_is_read_and_the_others_are_not(place: Place) -> None:
    place.scan()
    place.first.write_bytes(stream(8))
    place.age(place.first)
    result = place.scan()
    assert (place.read, result.cached, result.records) == (["0.tfrecord"], 2, 17)
    assert place.scan().cached == 3


@pytest.mark.parametrize("how", ["size", "time", "inode"])
def test_size_time_and_inode_tell_a_change(place: Place, how: str) -> None:
    place.scan()
    data = place.first.read_bytes()
    if how == "size":
        place.first.write_bytes(data + stream(1))
        place.age(place.first)
    elif how == "time":
        place.age(place.first, 1e9 + 1e-6)
    else:
        other = place.first.with_name("other")
        other.write_bytes(data)
        place.age(other)
        other.rename(place.first)
    assert place.scan().cached == 2
    assert place.read == ["0.tfrecord"]


def damage(path: Path) -> None:
    """A disk that decays: the same inode, size and time."""
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_full_scan_has_the_last_word(place: Place) -> None:
    """Damage that leaves the time alone goes unnoticed until then, as documented."""
    both = Keeping("one"), Keeping("other")
    place.scan(*both)
    damage(place.first)
    assert place.scan(*both).records == 12
    assert place.scan(Keeping("one"), reuse=False).records == 11
    assert place.read == ALL
    again = place.scan(*both)
    assert (place.read, again.cached, again.records) == (ALL, 0, 11)


@pytest.mark.parametrize(
    ("change", "cached"),
    [
        ({}, 3),
        ({"key": "another schema"}, 0),
        ({"options": {"keeping": {"limit": 2}}}, 0),
        ({"split": "test"}, 0),
        ({"name": "other"}, 0),
        ({"declared": "none"}, 0),
        ({"version": "99.0"}, 0),
    ],
)
def test_parts_are_reused_only_where_all_is_the_same(
    place: Place, change: dict[str, Any], cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.scan()
    if "version" in change:
        monkeypatch.setattr("tfrecreg.core.check.scan.cache.__version__", change.pop("version"))
    key = change.pop("key", "")
    options = change.pop("options", None)
    shards = [replace(shard, **change) for shard in place.target.shards]
    target = replace(place.target, shards=shards)
    result = place.scan(Keeping(key=key), options=options, target=target)
    assert result.cached == cached


def test_digests_are_read_where_they_were_not_asked_for_before(place: Place) -> None:
    place.scan()
    digesting = Keeping("keeping", needs=Need.DIGESTS)
    assert place.scan(digesting).cached == 0
    assert place.scan(digesting).cached == 3
    assert place.scan(Keeping()).cached == 3


def test_a_file_that_is_too_young_is_not_remembered(place: Place) -> None:
    place.first.touch()
    place.scan()
    assert place.scan().cached == 2
    assert place.read == ["0.tfrecord"]
    place.age(place.first, 4e9)  # a clock that is ahead
    place.scan()
    assert place.scan().cached == 2


def test_a_file_that_changes_while_it_is_read_is_not_remembered(place: Place) -> None:
    def touch(shard: Shard, end: Any) -> None:
        # Called when the first shard is done, before the second is: with one job, in order.
        if shard.name == "0.tfrecord":
            place.age(place.folder / "1.tfrecord", 5e8)

    place.scan(seen=touch)
    assert place.scan().cached == 2
    assert place.read == ["1.tfrecord"]


def test_a_validator_that_crashes_on_a_shard_is_not_remembered_there(place: Place) -> None:
    damaged = bytearray((place.folder / "1.tfrecord").read_bytes())
    damaged[20] ^= 1
    (place.folder / "1.tfrecord").write_bytes(damaged)
    place.age(place.folder / "1.tfrecord")
    crashing = Keeping("crashing", wrong="fault")
    for _ in range(2):
        result = place.scan(crashing, Keeping())
        assert [crash.shard for crash in result.crashes] == ["1.tfrecord"]
    assert result.cached == 2


@pytest.mark.parametrize("wrong", ["flip", "cut", "empty", "pickle", "other format", "folder"])
def test_an_entry_that_cannot_be_believed_costs_only_the_reading(place: Place, wrong: str) -> None:
    fresh = place.scan()
    for entry in place.cache.rglob("*.json"):
        if wrong == "flip":
            flip(entry, entry.stat().st_size // 2)
        elif wrong == "cut":
            entry.write_bytes(entry.read_bytes()[:-9])
        elif wrong == "empty":
            entry.write_bytes(b"")
        elif wrong == "pickle":
            entry.write_bytes(pickle.dumps(Bomb(place.folder / "exploded")))
        elif wrong == "folder":
            entry.unlink()
            entry.mkdir()
        else:
            text = entry.read_bytes().partition(b"\n")[2].replace(b'"stamp":', b'"state":')
            entry.write_bytes(blake3(text).hexdigest().encode() + b"\n" + text)
    result = place.scan()
    assert (result.cached, result.findings) == (0, fresh.findings)
    assert not (place.folder / "exploded").exists()
    assert bool(place.problem) == (wrong == "folder")
    if wrong != "folder":
        assert place.scan().cached == 3


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)
