"""What publishing proves of the shards of parts, in one reading of each."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from receipts_support import reseal, write_bytes, write_shard
from tests_support import flip, tree

from tfrecreg.errors import FailureError, RefusedError, StorageError
from tfrecreg.operations.builds.data import build
from tfrecreg.operations.demo.digits import write_digits
from tfrecreg.records.access import Records
from tfrecreg.records.framing import OVERHEAD
from tfrecreg.records.stream import SNIFF_BYTES
from tfrecreg.registry.registry import open_registry
from tfrecreg.shards import ShardPolicy
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.reader import LocalReader


def name_of(site, number: int = 0) -> str:
    (name,) = (
        path.name for path in (site.plan / "build").glob(f"digits-train.tfrecord-{number:05d}-*")
    )
    return name


def refusal(site, **more: Any) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        site.collect(**more)
    assert not (site.data / "digits").exists()
    return caught.value


@pytest.fixture(params=["none", "gzip"])
def many(site, request: pytest.FixtureRequest):
    """A plan of one shard a split, with records enough to be read as columns."""
    shutil.rmtree(site.raw)
    shutil.rmtree(site.plan)
    write_digits(LocalStorage(site.raw), train=90, test=40, seed=2)
    site.write_plan(policy=ShardPolicy(shards=1), compression=request.param)
    site.part(1, 1)
    return site


def test_each_shard_is_opened_and_read_once(made, monkeypatch) -> None:
    opened: Counter[str] = Counter()
    read: Counter[str] = Counter()
    original_open, original_read = LocalStorage.open, LocalReader.read_at

    def counted_open(self: LocalStorage, path: str) -> LocalReader:
        opened[path.rpartition("/")[2]] += 1
        return original_open(self, path)

    def counted_read(self: LocalReader, start: int, length: int) -> bytes:
        data = original_read(self, start, length)
        read[Path(self._path).name] += len(data)
        return data

    monkeypatch.setattr(LocalStorage, "open", counted_open)
    monkeypatch.setattr(LocalReader, "read_at", counted_read)
    made.collect(parts_only=True)
    shards = [*(made.data / "digits").glob("*-of-00003")]
    assert {path.name: opened[path.name] for path in shards} == {path.name: 1 for path in shards}
    for path in shards:
        size = path.stat().st_size
        # Its first bytes are looked at for the compression.
        assert read[path.name] <= size + min(size, SNIFF_BYTES)


def test_many_records_are_proven_as_columns(many) -> None:
    many.collect(parts_only=True)
    whole = many.folder / "whole"
    compression = json.loads((many.data / "digits/manifest.json").read_bytes())["compression"]
    build(
        open_registry(whole),
        many.request(policy=ShardPolicy(shards=1), compression=compression, base="none"),
    )
    assert tree(many.data) == tree(whole / "data")


@pytest.mark.parametrize("feature", ["image/encoded", "image/class/label"])
def test_other_sizes_of_features_among_many_records(many, feature: str) -> None:
    def lie(plain: Any) -> None:
        plain["features"][feature] += 1

    reseal(many.plan, name_of(many), lie)
    assert "other sizes of features than its records have" in refusal(many).message


def test_a_record_that_is_no_example(made) -> None:
    name = name_of(made)
    payloads = [b"\xff%d" % number for number in range(10)]
    write_shard(made.plan, name, payloads)
    assert "its record 0 is not an Example" in refusal(made).message


def test_damage_with_a_receipt_of_the_damaged_bytes(made) -> None:
    name = name_of(made)
    data = bytearray((made.plan / "build" / name).read_bytes())
    data[100] ^= 1
    write_bytes(made.plan, name, bytes(data))
    assert "it is damaged: CRC002 at byte 0" in refusal(made).message


def test_a_record_too_many(made) -> None:
    name = name_of(made)
    data = (made.plan / "build" / name).read_bytes()
    first = int.from_bytes(data[:8], "little") + OVERHEAD
    write_bytes(made.plan, name, data + data[:first])
    assert re.search(r"says 10 records of [0-9,]+ bytes, found 11 of", refusal(made).message)


def test_a_record_too_few(made) -> None:
    name = name_of(made)
    path = made.plan / "build" / name
    with Records(str(path)) as records:
        last = int(records.offsets[-1])
    write_bytes(made.plan, name, path.read_bytes()[:last])
    assert re.search(r"says 10 records of [0-9,]+ bytes, found 9 of", refusal(made).message)


def test_bytes_that_differ_are_refused_although_the_receipt_is_made_again(site) -> None:
    """The receipt is that of an honest part, and the bytes beside it are not."""
    site.part(1, 1)
    flip(site.plan / "build" / name_of(site), 100)
    refused = refusal(site, verify="100%")
    assert "its bytes are not those of its receipt" in refused.message


def test_the_hint_names_the_command_of_the_part(site) -> None:
    site.part(2, 2)
    site.part(1, 2)
    name = name_of(site)
    made_by = json.loads((site.plan / "receipts" / f"{name}.json").read_bytes())["made"]["part"]
    flip(site.plan / "build" / name, 100)
    refused = refusal(site)
    assert refused.hint == (
        f"find out how it was made; without `receipts/{name}.json` it is made again: "
        f"`tfrecreg parts build {site.plan} --part {made_by}`"
    )
    (site.plan / "receipts" / f"{name}.json").unlink()
    number, of = map(int, made_by.split("/"))
    assert site.part(number, of).finished_before == 2
    site.collect(parts_only=True)
    assert tree(site.data) == tree(site.folder / "whole/data")


def test_a_shard_that_cannot_be_read_is_a_failure(made, monkeypatch) -> None:
    name = name_of(made)
    original = LocalReader.read_at

    def broken(self: LocalReader, start: int, length: int) -> bytes:
        if Path(self._path).name == name:
            raise StorageError(f"`{name}` cannot be read: Input/output error", hint="a disk")
        return original(self, start, length)

    monkeypatch.setattr(LocalReader, "read_at", broken)
    with pytest.raises(FailureError, match="Input/output error"):
        made.collect(parts_only=True)
    assert not (made.data / "digits").exists()
