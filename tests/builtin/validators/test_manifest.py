"""Files that are missing, changed, swapped or strange: held against the manifest or their names."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
from check_support import Digits, Document, document, framed, places
from tests_support import flip

from tfrecreg.cli.main import main
from tfrecreg.core.values.config import FailOn


def codes(found: Document) -> list[str]:
    return sorted(each["code"] for each in found["findings"])


def one(found: Document, code: str) -> Document:
    """The only finding of that code."""
    (finding,) = (each for each in found["findings"] if each["code"] == code)
    return finding


READS = "reads without an error"


def shown(finding: Document) -> list[str]:
    return [each["shard"] for each in finding["locations"]]


def cut_last_record(path: Path) -> None:
    """Shorten a shard by exactly one record: every checksum that is left holds."""
    data = path.read_bytes()
    path.write_bytes(data[: places(data)[-1][0]])


def exchange(first: Path, second: Path) -> None:
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)


def test_a_sound_build_and_release_are_no_news(digits: Digits) -> None:
    for target in ("digits", "digits@1.0.0"):
        found = digits.check("manifest", target=target)
        assert (found["status"], found["findings"]) == ("pass", [])
        assert found["validators"] == ["manifest"]


class TestSHD001:
    @pytest.mark.parametrize("split", ["train", "test"])
    def test_a_shard_that_the_manifest_lists_is_missing(self, digits: Digits, split: str) -> None:
        shard = digits.path(split, 1)
        shard.unlink()
        found = digits.check("manifest")
        assert (found["status"], codes(found)) == ("fail", ["SHD001"])
        finding = one(found, "SHD001")
        assert finding["message"] == "the manifest lists it, but it does not exist"
        assert finding["fingerprint"] == f"SHD001:digits:::{shard.name}"
        assert shown(finding) == [shard.name]
        assert finding["locations"][0]["tensorflow"] == READS
        assert found["summary"]["shards"] == 3
        named = document([digits.path(split, 0)], only=("manifest",))
        assert one(named, "SHD001")["locations"] == finding["locations"]
        assert named["measures"]["manifest.unnamed"] == 2

    @pytest.mark.parametrize(
        "name",
        [
            "labels.json",
            "ledger.jsonl",
            "index/digits-train.tfrecord-00000-of-00002.index",
        ],
    )
    def test_another_file_that_the_manifest_lists_is_missing(
        self, digits: Digits, name: str
    ) -> None:
        (digits.folder / name).unlink()
        found = digits.check("manifest")
        assert codes(found) == ["SHD001"]
        assert shown(one(found, "SHD001")) == [name]

    def test_each_missing_file_has_its_finding(self, digits: Digits) -> None:
        shutil.rmtree(digits.folder / "index")
        found = digits.check("manifest")
        assert codes(found) == ["SHD001"] * 4
        assert len({each["fingerprint"] for each in found["findings"]}) == 4

    def test_all_shards_are_missing(self, digits: Digits) -> None:
        for path in digits.folder.glob("digits-*"):
            path.unlink()
        found = digits.check("crc", "manifest", "schema", "inflation")
        assert codes(found) == ["SHD001"] * 4
        assert found["status"] == "fail"

    def test_a_bare_set_says_how_many_there_should_be(self, tmp_path: Path) -> None:
        for number in (0, 3, 4):
            (tmp_path / f"x-{number:05d}-of-00006.tfrecord").write_bytes(framed(b"a"))
        found = document([tmp_path], only=("manifest",))
        assert (found["status"], codes(found)) == ("fail", ["SHD001"])
        finding = one(found, "SHD001")
        assert finding["message"] == f"3 of 6 shards of `{tmp_path}/x.tfrecord` are present"
        assert finding["fingerprint"] == f"SHD001::::{tmp_path}/x.tfrecord"
        assert finding["count"] == 3
        assert finding["locations"] == [
            {
                "shard": f"{tmp_path}/x-{number:05d}-of-00006.tfrecord",
                "detail": f"shard number {number} of 6 is missing",
                "tensorflow": READS,
            }
            for number in (1, 2, 5)
        ]

    def test_of_many_missing_the_first_are_named(self, tmp_path: Path) -> None:
        (tmp_path / "y-1-of-2-00001-of-900000000").write_bytes(framed(b"a"))
        found = document([tmp_path], only=("manifest",))
        finding = one(found, "SHD001")
        assert finding["count"] == 899_999_999
        assert shown(finding) == [
            f"{tmp_path}/y-1-of-2-{number:05d}-of-900000000" for number in (0, *range(2, 21))
        ]

    def test_sets_are_counted_folder_by_folder(self, tmp_path: Path) -> None:
        for folder, number in (("a", 0), ("b", 1)):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / f"x-{number:05d}-of-00002").write_bytes(framed(b"a"))
        found = document([tmp_path], only=("manifest",))
        assert codes(found) == ["SHD001", "SHD001"]

    def test_a_whole_bare_set_is_no_news(self, digits: Digits) -> None:
        found = document([f"{digits.folder}/digits-*"], only=("manifest",))
        assert (found["status"], found["findings"]) == ("pass", [])


class TestSHD002:
    def test_another_valid_file_in_the_place_of_a_shard(self, digits: Digits) -> None:
        shard = digits.path("train", 0)
        before = shard.read_bytes()
        payloads = [before[at + 12 : at + 12 + size] for at, size in places(before)]
        shard.write_bytes(framed(*reversed(payloads)))
        found = digits.check("crc", "manifest", "schema")
        assert (found["status"], codes(found)) == ("fail", ["SHD002"])
        finding = one(found, "SHD002")
        assert finding["rule"] == "digest-differs"
        assert f"expected {len(before)} bytes, blake3 " in finding["message"]
        assert f"found {len(before)} bytes, blake3 " in finding["message"]
        assert finding["fingerprint"] == f"SHD002:digits:train::{shard.name}"
        place = {"split": "train", "shard": shard.name, "tensorflow": READS}
        assert finding["locations"] == [place]

    def test_alone_it_says_what_tensorflow_does_at_the_first_damage(self, digits: Digits) -> None:
        flip(digits.path("train", 0), 30)
        shard = digits.path("train", 1)
        shard.write_bytes(shard.read_bytes() + b"rest")
        found = digits.check("manifest")
        assert [each["locations"][0]["tensorflow"] for each in found["findings"]] == [
            "stops here",
            READS,
        ]

    def test_a_shard_that_was_packed_again(self, digits: Digits) -> None:
        """The compression is a CRC finding, which says it better."""
        shard = digits.path("train", 0)
        shard.write_bytes(gzip.compress(shard.read_bytes()))
        assert codes(digits.check("crc", "manifest")) == ["CRC006"]

    @pytest.mark.parametrize(
        "name", ["labels.json", "ledger.jsonl", "index/digits-test.tfrecord-00000-of-00002.index"]
    )
    def test_a_listed_file_was_changed(self, digits: Digits, name: str) -> None:
        file = digits.folder / name
        size = file.stat().st_size
        file.write_bytes(file.read_bytes() + b"\n")
        found = digits.check("manifest")
        assert codes(found) == ["SHD002"]
        finding = one(found, "SHD002")
        assert finding["fingerprint"] == f"SHD002:digits:::{name}"
        assert shown(finding) == [name]
        assert finding["message"].startswith(f"expected {size} bytes, blake3 ")
        assert f"found {size + 1} bytes, blake3 " in finding["message"]

    def test_the_manifest_beside_the_bytes_of_a_release_is_another(self, digits: Digits) -> None:
        """The build is gone, so the release is in `versions/`, with its manifest."""
        kept = digits.root / "versions/digits/1.0.0"
        shutil.rmtree(digits.folder)
        assert digits.check("manifest", target="digits@1.0.0")["findings"] == []
        path = kept / "manifest.json"
        manifest = json.loads(path.read_bytes())
        manifest["ledger"]["train"]["items"] += 1
        path.unlink()
        path.write_text(json.dumps(manifest))
        found = digits.check("manifest", target="digits@1.0.0")
        assert codes(found) == ["SHD002"]
        finding = one(found, "SHD002")
        assert finding["message"] == (
            "the manifest in the folder of the shards differs from the released manifest"
        )
        assert finding["fingerprint"] == "SHD002:digits:::manifest.json"
        assert shown(finding) == ["manifest.json"]
        assert "expected digest " in finding["locations"][0]["detail"]

    def test_a_damaged_manifest_of_a_build_does_not_hide_the_release(self, digits: Digits) -> None:
        shutil.rmtree(digits.root / "versions")
        flip(digits.folder / "manifest.json", 200)
        found = digits.check("manifest", target="digits@1.0.0")
        assert codes(found) == ["SHD002"]
        assert shown(one(found, "SHD002")) == ["manifest.json"]

    def test_where_a_checksum_names_the_damage_it_is_not_said_again(self, digits: Digits) -> None:
        flip(digits.path("train", 0), 30)
        assert codes(digits.check("crc", "manifest")) == ["CRC002"]


class TestSHD003:
    def test_a_shard_that_was_cut_between_two_records(self, digits: Digits) -> None:
        """Beyond every reader of the bare file: all checksums that are left hold."""
        shard = digits.path("train", 1)
        size = shard.stat().st_size
        cut_last_record(shard)
        assert document([shard], only=("crc",))["findings"] == []
        found = digits.check("crc", "manifest", "schema")
        assert (found["status"], codes(found)) == ("fail", ["SHD002", "SHD003"])
        finding = one(found, "SHD003")
        assert finding["message"] == "expected 100 records, found 99"
        assert finding["fingerprint"] == f"SHD003:digits:train::{shard.name}"
        (at,) = finding["locations"]
        assert (at["split"], at["shard"]) == ("train", shard.name)
        assert at["detail"] == f"expected {size} bytes, found {shard.stat().st_size}"

    def test_a_shard_that_was_emptied(self, digits: Digits) -> None:
        digits.path("test", 0).write_bytes(b"")
        found = digits.check("crc", "manifest")
        assert codes(found) == ["SHD002", "SHD003", "SHD007"]
        empty = one(found, "SHD007")
        assert empty["fingerprint"] == f"SHD007:digits:test::{digits.path('test', 0).name}"
        place = {"split": "test", "shard": digits.path("test", 0).name, "tensorflow": READS}
        assert empty["locations"] == [place]
        assert one(found, "SHD003")["message"] == "expected 30 records, found 0"

    def test_records_that_were_appended(self, digits: Digits) -> None:
        shard = digits.path("test", 0)
        shard.write_bytes(shard.read_bytes() + framed(b"one more"))
        found = digits.check("manifest")
        assert codes(found) == ["SHD002", "SHD003"]
        assert one(found, "SHD003")["message"] == "expected 30 records, found 31"

    def test_the_name_of_a_bare_file_says_how_many_records_it_has(self, tmp_path: Path) -> None:
        (tmp_path / "train00-3.tfrec").write_bytes(framed(b"a", b"b", b"c"))
        (tmp_path / "train01-5.tfrec").write_bytes(framed(b"d", b"e"))
        found = document([tmp_path], only=("manifest",))
        assert (found["status"], codes(found)) == ("fail", ["SHD003"])
        finding = one(found, "SHD003")
        assert finding["message"] == "its name says 5 records, found 2"
        path = str(tmp_path / "train01-5.tfrec")
        assert finding["fingerprint"] == f"SHD003::train::{path}"
        assert finding["locations"] == [{"split": "train", "shard": path, "tensorflow": READS}]

    def test_a_damaged_record_is_not_a_missing_one(self, tmp_path: Path) -> None:
        path = tmp_path / "train00-3.tfrec"
        path.write_bytes(framed(b"a", b"b", b"c"))
        flip(path, 12)
        assert codes(document([path])) == ["CRC002"]


class TestSHD004:
    def test_two_shards_that_were_swapped(self, digits: Digits) -> None:
        exchange(digits.path("train", 0), digits.path("train", 1))
        found = digits.check("crc", "manifest", "schema")
        assert (found["status"], codes(found)) == ("fail", ["SHD004", "SHD004"])
        first = found["findings"][0]
        assert first["rule"] == "swapped-shard"
        assert first["message"] == f"it has the same bytes as `{digits.path('train', 1).name}`"
        assert shown(first) == [digits.path("train", 0).name]
        assert first["locations"][0]["detail"].startswith("expected blake3 ")

    def test_a_swap_between_splits_is_found(self, digits: Digits) -> None:
        """Training on test data: nothing else about the files is wrong."""
        exchange(digits.path("train", 0), digits.path("test", 0))
        found = digits.check("crc", "manifest", "schema", "inflation")
        assert codes(found) == ["SHD004", "SHD004"]
        assert {at["split"] for each in found["findings"] for at in each["locations"]} == {
            "test",
            "train",
        }

    def test_a_shard_that_lies_twice_is_wrong_in_one_place(self, digits: Digits) -> None:
        moved = digits.path("test", 0)
        digits.path("test", 1).unlink()
        moved.rename(digits.path("test", 1))
        found = digits.check("manifest")
        assert codes(found) == ["SHD001", "SHD004"]


class TestSHD005:
    @pytest.mark.parametrize(
        "name",
        [
            "digits-train.tfrecord-00000-of-00003",
            "notes.txt",
            ".DS_Store",
            "deeper/digits-train.tfrecord-00000-of-00002",
            "index/strange.index",
        ],
    )
    def test_a_file_that_the_manifest_does_not_list(self, digits: Digits, name: str) -> None:
        file = digits.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"")
        found = digits.check("manifest")
        assert (found["status"], codes(found)) == ("fail", ["SHD005"])
        finding = one(found, "SHD005")
        assert finding["rule"] == "unlisted-file"
        assert finding["fingerprint"] == f"SHD005:digits:::{name}"
        assert shown(finding) == [name]
        # Only a shard beside the others is read with them.
        outcome = finding["locations"][0].get("tensorflow")
        assert outcome == (READS if name.startswith("digits-") else None)

    def test_an_empty_folder_is_no_file(self, digits: Digits) -> None:
        (digits.folder / "empty").mkdir()
        assert digits.check("manifest")["findings"] == []

    def test_a_link_is_a_file(self, digits: Digits) -> None:
        (digits.folder / "link").symlink_to(digits.path("train", 0))
        assert codes(digits.check("manifest")) == ["SHD005"]

    def test_its_name_is_kept_and_escaped_where_people_read_it(
        self, digits: Digits, capsys: pytest.CaptureFixture[str]
    ) -> None:
        name = "a\x1b[31m\u202eb"
        (digits.folder / name).write_bytes(b"")
        finding = one(digits.check("manifest"), "SHD005")
        assert shown(finding) == [name]
        assert finding["fingerprint"] == f"SHD005:digits:::{name}"
        assert main(["-C", str(digits.root), "check", "--only", "manifest", "digits"]) == 1
        assert "    a\\x1b[31m\\u202eb" in capsys.readouterr().out

    def test_a_name_that_is_not_utf8_is_kept(self, digits: Digits) -> None:
        path = bytes(digits.folder) + b"/caf\xe9"
        os.close(os.open(path, os.O_CREAT))
        assert shown(one(digits.check("manifest"), "SHD005")) == [os.fsdecode(b"caf\xe9")]

    def test_a_shard_under_another_name_is_missing_and_unlisted(self, digits: Digits) -> None:
        digits.path("test", 0).rename(digits.folder / "other.tfrecord")
        assert codes(digits.check("manifest")) == ["SHD001", "SHD005"]


class TestSHD006:
    def bare(self, folder: Path, *names: str) -> Document:
        for name in names:
            (folder / name).write_bytes(framed(name.encode()))
        return document([folder], only=("manifest",))

    def test_two_sizes_of_one_set(self, tmp_path: Path) -> None:
        found = self.bare(tmp_path, "x-00000-of-00002.tfrecord", "x-00001-of-00003.tfrecord")
        assert (found["status"], codes(found)) == ("fail", ["SHD006"])
        finding = one(found, "SHD006")
        assert finding["rule"] == "inconsistent-names"
        message = f"files of the set `{tmp_path}/x.tfrecord` disagree about its size: 2, 3"
        assert finding["message"] == message
        assert finding["fingerprint"] == f"SHD006::::{tmp_path}/x.tfrecord"
        assert finding["count"] == 2
        assert [(each["shard"], each["detail"]) for each in finding["locations"]] == [
            (f"{tmp_path}/x-00000-of-00002.tfrecord", "its name says 2 shards"),
            (f"{tmp_path}/x-00001-of-00003.tfrecord", "its name says 3 shards"),
        ]
        assert {each["tensorflow"] for each in finding["locations"]} == {READS}

    def test_a_number_that_is_not_below_the_count(self, tmp_path: Path) -> None:
        names = [f"x-{number:05d}-of-00002" for number in (0, 1, 2)]
        found = self.bare(tmp_path, *names)
        assert codes(found) == ["SHD006"]
        finding = one(found, "SHD006")
        message = f"the set `{tmp_path}/x` has 2 shards, but one of them has number 2"
        assert (finding["message"], finding["count"]) == (message, 1)
        (at,) = finding["locations"]
        assert at["shard"] == f"{tmp_path}/x-00002-of-00002"
        assert at["detail"] == "the last number of the set is 1"
        assert finding["fingerprint"] == f"SHD006::::{tmp_path}/x"
        found = self.bare(tmp_path, "y-1-of-2", "y-2-of-2", "y-3-of-2")
        message = f"the set `{tmp_path}/y` has 2 shards, but one of them has number 3"
        assert message in [each["message"] for each in found["findings"]]

    def test_a_set_of_no_shards(self, tmp_path: Path) -> None:
        found = self.bare(tmp_path, "x-train.tfrecord-00000-of-00000")
        finding = one(found, "SHD006")
        said = "has 0 shards, but one of them has number 0"
        assert finding["message"] == f"the set `{tmp_path}/x-train.tfrecord` {said}"

    def test_a_number_that_stands_twice(self, tmp_path: Path) -> None:
        found = self.bare(tmp_path, "x-00000-of-00002", "x-00001-of-00002", "x-1-of-2")
        assert codes(found) == ["SHD006"]
        finding = one(found, "SHD006")
        message = f"the set `{tmp_path}/x` has more than one shard with number 1"
        assert (finding["message"], finding["count"]) == (message, 1)
        (at,) = finding["locations"]
        assert at["shard"] == f"{tmp_path}/x-1-of-2"
        assert at["detail"] == "`x-00001-of-00002` has the same number 1"
        assert finding["fingerprint"] == f"SHD006::::{tmp_path}/x"

    def test_sets_of_different_names_do_not_contradict(self, tmp_path: Path) -> None:
        found = self.bare(
            tmp_path, "train-00000-of-00001", "test-00000-of-00002", "test-00001-of-00002"
        )
        assert found["findings"] == []

    def test_hostile_names_are_escaped_in_words(self, tmp_path: Path) -> None:
        found = self.bare(tmp_path, "a\x1b[31m-00001-of-00001")
        assert codes(found) == ["SHD001", "SHD006"]
        for each in found["findings"]:
            assert "a\\x1b[31m" in each["message"]
            assert "\x1b" not in each["message"]

    def test_files_without_a_count_promise_nothing(self, tmp_path: Path) -> None:
        found = self.bare(tmp_path, "x.tfrecord", "y_7.tfrecord", "z.record")
        assert found["findings"] == []


class TestSHD007:
    def test_a_bare_file_without_records_is_a_warning(self, tmp_path: Path) -> None:
        path = tmp_path / "x.tfrecord"
        path.write_bytes(b"")
        found = document([path])
        assert (found["status"], codes(found)) == ("pass", ["SHD007"])
        finding = one(found, "SHD007")
        assert finding["severity"] == "warning"
        assert finding["fingerprint"] == f"SHD007::::{path}"
        assert finding["locations"] == [{"shard": str(path), "tensorflow": READS}]
        assert document([path], fail_on=FailOn.WARNING)["status"] == "fail"

    def test_an_empty_stream_in_gzip_has_no_records(self, tmp_path: Path) -> None:
        path = tmp_path / "x.tfrecord.gz"
        path.write_bytes(gzip.compress(b""))
        assert codes(document([path])) == ["SHD007"]

    def test_a_file_of_damage_alone_is_not_called_empty(self, tmp_path: Path) -> None:
        path = tmp_path / "x.tfrecord"
        path.write_bytes(framed(b"the only record"))
        flip(path, 14)
        assert codes(document([path])) == ["CRC002"]


def test_a_shard_that_cannot_be_read_is_not_called_missing(tmp_path: Path) -> None:
    """The check is incomplete, which says it; its name shows that the set is whole."""
    (tmp_path / "x-00000-of-00002").write_bytes(framed(b"a"))
    (tmp_path / "x-00001-of-00002").symlink_to(tmp_path / "gone")
    found = document([tmp_path / "x-00000-of-00002", tmp_path / "x-00001-of-00002"])
    assert found["status"] == "error"
    assert found["findings"] == []


def test_many_kinds_of_damage_at_once_are_all_named(digits: Digits) -> None:
    digits.path("train", 0).unlink()
    cut_last_record(digits.path("train", 1))
    flip(digits.path("test", 0), 30)
    (digits.folder / "more").write_bytes(b"")
    flip(digits.folder / "labels.json", 3)
    found = digits.check("crc", "manifest")
    assert codes(found) == ["CRC002", "SHD001", "SHD002", "SHD002", "SHD003", "SHD005"]


def test_a_release_is_held_against_its_own_manifest(digits: Digits) -> None:
    """What is in `data/` may be another build by now: the release is in `versions/`."""
    cut_last_record(digits.path("train", 0))
    shutil.rmtree(digits.folder / "index")
    (digits.folder / "manifest.json").unlink()
    assert digits.check("manifest", target="digits@1.0.0")["findings"] == []
    kept = digits.root / "versions/digits/1.0.0" / digits.path("train", 0).name
    cut_last_record(kept)
    found = digits.check("manifest", target="digits@1.0.0")
    assert codes(found) == ["SHD002", "SHD003"]
    assert found["target"] == "digits@1.0.0"
