"""`tfrecreg release`: numbers, conflicts, the gate, and what is never half there."""

from __future__ import annotations

import gzip
import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from blake3 import blake3
from tests_support import flip, tree

from tfrecreg.core.registry.manifest import SCHEMA_NAME, parse_manifest, render_manifest, seal


def rewrite(raw: Path, role: str, change) -> None:
    """Change the bytes of one raw file of the split `train`."""
    kind = "images-idx3" if role == "images" else "labels-idx1"
    path = raw / f"train-{kind}-ubyte.gz"
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))


def append(raw: Path) -> None:
    """One more image, a copy of the first, turned upside down."""

    def images(data: bytes) -> bytes:
        count, *dims = struct.unpack(">3I", data[4:16])
        first = data[16 : 16 + dims[0] * dims[1]]
        return data[:4] + struct.pack(">3I", count + 1, *dims) + data[16:] + first[::-1]

    def labels(data: bytes) -> bytes:
        (count,) = struct.unpack(">I", data[4:8])
        return data[:4] + struct.pack(">I", count + 1) + data[8:] + data[8:9]

    rewrite(raw, "images", images)
    rewrite(raw, "labels", labels)


def relabel(data: bytes) -> bytes:
    return data[:8] + bytes([(data[8] + 1) % 10]) + data[9:]


def test_a_release_is_a_manifest_and_a_schema_that_name_the_bytes(cli, built) -> None:
    done = cli("release", "digits", "--version", "1.0.0", "--note", "the first", "--json")
    assert done.code == 0, done.err
    assert done.json["created"] is True
    folder = built / "registry/digits/1.0.0"
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "schema.pbtxt"]
    manifest = json.loads((folder / "manifest.json").read_bytes())
    build = json.loads((built / "data/digits/manifest.json").read_bytes())
    assert manifest["release"]["build"] == build["digest"]
    assert manifest["content"] == build["content"]
    assert manifest["provenance"]["note"] == "the first"
    assert "provenance" not in build
    assert cli("check", "digits@1.0.0").code == 0


def test_auto_is_a_version_as_it_is_a_bump(cli, built, raw) -> None:
    for change, number in ((None, "1.0.0"), (append, "1.1.0"), (None, "1.1.0")):
        if change is not None:
            change(raw)
            assert cli("build", "digits").code == 0
        done = cli("release", "digits", "--version", "auto", "--json")
        assert (done.code, done.json["reference"]) == (0, f"digits@{number}")
    assert cli("release", "digits", "--version", "auto", "--bump", "major").code == 2
    assert cli("release", "digits", "--version", "automatic").code == 2


def test_the_same_release_again_is_exit_0_and_changes_nothing(cli, built) -> None:
    assert cli("release", "digits", "--version", "1.0.0").code == 0
    before = tree(built / "registry")
    again = cli("release", "digits", "--version", "1.0.0")
    assert again.code == 0
    assert "already exists with this content: nothing to do" in again.out
    assert tree(built / "registry") == before
    auto = cli("release", "digits", "--bump", "auto")
    assert auto.code == 0
    assert "digits@1.0.0 already exists" in auto.out
    assert tree(built / "registry") == before


def test_what_is_released_already_gets_no_other_number_by_counting(cli, built) -> None:
    assert cli("release", "digits", "--version", "1.0.0").code == 0
    before = tree(built / "registry")
    done = cli("release", "digits", "--bump", "major")
    assert done.code == 0
    assert done.out == "digits@1.0.0 already exists with this content: nothing to do\n"
    assert tree(built / "registry") == before
    assert cli("release", "digits", "--bump", "patch", "--json").json["created"] is False


def test_other_content_under_the_same_number_is_refused(cli, built, raw) -> None:
    assert cli("release", "digits", "--version", "1.0.0").code == 0
    before = tree(built / "registry")
    rewrite(raw, "labels", relabel)
    assert cli("build", "digits").code == 0
    done = cli("release", "digits", "--version", "1.0.0")
    assert done.code == 2
    assert "error: `digits@1.0.0` exists with other content: it has content " in done.err
    assert "hint: releases never change" in done.err
    assert tree(built / "registry") == before


