"""`tfrecreg build`: what is made, what is said, and what is refused without a trace."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
import tempfile
from pathlib import Path

import pytest
from tests_support import tree

from tfrecreg.core.build.planning import plan as item_store


def idx(kind: int, dims: tuple[int, ...], data: bytes) -> bytes:
    return struct.pack(f">HBB{len(dims)}I", 0, kind, len(dims), *dims) + data


def test_build_makes_shards_manifest_labels_ledger_and_schema(cli, raw, registry) -> None:
    done = cli("build", "digits", "--source", "mnist", "--raw", raw, "--shards", "2", "--json")
    assert done.code == 0, done.err
    assert done.json["splits"] == {"test": 20, "train": 60}
    assert done.json["shards"] == 4
    files = sorted(path.name for path in (registry / "data/digits").iterdir())
    assert files == [
        "digits-test.tfrecord-00000-of-00002",
        "digits-test.tfrecord-00001-of-00002",
        "digits-train.tfrecord-00000-of-00002",
        "digits-train.tfrecord-00001-of-00002",
        "index",
        "labels.json",
        "ledger.jsonl",
        "manifest.json",
        "schema.pbtxt",
    ]
    schema = (registry / "schemas/digits.pbtxt").read_bytes()
    assert (registry / "data/digits/schema.pbtxt").read_bytes() == schema
    assert json.loads((registry / "data/digits/labels.json").read_bytes()) == {
        "image/class/label": [str(number) for number in range(10)]
    }


def test_a_split_with_fewer_records_than_shards_is_said(cli, raw, registry) -> None:
    made = ("build", "digits", "--source", "mnist", "--raw", raw)
    done = cli(*made, "--shards", "60")
    assert done.code == 0
    assert done.err.splitlines()[-1] == "`test` has 20 records, so fewer than 60 shards"
    assert "`train`" not in done.err
    assert "fewer" not in cli(*made, "--shards", "20").err
    assert cli(*made, "--shards", "60", "--json").err == ""


def test_build_is_remembered_and_repeats_without_options(cli, raw, registry) -> None:
    made = ("--source", "mnist", "--raw", "../raw", "--shards", "2", "--compression", "gzip")
    first = cli("build", "digits", *made, "--json")
    config = (registry / "datasets/digits.toml").read_text()
    assert 'raw = "../raw"' in config
    again = cli("build", "digits", "--json")
    assert again.code == 0, again.err
    assert again.json["unchanged"] is True
    assert again.json["digest"] == first.json["digest"]
    assert (registry / "datasets/digits.toml").read_text() == config


def test_dry_run_shows_the_plan_and_writes_nothing(cli, raw, registry) -> None:
    before = tree(registry, ignore=(".tfrecreg",))
    done = cli("build", "digits", "--source", "mnist", "--raw", raw, "--dry-run", "--json")
    assert done.code == 0
    assert done.json["splits"]["train"]["items"] == 60
    assert tree(registry, ignore=(".tfrecreg",)) == before
    text = cli("build", "digits", "--source", "mnist", "--raw", raw, "--dry-run").out
    assert "nothing was written" in text


def test_a_failed_build_leaves_the_old_one_and_says_why(cli, raw, registry) -> None:
    assert cli("build", "digits", "--source", "mnist", "--raw", raw).code == 0
    before = tree(registry / "data")
    schema = registry / "schemas/digits.pbtxt"
    schema.write_text(schema.read_text().replace('value: "png"', 'value: "jpeg"'))
    done = cli("build", "digits")
    assert done.code == 1
    assert "the new build does not pass its own check, and the old one stays" in done.err
    assert "error SCH006" in done.err
    assert tree(registry / "data") == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--shards", "0"), "shards"),
        (("--shard-size", "many"), "many"),
        (("--records-per-shard", "-1"), "records"),
        (("--hosts", "0"), "hosts"),
        (("--shards", "1", "--hosts", "2"), "exclude each other"),
        (("--option", "encoding"), "should be `--option KEY=VALUE`"),
        (("--option", "encoding=png", "--option", "encoding=raw"), "given twice"),
        (("--option", "encodign=png"), "did you mean `encoding`"),
        (("--option", "encoding=jpeg"), "jpeg"),
        (("--max-skipped", "some"), "expected a number of items"),
        (("--jobs", "0"), "--jobs should be at least 1, found 0"),
        (("--source", "mnits"), "did you mean `mnist`"),
    ],
)
def test_bad_options_are_refused_in_one_line(cli, raw, registry, options, message) -> None:
    base = () if "--source" in options else ("--source", "mnist")
    done = cli("build", "digits", *base, "--raw", raw, *options)
    assert done.code == 2, done.err
    assert message in done.err
    assert done.err.startswith("error: ")
    assert len(done.err.splitlines()) <= 2
    assert not (registry / "data/digits").exists()


def test_a_name_that_is_no_name_is_refused(cli, raw, registry) -> None:
    done = cli("build", "Digits", "--source", "mnist", "--raw", raw)
    assert (done.code, done.err) == (
        2,
        "error: `Digits` is not a dataset name: expected a lower-case letter, then lower-case "
        "letters, digits and `_`, found `D`\n"
        "hint: write `digits`\n",
    )


def test_a_build_without_source_or_raw_says_how_to_name_them(cli, raw, registry) -> None:
    done = cli("build", "digits")
    assert done.code == 2
    assert "no source is known for `digits`" in done.err
    assert "name it with `--source`: coco, " in done.err
    done = cli("build", "digits", "--source", "mnist")
    assert done.code == 2
    assert "no raw data are named for `digits`" in done.err


def test_raw_data_that_are_not_there_are_refused(cli, registry) -> None:
    done = cli("build", "digits", "--source", "mnist", "--raw", "/no/such/folder")
    assert (done.code, done.err) == (
        2,
        "error: the raw data `/no/such/folder` does not exist\n"
        "hint: name the folder with --raw PATH\n",
    )


def test_a_build_outside_a_registry_says_how_to_make_one(cli, raw, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli("build", "digits", "--source", "mnist", "--raw", raw)
    assert done.code == 2
    assert "no registry here" in done.err
    assert "hint: `tfrecreg init` makes one" in done.err


def _wrong_magic(raw: Path) -> None:
    (raw / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"\x08\x00\x03\x08" * 9))


def _int32_labels(raw: Path) -> None:
    data = idx(0x0C, (60,), bytes(240))
    (raw / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(data))


def _other_count(raw: Path) -> None:
    data = idx(0x08, (59,), bytes(59))
    (raw / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(data))


def _no_images(raw: Path) -> None:
    (raw / "train-images-idx3-ubyte.gz").unlink()


def _cut_gzip(raw: Path) -> None:
    path = raw / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-100])


def _twice(raw: Path) -> None:
    data = gzip.decompress((raw / "train-images-idx3-ubyte.gz").read_bytes())
    (raw / "train-images-idx3-ubyte").write_bytes(data[:-1] + b"\7")


def _empty(raw: Path) -> None:
    shutil.rmtree(raw)
    raw.mkdir()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_wrong_magic, ["train-images-idx3-ubyte.gz", "expected 00 00 08 03"]),
        (_int32_labels, ["train-labels-idx1-ubyte.gz", "00 00 0c 01"]),
        (_other_count, ["60", "59"]),
        (_no_images, ["train-labels-idx1-ubyte.gz", "images"]),
        (_cut_gzip, ["train-images-idx3-ubyte.gz", "end-of-stream marker"]),
        (_twice, ["train-images-idx3-ubyte.gz", "hold different data"]),
        (_empty, ["IDX"]),
    ],
)
def test_raw_data_that_are_not_idx_are_refused_in_one_line(cli, raw, registry, harm, words) -> None:
    harm(raw)
    done = cli("build", "digits", "--source", "mnist", "--raw", raw)
    assert done.code == 2, done.err
    assert done.err.startswith("error: ")
    assert len(done.err.splitlines()) <= 2, done.err
    assert "hint: " in done.err
    for word in words:
        assert word in done.err
    assert not (registry / "data").joinpath("digits").exists()


@pytest.mark.parametrize("name", ["[/]", "\x1b[31mred", "new\nline", "\u202egnp"])
def test_hostile_names_are_escaped_in_messages(cli, tmp_path, registry, name) -> None:
    raw = tmp_path / "hostile" / name.replace("/", "")
    raw.mkdir(parents=True)
    done = cli("build", "digits", "--source", "mnist", "--raw", raw)
    assert done.code == 2
    for character in ("\x1b", "\u202e"):
        assert character not in done.err
    assert len(done.err.splitlines()) <= 2


def test_a_schema_that_does_not_parse_is_named_with_line_and_column(cli, raw, registry) -> None:
    (registry / "schemas").mkdir()
    (registry / "schemas/digits.pbtxt").write_text('feature {\n  name: "x"\n  typo: INT\n}\n')
    done = cli("build", "digits", "--source", "mnist", "--raw", raw)
    assert done.code == 2
    assert done.err.startswith("error: schemas/digits.pbtxt:3:3: ")
    assert "typo" in done.err


def test_a_registry_that_cannot_be_written_is_exit_3(cli, raw, registry) -> None:
    # A file where a folder should be refuses root as well.
    shutil.rmtree(registry / ".tfrecreg")
    (registry / ".tfrecreg").write_text("in the way")
    done = cli("build", "digits", "--source", "mnist", "--raw", raw)
    assert done.code == 3
    assert "cannot be written" in done.err
    assert "hint: " in done.err


def test_json_is_one_document_even_when_it_fails(cli, registry) -> None:
    done = cli("build", "digits", "--json")
    assert done.code == 2
    assert done.json["status"] == "error"
    assert done.json["error"]["exit_code"] == 2
    assert done.json["error"]["message"] == "no source is known for `digits`"


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_build_from_items_on_disk_has_the_same_bytes(
    cli, raw, registry, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    arguments = ("--source", "mnist", "--raw", raw, "--shards", "2", "--base", "none")
    assert cli("build", "digits", *arguments).code == 0
    before = tree(registry / "data/digits")
    monkeypatch.setattr(item_store, "_HELD", 100)
    done = cli("build", "digits", *arguments, "--jobs", jobs)
    assert done.code == 0, done.err
    assert tree(registry / "data/digits") == before


def test_no_room_for_the_items_is_told(
    cli, raw, registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(item_store, "_HELD", 100)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    done = cli("build", "digits", "--source", "mnist", "--raw", raw)
    assert done.code == 3
    assert done.err == (
        f"error: cannot write the plan's items to `{tmp_path}/none`: No such file or directory\n"
        "hint: TMPDIR names another folder\n"
    )
    assert not (registry / "data/digits").exists()
