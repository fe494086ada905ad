"""`tfrecreg check`: targets, options, output and exit codes. What validators find is theirs."""

from __future__ import annotations

import os
import re
import shutil

import pytest
from check_support import framed
from tests_support import flip, tree


def test_a_clean_build_is_exit_0_and_says_its_inflation_on_both_bases(cli, built) -> None:
    done = cli("check", "digits")
    assert done.code == 0
    assert re.search(r": \d+\.\d\d × the raw files, \d+\.\d\d × the unpacked data\n", done.out)
    assert "bytes per feature: image/encoded" in done.out
    assert done.out.rstrip().splitlines()[-1].startswith("pass: 0 errors, 0 warnings")


def test_json_is_the_documented_document(cli, built) -> None:
    shard = built / "data/digits/digits-train.tfrecord-00001-of-00002"
    flip(shard, 30)
    done = cli("check", "digits", "--json")
    assert done.code == 1
    report = done.json
    assert report["format_version"] == 1
    assert report["target"] == "digits"
    assert report["status"] == "fail"
    assert report["summary"]["shards"] == 4
    assert report["summary"]["records"] == 79
    (finding,) = report["findings"]
    assert finding["code"] == "CRC002"
    assert finding["rule"] == "data-checksum"
    assert finding["severity"] == "error"
    assert finding["count"] == 1
    assert finding["fingerprint"] == f"CRC002:digits:train::{shard.name}"
    (location,) = finding["locations"]
    assert location["shard"] == shard.name
    assert (location["split"], location["record"], location["offset"]) == ("train", 0, 0)
    assert location["key"].isdigit()
    assert finding["hint"]


def test_a_check_changes_nothing(cli, built) -> None:
    flip(built / "data/digits/digits-train.tfrecord-00001-of-00002", 30)
    before = tree(built)
    cli("check", "digits", "--json")
    assert tree(built) == before


def test_files_need_no_registry(cli, built, tmp_path, monkeypatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    folder = built / "data/digits"
    for target in (folder, f"{folder}/*.tfrecord-*", f"{folder}/digits-test.tfrecord@2"):
        done = cli("check", target)
        assert done.code == 0, done.err
    for path in folder.glob("digits-test*"):
        shutil.copy(path, elsewhere)
    done = cli("check", "digits-test.tfrecord-*", "--json")
    assert done.json["summary"]["records"] == 20
    skipped = {each["validator"] for each in done.json["skipped"]}
    assert skipped == {"registry", "schema"}


def test_files_can_be_held_against_a_schema_and_raw_data(cli, built, raw) -> None:
    shards = "data/digits/digits-test.tfrecord-*"
    done = cli("check", shards, "--schema", "schemas/digits.pbtxt", "--raw", raw, "--json")
    assert done.code == 0, done.err
    assert done.json["skipped"] == []
    assert done.json["measures"]["inflation.raw_stored"] == sum(
        path.stat().st_size for path in raw.iterdir()
    )


def test_the_worst_of_several_targets_decides(cli, built, raw) -> None:
    assert cli("build", "more", "--source", "mnist", "--raw", raw).code == 0
    flip(built / "data/more/more-test.tfrecord-00000-of-00001", 30)
    done = cli("check", "digits", "more")
    assert done.code == 1
    assert "pass: " in done.out
    assert "fail: " in done.out


def test_only_and_skip_choose_validators(cli, built) -> None:
    done = cli("check", "digits", "--only", "crc,manifest", "--json")
    assert done.json["validators"] == ["crc", "manifest"]
    done = cli("check", "digits", "--skip", "crc", "--json")
    assert "crc" not in done.json["validators"]
    assert {"inflation", "manifest", "registry", "schema", "source"} < {*done.json["validators"]}


def test_a_warning_fails_only_when_asked(cli, tmp_path) -> None:
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    done = cli("check", tmp_path / "empty.tfrecord", "--json")
    assert done.code == 0
    assert [each["code"] for each in done.json["findings"]] == ["SHD007"]
    assert cli("check", tmp_path / "empty.tfrecord", "--fail-on", "warning").code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("no/such/file",), 2, "no file matches `no/such/file`"),
        (("mnist",), 2, "no dataset `mnist`"),
        (("digits@1.0.0",), 2, "no release `digits@1.0.0`"),
        (("digits", "--only", "cRc"), 2, "did you mean `crc`"),
        (("digits", "--raw", "none"), 2, "/none` does not exist"),
    ],
)
def test_bad_targets_and_options_are_refused_in_one_line(
    cli, built, arguments, code, message
) -> None:
    done = cli("check", *arguments)
    assert done.code == code, done.err
    assert message in done.err
    assert len(done.err.splitlines()) <= 2


@pytest.mark.parametrize(
    "name", ["[", "[red]x[", "a\x1b[31mb", "new\nline", "\u202egnp", ":skull:"]
)
def test_hostile_file_names_are_escaped(cli, tmp_path, name) -> None:
    path = tmp_path / f"{name}.tfrecord"
    path.write_bytes(b"this is no record")
    for form in ((), ("--json",)):
        done = cli("check", path, *form)
        assert done.code == 1, done.err
        assert "CRC008" in done.out
        for character in ("\x1b", "\u202e"):
            assert character not in done.out + done.err
    assert any(name.isprintable() and name in line for line in done.out.splitlines()) or (
        not name.isprintable()
    )


def test_cached_says_how_many_shards_were_not_read(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))
    for number in range(2):
        path = tmp_path / f"x-{number:05d}-of-00002.tfrecord"
        path.write_bytes(framed(b"\n\0"))
        os.utime(path, (1e9, 1e9))
    for cached in (0, 2):
        done = cli("check", tmp_path / "x@2", "--cached")
        assert done.code == 0, done.out
        assert done.out.splitlines()[1] == f"cached: {cached} of 2 shards were not read again"
    assert cli("check", tmp_path / "x@2", "--cached", "--json").json["summary"]["cached"] == 2
    shown = cli("check", tmp_path / "x@2").out
    assert ("cached: " not in shown, "not run: schema (" in shown) == (True, True)


def test_a_copy_of_a_build_is_judged_by_what_lies_in_it(cli, built, tmp_path, monkeypatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(built / "data/digits", elsewhere / "copy")
    monkeypatch.chdir(elsewhere)
    note = "checked against the `manifest.json` and the `schema.pbtxt` in its folder"
    done = cli("check", "copy")
    assert (done.code, f"note: {note}\n" in done.out) == (0, True)
    index = "index/digits-train.tfrecord-00000-of-00002.index"
    (elsewhere / "copy" / index).unlink()
    done = cli("check", "copy", "--format", "markdown")
    assert (done.code, f"- note: ``{note}``\n" in done.out) == (1, True)
    done = cli("check", "copy", "--format", "github")
    assert (done.code, f"::error file=copy/{index},title=SHD001" in done.out) == (1, True)


def test_the_folder_of_another_registry_is_named_in_full(cli, built, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = cli("check", built / "data/digits", "--json", "--only", "crc").json
    assert (found["target"], found["folder"]) == ("digits", str(built / "data/digits"))
    found = cli("-C", built, "check", built / "data/digits", "--json", "--only", "crc").json
    assert (found["target"], found["folder"]) == ("digits", "data/digits")