@pytest.mark.parametrize(
    ("change", "level", "version", "reason"),
    [
        (None, "patch", "1.0.1", "the same examples in another layout (2 shards)"),
        ("append", "minor", "1.1.0", "1 example was added to the split `train`"),
        (
            "relabel",
            "major",
            "2.0.0",
            "1 example of the split `train` was changed in `image/class/label`",
        ),
    ],
)
def test_auto_takes_the_smallest_legal_number(
    cli, built, raw, change, level, version, reason
) -> None:
    assert cli("release", "digits", "--version", "1.0.0").code == 0
    shards = "2"
    if change is None:
        shards = "1"
    elif change == "append":
        append(raw)
    else:
        rewrite(raw, "labels", relabel)
    assert cli("build", "digits", "--shards", shards).code == 0
    done = cli("release", "digits", "--bump", "auto", "--json")
    assert done.code == 0, done.err
    assert done.json["reference"] == f"digits@{version}"
    assert done.json["change"] == level
    assert reason in done.json["reasons"]
    log = cli("log", "digits").out
    assert log.index(f"digits@{version}") < log.index("digits@1.0.0")
    assert reason in log
    assert f"digits {version} ({level} after 1.0.0): " in log
    releases = cli("log", "digits", "--json").json["releases"]
    assert [each["parent"] for each in releases] == ["1.0.0", None]


@pytest.mark.parametrize("said", [("--version", "1.0.1"), ("--bump", "minor")])
def test_a_number_that_understates_is_refused(cli, built, raw, said) -> None:
    assert cli("release", "digits", "--version", "1.0.0").code == 0
    rewrite(raw, "labels", relabel)
    assert cli("build", "digits").code == 0
    done = cli("release", "digits", *said)
    assert done.code == 1
    (told,) = [line for line in done.err.splitlines() if line.startswith("error")]
    assert told.startswith("error REG001 understated-number: `1.")
    assert "` understates the change since 1.0.0: it is major, not " in told
    assert done.err.count("hint: ") == 1
    assert "    hint: the smallest legal number is 2.0.0" in done.err
    assert not (built / "registry/digits/1.0.1").exists()
    document = cli("release", "digits", *said, "--json").json
    assert (document["status"], document["error"]["exit_code"]) == ("fail", 1)
    assert [each["code"] for each in document["findings"]] == ["REG001"]


def test_a_first_release_may_have_any_number(cli, built) -> None:
    assert cli("release", "digits", "--version", "0.3.0").code == 0
    assert "digits 0.3.0 (the first)" in cli("log", "digits").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("digits", "--version", "1.0"), "1.0"),
        (("digits", "--version", "1.0.0", "--bump", "major"), "exclude each other"),
        (("digit", "--version", "1.0.0"), "did you mean `digits`"),
    ],
)
def test_bad_numbers_and_names_are_refused(cli, built, arguments, message) -> None:
    done = cli("release", *arguments)
    assert done.code == 2
    assert message in done.err
    assert not (built / "registry").exists()


def test_a_damaged_build_is_not_released(cli, built) -> None:
    flip(built / "data/digits/digits-test.tfrecord-00000-of-00002", 40)
    done = cli("release", "digits", "--version", "1.0.0")
    assert done.code == 1
    assert "error CRC002" in done.err
    assert "the gate failed, so nothing was released" in done.err
    assert not (built / "registry").exists()


def test_raw_data_that_changed_after_the_build_are_noticed(cli, built, raw) -> None:
    assert cli("build", "digits").code == 0
    os.utime(raw / "train-labels-idx1-ubyte.gz", ns=(1, 1))
    done = cli("release", "digits", "--version", "1.0.0")
    assert done.code == 2
    expected = "the raw file `train-labels-idx1-ubyte.gz` changed after `digits` was built"
    assert expected in done.err


