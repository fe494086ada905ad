"""`tfrecreg head`: what it shows, which record, and the images as files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from check_support import framed
from image_support import png
from page_support import read_page
from tests_support import flip

import tfrecreg
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    """Ten records, each with a number and an image."""
    path = tmp_path / "a.tfrecord"
    examples = (
        {"n": int64_feature(number), "p": bytes_feature(png(28, 28, seed=number))}
        for number in range(10)
    )
    path.write_bytes(b"".join(framed(encode(each)) for each in examples))
    return path


def test_the_first_five_are_shown(cli, shard) -> None:
    done = cli("head", shard)
    assert done.code == 0, done.err
    assert done.out.count(", record ") == 5
    first = png(28, 28)
    size = f"{len(first)} B" if len(first) < 1000 else f"{len(first) / 1000:.1f} kB"
    lines = [line.split() for line in done.out.splitlines()[:3]]
    assert lines[1] == ["n", "int64", "0"]
    assert lines[2] == ["p", "bytes", "PNG", "image,", "28x28,", *size.split()]
    assert "\x1b" not in done.out


def test_the_record_that_a_finding_names(cli, shard) -> None:
    done = cli("head", shard, "--at", "7")
    assert done.code == 0, done.err
    assert f"{shard}, record 7, offset " in done.out
    assert done.out.count(", record ") == 1
    assert cli("head", shard, "--at", "-2", "-n", "9").out.count(", record ") == 2


def test_damage_that_is_passed_over_is_told(cli, shard) -> None:
    flip(shard, 20)
    done = cli("head", shard, "-n", "2")
    assert done.code == 1
    assert done.out.count(", record ") == 2
    assert (
        f"error: 1 damaged place was skipped; the first is record 0 of `{shard}`, at byte 0: "
        "CRC002: data checksum should be "
    ) in done.err
    assert f"hint: tfrecreg check {shard}" in done.err
    document = cli("head", shard, "-n", "2", "--json")
    assert document.code == 1
    assert [each["record"] for each in document.json["records"]] == [1, 2]
    (place,) = document.json["damage"]
    assert (place["shard"], place["record"], place["offset"]) == (str(shard), 0, 0)
    after = cli("head", shard, "--at", "1", "-n", "2")
    assert (after.code, after.err) == (0, "")


def test_a_file_without_a_sound_record_is_no_success(cli, tmp_path) -> None:
    path = tmp_path / "one.tfrecord"
    path.write_bytes(framed(encode({"x": int64_feature(1)})))
    flip(path, 14)
    done = cli("head", path)
    assert (done.code, done.out) == (1, "")
    assert "error: 1 damaged place was skipped" in done.err
    path.write_bytes(b"")
    done = cli("head", path)
    assert (done.code, done.out, done.err) == (0, "", f"{path} has no records\n")


def test_one_shard_of_a_build(cli, raw, registry) -> None:
    done = cli("build", "digits", "--source", "mnist", "--raw", raw, "--shards", "2")
    assert done.code == 0, done.err
    name = "digits-train.tfrecord-00001-of-00002"
    done = cli("head", "digits", "--shard", name, "--at", "3", "--json")
    (record,) = done.json["records"]
    assert (record["shard"], record["record"]) == (name, 3)
    assert record["key"] is not None


def test_a_split_or_a_part_of_it(cli, raw, registry) -> None:
    done = cli("build", "digits", "--source", "mnist", "--raw", raw, "--shards", "2")
    assert done.code == 0, done.err

    def records(*arguments: str) -> list[tuple[str, int]]:
        found = cli("head", "digits", "--json", *arguments).json["records"]
        return [(each["shard"].partition(".")[0][7:], each["record"]) for each in found]

    whole = cli("head", "digits", "--split", "all", "-n", "1000", "--json").json["records"]
    places = [(each["shard"], each["record"]) for each in whole]
    tests = [place for place in places if "-test." in place[0]]
    train = [place for place in places if "-train." in place[0]]
    assert places == tests + train
    second = sum("00000-of" in shard for shard, _ in train)  # number of its first record
    assert 1 < second < len(train)

    assert records("--split", "train", "-n", "2") == [("train", 0), ("train", 1)]
    assert records("--split", "train+test", "-n", str(len(train) + 1))[-1] == ("test", 0)
    document = cli("head", "digits", "--split", f"train[{second - 1}:{second + 1}]", "--json").json
    across = [(each["shard"], each["record"]) for each in document["records"]]
    assert across == train[second - 1 : second + 1]
    assert len({shard for shard, _ in across}) == 2
    assert records("--split", "train[-3:]", "-n", "2") == [("train", n) for _, n in train[-3:-1]]
    assert records("--split", "test[:1]+train[:1]") == [("test", 0), ("train", 0)]
    name = "digits-train.tfrecord-00001-of-00002"
    assert records("--split", "train", "--shard", name, "--at", "0") == [("train", 0)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--split", "trian"), "`digits` has no split `trian`"),
        (("--split", "train[:999999]"), "`train[:999999]` reaches beyond its split"),
        (
            ("--split", "train[:2]", "--at", "1"),
            "`train[:2]` selects a range of the whole split: leave out `--at`",
        ),
    ],
)
def test_a_split_that_is_not_there_is_refused(cli, built, arguments, message) -> None:
    done = cli("head", "digits", *arguments)
    assert (done.code, done.out) == (2, "")
    assert f"error: {message}" in done.err


def test_a_split_of_files_that_name_none(cli, shard) -> None:
    flip(shard, 20)
    done = cli("head", shard, "--split", "train[:2]", "--json")
    assert done.code == 1
    assert [each["record"] for each in done.json["records"]] == [1]
    assert [each["record"] for each in done.json["damage"]] == [0]
    last = cli("head", shard, "--split", "test[-1:]", "--json").json["records"]
    assert [each["record"] for each in last] == [9]


def test_images_are_saved_and_where_is_told(cli, shard, tmp_path) -> None:
    out = tmp_path / "out"
    done = cli("head", shard, "-n", "2", "--save", out)
    assert done.code == 0, done.err
    names = [f"{out}/a.tfrecord-{number}-p.png" for number in range(2)]
    assert [line for line in done.out.splitlines() if line.startswith("  saved: ")] == [
        f"  saved: {name}" for name in names
    ]
    assert Path(names[1]).read_bytes() == png(28, 28, seed=1)
    again = cli("head", shard, "-n", "2", "--save", out)
    assert again.code == 2
    assert "was not written, because this file exists already" in again.err
    document = cli("head", shard, "-n", "1", "--save", tmp_path / "other", "--json").json
    assert document["records"][0]["saved"] == [f"{tmp_path}/other/a.tfrecord-0-p.png"]


def test_a_page_of_the_records_is_opened(cli, shard, monkeypatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    done = cli("head", shard, "-n", "3", "--open")
    assert done.code == 0
    (url,) = opened
    path = Path(url.removeprefix("file://"))
    assert done.err == f"page: {path}\n"
    page = read_page(path.read_text("utf-8"))
    assert page.images == 3
    path.unlink()
    plain = cli("head", shard, "-n", "3")
    assert plain.out == done.out
    assert len(opened) == 1


def numbers(cli, *arguments: object) -> list[int]:
    done = cli("head", *arguments, "--json")
    assert done.code == 0, done.err
    return [each["record"] for each in json.loads(done.out)["records"]]


def test_a_condition_chooses_the_records(cli, shard, tmp_path, monkeypatch) -> None:
    pytest.importorskip("duckdb", reason="the extra `query` is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert numbers(cli, shard, "--where", "n % 2 = 1") == [1, 3, 5, 7, 9]
    assert numbers(cli, shard, "--where", "n % 2 = 1", "-n", "2") == [1, 3]
    assert numbers(cli, shard, "--where", "n % 2 = 1", "--split", "train[4:-1]") == [5, 7]
    assert numbers(cli, shard, "--where", "n = 8", "--shard", shard) == [8]
    shown = json.loads(cli("head", shard, "--where", "n = 3", "--json").out)
    assert shown["where"] == "n = 3"
    assert "where" not in json.loads(cli("head", shard, "--json").out)
    done = cli("head", shard, "--where", "n = 10")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"{shard} has no record that meets the condition\n"
    assert [each.record for each in tfrecreg.head(shard, where="n > 7")] == [8, 9]


def test_what_is_no_condition_is_refused(cli, shard, tmp_path, monkeypatch) -> None:
    pytest.importorskip("duckdb", reason="the extra `query` is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = cli("head", shard, "--where", "nn = 3")
    assert done.code == 2
    assert 'Referenced column "nn" not found in FROM clause' in done.err
    assert 'Candidate bindings: "n"' in done.err
    done = cli("head", shard, "--where", "n = 3", "--at", "3")
    assert done.code == 2
    assert done.err.splitlines() == [
        "error: `--at` and `--where` exclude each other",
    ]
    flip(shard, 20)
    done = cli("head", shard, "--where", "n = 3")
    assert done.code == 1
    assert "is damaged, and a condition cannot be evaluated on damaged records" in done.err


def test_a_condition_needs_its_extra(cli, shard, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = cli("head", shard, "--where", "n = 3")
    assert done.code == 3
    assert "error: asking in SQL needs the extra `query`, which is not installed" in done.err
    assert "[query]" in done.err.splitlines()[1]
