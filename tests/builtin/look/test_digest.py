"""Content digests of builds, releases and files: those of the manifest, however they are stored."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from check_support import framed
from salvage_support import payloads_in

import tfrecreg
from tfrecreg.core.records.reader import HOLD_LIMIT
from tfrecreg.core.values.errors import RefusedError, UsageError


def shards_of(root: Path, split: str) -> list[Path]:
    return sorted((root / "data/digits").glob(f"digits-{split}.tfrecord-*"))


def payloads(shards: list[Path]) -> list[bytes]:
    return [each for shard in shards for each in payloads_in(shard)]


def test_builds_and_releases_have_the_digests_of_their_manifests(digits_original: Path) -> None:
    registry = tfrecreg.open(digits_original)
    manifest = registry.find("digits").manifest
    for found in tfrecreg.digest(["digits", "digits@1.0.0"], registry=registry):
        assert found.content == manifest.content
        assert [(each.split, each.records, each.content) for each in found.splits] == [
            (each.name, each.records, each.content) for each in manifest.splits
        ]


@pytest.mark.parametrize("zipped", [False, True])
def test_shards_order_and_gzip_have_no_say(
    zipped: bool, digits_original: Path, tmp_path: Path
) -> None:
    registry = tfrecreg.open(digits_original)
    manifest = registry.find("digits").manifest
    for split in ("train", "test"):
        records = payloads(shards_of(digits_original, split))
        random.Random(1).shuffle(records)
        for number, part in enumerate((records[:7], records[7:50], [], records[50:])):
            data = framed(*part)
            path = tmp_path / f"other-{split}-{number:05d}-of-00004"
            path.write_bytes(gzip.compress(data) if zipped else data)
    found = tfrecreg.digest(tmp_path)
    assert found.content == manifest.content
    assert [each.content for each in found.splits] == [each.content for each in manifest.splits]
    assert [each.shards for each in found.splits] == [4, 4]


def test_a_file_without_a_split_in_its_name_is_given_one(
    digits_original: Path, tmp_path: Path
) -> None:
    registry = tfrecreg.open(digits_original)
    _, train = registry.find("digits").manifest.splits
    path = tmp_path / "data.tfrecord"
    path.write_bytes(framed(*payloads(shards_of(digits_original, "train"))))
    unnamed = tfrecreg.digest(path)
    named = tfrecreg.digest(path, split="train")
    assert unnamed.splits[0].split == ""
    assert named.content == named.splits[0].content == train.content != unnamed.content


@pytest.mark.medium
def test_records_that_are_not_held_in_memory_count(tmp_path: Path) -> None:
    large, small = bytes(HOLD_LIMIT + 1), b"small"
    plain = tmp_path / "plain.tfrecord"
    plain.write_bytes(framed(small, large, small))
    zipped = tmp_path / "zipped.tfrecord"
    zipped.write_bytes(gzip.compress(framed(large, small, small), 1))
    one, other = tfrecreg.digest(plain, split="x"), tfrecreg.digest(zipped, split="x")
    assert one.splits[0].records == 3
    assert one.content == other.content


def test_a_missing_shard_is_refused(digits_registry: Path) -> None:
    shards_of(digits_registry, "test")[0].unlink()
    with pytest.raises(
        RefusedError, match=r"`digits-test\.tfrecord-00000-of-00002` of `digits` is missing"
    ):
        tfrecreg.digest("digits", registry=digits_registry)


def test_an_incomplete_set_of_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train-00000-of-00002").write_bytes(framed(b"one"))
    with pytest.raises(RefusedError) as caught:
        tfrecreg.digest(tmp_path)
    assert caught.value.message.startswith("1 of 2 shards of `")
    assert caught.value.message.endswith(": the digest would lack the other shards")
    found = tfrecreg.digest(tmp_path / "train-00000-of-00002")
    assert found.splits[0].records == 1


@pytest.mark.parametrize(
    ("targets", "split", "message"),
    [
        ([], None, "there is no target to digest"),
        (["nothing*"], None, "no file matches `nothing*`"),
    ],
)
def test_bad_arguments_are_refused(
    targets: list[str], split: str | None, message: str, digits_original: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        tfrecreg.digest(targets, split=split, registry=digits_original)
    assert caught.value.message.startswith(message)


def test_a_split_is_not_renamed(digits_original: Path) -> None:
    with pytest.raises(UsageError) as caught:
        tfrecreg.digest(shards_of(digits_original, "train"), split="train")
    assert caught.value.message == ("`--split train` is not needed: all file names state a split")