def test_a_schema_that_means_something_else_than_at_the_build_is_noticed(cli, built) -> None:
    schema = built / "schemas/digits.pbtxt"
    schema.write_text(schema.read_text().replace("max: 255", "max: 9"))
    done = cli("release", "digits", "--version", "1.0.0")
    assert done.code == 2
    assert (
        "error: `schemas/digits.pbtxt` is not the schema that `digits` was built with" in done.err
    )
    assert "hint: tfrecreg build digits" in done.err
    assert "to compare" not in done.err
    assert not (built / "registry/digits").exists()


def test_a_comment_in_the_schema_needs_no_build(cli, built, raw) -> None:
    schema = built / "schemas/digits.pbtxt"
    text = schema.read_bytes()
    schema.write_bytes(b"# reviewed\n" + text.replace(b"  ", b" "))
    for each in raw.iterdir():
        each.unlink()  # so that nobody could build again
    raw.rmdir()
    done = cli("release", "digits", "--version", "1.0.0")
    assert done.code == 0, done.err
    assert "`schemas/digits.pbtxt` was edited, but its meaning did not change" in done.err
    assert (built / "registry/digits/1.0.0/schema.pbtxt").read_bytes() == text
    manifest = json.loads((built / "registry/digits/1.0.0/manifest.json").read_bytes())
    assert manifest["schema"] == {"blake3": blake3(text).hexdigest(), "bytes": len(text)}
    for reference in ("digits", "digits@1.0.0"):
        assert cli("check", reference).code == 0
    assert cli("audit").code == 0
    again = cli("release", "digits")
    assert "digits@1.0.0 already exists with this content: nothing to do" in again.out


def as_earlier_versions_built_it(built: Path) -> None:
    """Without the schema in the build's folder."""
    (built / "data/digits/schema.pbtxt").unlink()
    path = built / "data/digits/manifest.json"
    manifest = parse_manifest(path.read_bytes(), path.name)
    files = [entry for entry in manifest.files if entry.path != SCHEMA_NAME]
    path.write_bytes(render_manifest(seal(replace(manifest, files=files))))


def test_the_text_of_then_comes_from_the_build(cli, built) -> None:
    schema = built / "schemas/digits.pbtxt"
    text = schema.read_bytes()
    schema.write_bytes(text + b"# reviewed\n")
    assert cli("release", "digits", "--version", "1.0.0").code == 0
    assert (built / "registry/digits/1.0.0/schema.pbtxt").read_bytes() == text
    assert not (built / ".tfrecreg/cache/schemas").exists()


def test_the_text_of_then_comes_from_the_release_before(cli, built) -> None:
    as_earlier_versions_built_it(built)
    assert cli("release", "digits", "--version", "1.0.0").code == 0
    schema = built / "schemas/digits.pbtxt"
    text = schema.read_bytes()
    schema.write_bytes(text + b"# reviewed\n")
    assert cli("release", "digits", "--version", "1.0.1").code == 0
    assert (built / "registry/digits/1.0.1/schema.pbtxt").read_bytes() == text


def test_a_text_of_then_that_nobody_has_is_not_guessed(cli, built) -> None:
    schema = built / "schemas/digits.pbtxt"
    schema.write_text(schema.read_text() + "# reviewed\n")
    as_earlier_versions_built_it(built)
    manifest = json.loads((built / "data/digits/manifest.json").read_bytes())
    cached = built / f".tfrecreg/cache/schemas/{manifest['schema']['blake3']}.pbtxt"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(schema.read_bytes())
    done = cli("release", "digits", "--version", "1.0.0")
    assert done.code == 2
    assert (
        "error: `schemas/digits.pbtxt` is not the schema that `digits` was built with, and the "
        "schema of the build is not on this machine"
    ) in done.err
    assert "hint: tfrecreg build digits" in done.err


