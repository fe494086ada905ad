"""`check --same-as` and `--expect`: which splits, shards and keys are not those expected."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest
from check_support import framed
from registry_support import empty_registry, put_build
from tests_support import flip

import tfrecreg
from tfrecreg.cli.main import main
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import int64_feature
from tfrecreg.core.records.hashing import content_digest
from tfrecreg.core.records.index import read_index
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import SplitEntry
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Finding


def payloads(root: Path, split: str) -> list[bytes]:
    found: list[bytes] = []
    for shard in sorted((root / "data/digits").glob(f"digits-{split}.tfrecord-*")):
        with tfrecreg.Records(str(shard)) as records:
            found += records
    return found


def put(folder: Path, split: str, records: list[bytes], *, zipped: bool = False) -> None:
    folder.mkdir(exist_ok=True)
    data = framed(*records)
    path = folder / f"{split}-00000-of-00001.tfrecord"
    path.write_bytes(gzip.compress(data) if zipped else data)


def check(target: object, root: Path, **options: Any) -> tfrecreg.Report:
    return tfrecreg.check(str(target), only="crc", registry=root, **options)


def content(report: tfrecreg.Report) -> list[Finding]:
    return [each for each in report.findings if each.code in ("SHD010", "SHD011")]


def test_the_same_records_pass_whatever_their_shards(digits_original: Path, tmp_path: Path) -> None:
    for split in ("train", "test"):
        put(tmp_path / "out", split, payloads(digits_original, split)[::-1], zipped=True)
    for same_as in ("digits@1.0.0", "digits"):
        report = check(tmp_path / "out", digits_original, same_as=same_as)
        assert (report.status, report.findings) == ("pass", ())
        assert set(report.validators) == {"content", "crc"}
    whole = tfrecreg.open(digits_original).find("digits").describe()["content"]
    assert check(tmp_path / "out", digits_original, same_as=whole).status == "pass"
    assert check("digits@1.0.0", digits_original, same_as="digits").status == "pass"


def test_records_and_keys_that_differ_are_named(digits_original: Path, tmp_path: Path) -> None:
    train = payloads(digits_original, "train")
    changed = tfrecreg.decode(train[150])
    other = encode({**changed, "image/class/label": int64_feature(77)})
    put(tmp_path / "out", "train", [*train[:3], *train[4:150], other, *train[151:], train[9]])
    put(tmp_path / "out", "test", payloads(digits_original, "test"))
    report = check(tmp_path / "out", digits_original, same_as="digits@1.0.0")
    assert report.status == "fail"
    missing, extra = sorted(content(report), key=lambda each: each.message)
    assert missing.message == "`train` does not have all records of `digits@1.0.0`"
    place = "of `digits-train.tfrecord-0000{}-of-00002` of `digits@1.0.0`"
    first, second = (_index(digits_original, number) for number in range(2))
    later = 150 - len(first)
    assert [(each.key, each.detail) for each in missing.locations] == [
        (first.key(3), f"record 3 {place.format(0)}"),
        (second.key(later), f"record {later} {place.format(1)}"),
    ]
    assert extra.message == "`train` has records that `digits@1.0.0` does not have"
    shard = str(tmp_path / "out/train-00000-of-00001.tfrecord")
    assert [(each.shard, each.record) for each in extra.locations] == [(shard, 149), (shard, 199)]
    assert missing.count == extra.count == 2


def _index(root: Path, number: int):

    path = root / f"data/digits/index/digits-train.tfrecord-{number:05d}-of-00002.index"
    return read_index(path.read_bytes(), str(path))


def test_a_damaged_record_is_named_as_missing(digits_registry: Path) -> None:
    shard = digits_registry / "data/digits/digits-train.tfrecord-00001-of-00002"
    flip(shard, shard.stat().st_size // 2)
    report = check("digits", digits_registry, same_as="digits@1.0.0")
    (damage,) = [each for each in report.findings if each.code == "CRC002"]
    (finding,) = content(report)
    assert finding.message == "`train` does not have all records of `digits@1.0.0`"
    assert finding.count == 1
    assert finding.locations[0].key == damage.locations[0].key is not None


def test_splits_that_differ_are_named(digits_original: Path, tmp_path: Path) -> None:
    put(tmp_path / "out", "train", payloads(digits_original, "train"))
    put(tmp_path / "out", "extra", payloads(digits_original, "test"))
    report = check(tmp_path / "out", digits_original, same_as="digits@1.0.0")
    assert sorted(each.message for each in content(report)) == [
        "the split `extra` (60 records) is not in `digits@1.0.0`",
        "the split `test` of `digits@1.0.0` is missing",
    ]


def test_files_without_a_split_are_taken_for_the_only_one(
    digits_original: Path, tmp_path: Path
) -> None:
    path = tmp_path / "all.tfrecord"
    path.write_bytes(framed(*payloads(digits_original, "train")))
    assert check(path, digits_original, expect={"train": 200}).status == "pass"
    found = tfrecreg.digest(path)
    assert check(path, digits_original, same_as=found.content).status == "pass"


def test_another_digest_tells_both(digits_original: Path) -> None:
    report = check("digits", digits_original, same_as="0" * 64)
    (finding,) = content(report)
    whole = tfrecreg.open(digits_original).find("digits").describe()["content"]
    assert finding.message == (f"expected the content digest {'0' * 16}…, found {whole[:16]}…")
    assert finding.locations[0].detail == "records: `test` 60, `train` 200"


def test_without_indexes_only_the_split_is_named(digits_registry: Path, tmp_path: Path) -> None:
    manifest = tfrecreg.open(digits_registry).find("digits").manifest
    put(tmp_path / "out", "train", payloads(digits_registry, "train")[1:])
    put(tmp_path / "out", "test", payloads(digits_registry, "test"))
    shutil.rmtree(digits_registry / "data/digits/index")
    for shard in manifest.files:
        (digits_registry / layout.cached_index(shard.blake3)).unlink(missing_ok=True)
    report = check(tmp_path / "out", digits_registry, same_as="digits@1.0.0")
    (finding,) = content(report)
    assert finding.message == "the records of `train` differ from `digits@1.0.0`"
    assert finding.locations[0].detail == (
        "expected 200, found 199; it is unknown which records differ, because the index of "
        "`digits-train.tfrecord-00000-of-00002` in `digits@1.0.0` is not on this machine"
    )


def test_a_split_that_lost_all_its_shards_is_missing_all_its_records(
    digits_registry: Path,
) -> None:
    for shard in (digits_registry / "data/digits").glob("digits-test.tfrecord-*"):
        shard.unlink()
    report = check("digits", digits_registry, same_as="digits@1.0.0", expect={"test": 60})
    counted, finding = sorted(content(report), key=lambda each: each.code)
    assert counted.message == "expected 60 records in `test`, found 0"
    assert finding.message == "`test` does not have all records of `digits@1.0.0`"
    assert (finding.count, len(finding.locations)) == (60, 20)


def test_an_empty_split_needs_no_shard(tmp_path: Path) -> None:
    empty = SplitEntry(
        name="empty", records=0, payload_bytes=0, content=content_digest([("empty", b"")])
    )
    whole = content_digest([("empty", b"")])
    put_build(tmp_path, "nothing", splits=[empty], content=whole)
    empty_registry(tmp_path)
    for same_as in ("nothing", whole):
        assert content(check("nothing", tmp_path, same_as=same_as)) == []
    found = tfrecreg.digest("nothing", registry=tmp_path)
    assert (found.content, found.splits[0].content) == (whole, empty.content)


def test_counts_are_compared(digits_original: Path) -> None:
    report = check("digits", digits_original, expect={"train": 201, "test": 60, "val": 1})
    assert sorted(each.message for each in content(report)) == [
        "expected 1 records in `val`, there is no such split",
        "expected 201 records in `train`, found 200",
    ]
    assert check("digits", digits_original, expect={"train": 200}).status == "pass"


def test_the_report_says_what_was_expected(digits_original: Path) -> None:
    report = check("digits", digits_original, same_as="digits@1.0.0", expect={"train": 200})
    basis = report.to_json()["basis"]
    assert (basis["same_as"], basis["expect"]) == ("digits@1.0.0", {"train": 200})
    assert "same_as" not in check("digits", digits_original).to_json()["basis"]


def test_exit_codes(digits_original: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check = ["-C", str(digits_original), "check", "digits", "--only", "crc"]
    assert main([*check, "--same-as", "digits@1.0.0", "--expect", "train=200,test=60"]) == 0
    assert main([*check, "--expect", "train=199"]) == 1
    assert "error SHD010 split-count: expected 199 records" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("digits", "--expect", "train"), "`--expect train` should be `--expect NAME=VALUE`"),
        (("digits", "--expect", "train=-1"), "`--expect train=-1` should be a number of records"),
        (
            ("digits", "--skip", "content", "--expect", "train=1"),
            "`--skip content` skips the validators that `--same-as` and `--expect` need",
        ),
        (("digits", "--expect", "a=1,a=2"), "`--expect a=` is given twice"),
        (("digits", "--same-as", "digits@2.0.0"), "no release `digits@2.0.0`"),
        (("digits", "--same-as", "12ab"), "`12ab` is not a dataset name"),
        (("--expect", "train=1"), "`--expect` cannot be used without a TARGET"),
        (("--source", "coco", "--raw", "x"), "`--source` cannot be used without a TARGET"),
    ],
)
def test_bad_arguments_are_exit_2(
    arguments: tuple[str, ...],
    message: str,
    digits_original: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["-C", str(digits_original), "check", *arguments]) == 2
    assert f"error: {message}" in capsys.readouterr().err


def test_a_negative_count_is_refused(digits_original: Path) -> None:
    with pytest.raises(UsageError, match="expected at least 0 records in `train`, found -1"):
        check("digits", digits_original, expect={"train": -1})