def test_an_old_release_stays_whole_when_the_build_moves_on(cli, built, raw) -> None:
    assert cli("release", "digits", "--version", "1.0.0").code == 0
    rewrite(raw, "labels", relabel)
    assert cli("build", "digits", "--release", "2.0.0").code == 0
    for reference in ("digits@1.0.0", "digits@2.0.0", "digits@1.*", "digits@latest"):
        assert cli("check", reference).code == 0, reference
    assert cli("show", "digits@latest", "--json").json["reference"] == "digits@2.0.0"
    assert cli("show", "digits@1.0.0", "--json").json["folder"] == "versions/digits/1.0.0"


@pytest.mark.parametrize(
    ("harm", "code", "message"),
    [
        (lambda data: data[: len(data) // 2], 2, "is not a manifest: "),
        (lambda data: data.replace(b'"format_version":1', b'"format_version":99'), 3, "format 99"),
        (lambda data: data.replace(b'"png"', b'"gif"'), 2, "was changed after it was sealed"),
    ],
)
def test_a_manifest_that_is_damaged_is_refused_by_name(cli, built, harm, code, message) -> None:
    assert cli("release", "digits", "--version", "1.0.0").code == 0
    path = built / "registry/digits/1.0.0/manifest.json"
    path.write_bytes(harm(path.read_bytes()))
    for command in (("show", "digits@1.0.0"), ("check", "digits@1.0.0"), ("log", "digits")):
        done = cli(*command)
        assert done.code == code, done.err
        assert message in done.err
        assert "registry/digits/1.0.0/manifest.json" in done.err
    listed = cli("list")
    assert listed.code == 0
    assert message in listed.out


@pytest.mark.medium
def test_a_wrong_pointer_of_dvc_is_found_and_written_again(cli, raw, tmp_path) -> None:
    pytest.importorskip("dvc", reason="the extra `dvc` is not installed")
    root = tmp_path / "tracked"
    assert cli("init", root).code == 0
    assert cli("-C", root, "build", "digits", "--source", "mnist", "--raw", raw).code == 0
    assert cli("-C", root, "release", "digits", "--bump", "auto").code == 0
    pointer = root / "data/digits.dvc"
    right = pointer.read_text()
    value, other = right.partition("md5: ")[2].split()[0], f"{'0' * 32}.dir"
    should = f"it should name `{value}`, the bytes of `digits@1.0.0`"
    pointer.write_text(right.replace(value, other))
    checks = [("check", each) for each in ("digits", "digits@1.0.0", root / "data/digits")]
    for words in [*checks, ("audit",)]:
        done = cli("-C", root, *words, "--json")
        (finding,) = done.json["findings"]
        assert (done.code, finding["code"]) == (1, "REG011")
        assert finding["message"] == f"{should}, but names `{other}`"
        assert "`dvc add data/NAME`" in finding["hint"]
    for arguments in (("--bump", "auto"), ("--version", "1.0.0")):
        done = cli("-C", root, "release", "digits", *arguments)
        assert (done.code, done.out) == (1, "")
        assert done.err == (
            "error: `digits@1.0.0` exists, but `data/digits.dvc` is not its pointer: "
            f"{should}, but names `{other}`\n"
            "hint: `dvc add data/digits` writes it again\n"
        )
    pointer.unlink()
    done = cli("-C", root, "release", "digits", "--bump", "auto")
    assert done.code == 1
    assert f"`data/digits.dvc` is not its pointer: it is missing: {should}\n" in done.err
    program = [sys.executable, "-m", "dvc", "add", "--quiet", "data/digits"]
    subprocess.run(program, cwd=root, check=True, timeout=120)
    assert pointer.read_text() == right
    assert cli("-C", root, "audit").code == 0
    done = cli("-C", root, "release", "digits", "--bump", "auto")
    assert (done.code, done.err) == (0, "")
    assert done.out == "digits@1.0.0 already exists with this content: nothing to do\n"
