"""A build is judged alike by its reference, its folder, a copy of the folder, and its shards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from check_support import Document, document, framed, places

from tfrecreg.builtin.look.digest import digest
from tfrecreg.builtin.training.open import data_source
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.find import find_target
from tfrecreg.core.values.errors import (
    ManifestError,
    NewerFormatError,
    NotHereError,
    RefusedError,
    UsageError,
)

FOLDER = "data/digits"
TRAIN = "digits-train.tfrecord-00000-of-00002"
OTHER = "digits-train.tfrecord-00001-of-00002"


def cut(folder: Path) -> None:
    """Cut a shard after its third record."""
    data = (folder / TRAIN).read_bytes()
    (folder / TRAIN).write_bytes(data[: places(data)[3][0]])


def swap(folder: Path) -> None:
    one, two = (folder / TRAIN).read_bytes(), (folder / OTHER).read_bytes()
    (folder / TRAIN).write_bytes(two)
    (folder / OTHER).write_bytes(one)


def lose_index(folder: Path) -> None:
    (folder / f"index/{TRAIN}.index").unlink()


def damage_index(folder: Path) -> None:
    path = folder / f"index/{TRAIN}.index"
    path.write_bytes(path.read_bytes()[:-1] + b"\0")


def lose_shard(folder: Path) -> None:
    (folder / TRAIN).unlink()


def add_shard(folder: Path) -> None:
    shutil.copy(folder / TRAIN, folder / "more.tfrecord")


def relabel(folder: Path) -> None:
    (folder / "labels.json").write_text("{}")


FAULTS: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "cut": (cut, ["SHD002", "SHD003"]),
    "swapped": (swap, ["SHD004"]),
    "an index lost": (lose_index, ["SHD001"]),
    "an index damaged": (damage_index, ["SHD002"]),
    "a shard lost": (lose_shard, ["SHD001"]),
    "one more shard": (add_shard, ["SHD005"]),
    "labels changed": (relabel, ["SHD002"]),
}


def brief(found: Document) -> list[tuple[str, str]]:
    return [(each["code"], each["fingerprint"]) for each in found["findings"]]


def codes(found: Document) -> list[str]:
    return [each["code"] for each in found["findings"]]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_folder_is_judged_as_its_reference(
    digits_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    do, expected = FAULTS[fault]
    folder = digits_registry / FOLDER
    do(folder)
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(folder)
    only = ("crc", "manifest", "registry", "schema")
    by_reference = document(["digits"], digits_registry, only=only)
    assert sorted(set(codes(by_reference))) == expected
    for path in (folder, f"{folder}/", ".", "..//digits", tmp_path / "link"):
        assert document([path], only=only) == by_reference
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    by_copy = document([copy], only=("crc", "manifest", "schema"))
    assert brief(by_copy) == brief(by_reference)
    assert by_copy["folder"] == str(copy)
    assert by_copy["notes"] == [
        "checked against the `manifest.json` and the `schema.pbtxt` in its folder"
    ]


@pytest.mark.parametrize("fault", [name for name in FAULTS if name != "labels changed"])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_shards_are_judged_by_the_manifest_beside_them(
    digits_registry: Path, tmp_path: Path, fault: str, elsewhere: bool
) -> None:
    do, expected = FAULTS[fault]
    folder = digits_registry / FOLDER
    if elsewhere:
        folder = folder.rename(tmp_path / "copy")
    do(folder)
    found = document([f"{folder}/*tfrecord*"], digits_registry, only=("crc", "manifest"))
    assert sorted(set(codes(found))) == expected
    if fault not in ("a shard lost", "one more shard", "swapped"):
        sound = document([folder / OTHER], only=("crc", "manifest"))
        assert codes(sound) == []
        assert sound["measures"]["manifest.unnamed"] == 3
        named = document([folder / TRAIN], only=("manifest",))
        assert sorted(set(codes(named))) == expected


@pytest.mark.parametrize("named", [TRAIN, "*tfrecord*"])
def test_other_files_of_the_build_are_judged_beside_named_shards(
    digits_registry: Path, named: str
) -> None:
    folder = digits_registry / FOLDER
    (folder / "labels.json").write_bytes(b"{}\n")
    (folder / "schema.pbtxt").unlink()
    found = document([folder / named], digits_registry, only=("manifest",))
    places = {(each["code"], each["locations"][0]["shard"]) for each in found["findings"]}
    assert places == {("SHD001", "schema.pbtxt"), ("SHD002", "labels.json")}


@pytest.mark.medium
def test_shards_are_held_against_the_schema_of_their_build(digits_registry: Path) -> None:
    folder = digits_registry / FOLDER
    schema = digits_registry / "schemas/digits.pbtxt"
    schema.write_text(schema.read_text().replace("image/format", "image/fmt"))
    for target in ("digits", folder, folder / TRAIN, f"{folder}/*train*"):
        found = document([target], digits_registry, only=("schema",))
        assert set(codes(found)) == {"SCH002", "SCH005"}
    schema.unlink()
    for target in ("digits", folder / TRAIN):
        found = document([target], digits_registry)
        assert found["status"] == "error"
        assert "`digits` has no schema" in found["errors"][0]
        with pytest.raises(NotHereError, match="`digits` has no schema"):
            data_source(str(target), "train", registry=digits_registry)
    named = document([folder], digits_registry, schema=str(folder / "schema.pbtxt"))
    assert named["status"] == "pass"


@pytest.mark.medium
def test_the_gate_of_its_dataset_judges_a_folder(digits_registry: Path, tmp_path: Path) -> None:
    with (digits_registry / "tfrecreg.toml").open("a") as file:
        file.write('[gates.digits]\nseverity = { SHD001 = "info" }\n')
    folder = digits_registry / FOLDER
    lose_index(folder)
    for target in ("digits", folder, folder / TRAIN):
        found = document([target], digits_registry if target == "digits" else None)
        assert (codes(found), found["status"]) == (["SHD001"], "pass")
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert document([copy])["status"] == "fail"
    assert document([copy], digits_registry)["status"] == "pass"


def test_the_copy_of_a_release_is_looked_at_itself(digits_registry: Path) -> None:
    copy = digits_registry / "versions/digits/1.0.0"
    # Its files are hard links to those of the build.
    whole = (copy / TRAIN).read_bytes()
    (copy / TRAIN).unlink()
    (copy / TRAIN).write_bytes(whole[: places(whole)[3][0]])
    assert document(["digits@1.0.0"], digits_registry)["status"] == "pass"
    found = document([copy])
    assert (found["target"], codes(found)) == ("digits@1.0.0", ["SHD002", "SHD003", "SRC019"])
    assert document([digits_registry / "registry/digits/1.0.0"])["status"] == "pass"


def test_a_folder_of_builds_is_all_of_them(
    digits_registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (digits_registry / FOLDER / "labels.json").unlink()
    shutil.copytree(digits_registry / FOLDER, digits_registry / "copy")
    expected = [("copy", "fail"), ("digits", "fail"), ("digits@1.0.0", "pass")]
    monkeypatch.chdir(digits_registry)
    reports = check(["."])
    assert sorted((each.target, each.status) for each in reports) == expected
    reports = check([f"{digits_registry}/"])
    expected[0] = (str(digits_registry / "copy"), "fail")
    assert sorted((each.target, each.status) for each in reports) == sorted(expected)


def test_files_of_a_build_and_others_are_judged_apart(
    digits_registry: Path, tmp_path: Path
) -> None:
    (tmp_path / "bare.tfrecord").write_bytes(framed(b"x"))
    cut(digits_registry / FOLDER)
    reports = check([digits_registry / FOLDER / TRAIN, tmp_path / "bare.tfrecord"])
    assert [(each.target, each.status) for each in reports] == [
        (str(digits_registry / FOLDER / TRAIN), "fail"),
        (str(tmp_path / "bare.tfrecord"), "pass"),
    ]


def spoil(data: bytes) -> bytes:
    return data.replace(b'"records":1', b'"records":2', 1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (spoil, ManifestError, "was changed after it was sealed"),
        (lambda data: data[:300], ManifestError, "is not a manifest"),
        (lambda data: b"", ManifestError, "is not a manifest"),
        (lambda data: bytes(len(data)), ManifestError, "is not a manifest"),
        (lambda data: b"words", ManifestError, "is not a manifest"),
        (
            lambda data: data.replace(b'"format_version":1', b'"format_version":99'),
            NewerFormatError,
            "has manifest format 99",
        ),
    ],
    ids=["edited", "cut", "empty", "zeroed", "words", "newer"],
)
def test_a_damaged_manifest_is_never_passed_over(
    digits_registry: Path,
    tmp_path: Path,
    change: Callable[[bytes], bytes],
    error: type[Exception],
    message: str,
) -> None:
    folder = digits_registry / FOLDER
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    for path in (folder / "manifest.json", copy / "manifest.json"):
        path.write_bytes(change(path.read_bytes()))
    for target in (folder, copy, folder / TRAIN, copy / TRAIN, f"{copy}/*"):
        with pytest.raises(error, match=message):
            check([target])
        with pytest.raises(error, match=message):
            find_target(target)
        with pytest.raises(error, match=message):
            data_source(target, "train")
    with pytest.raises(error, match=message):
        digest(copy)


def test_the_manifest_of_another_tool_is_told_and_not_used(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(framed(b"x"))
    (tmp_path / "manifest.json").write_text(json.dumps({"format_version": 3, "shards": ["a"]}))
    for target in (tmp_path, tmp_path / "a.tfrecord"):
        found = document([target])
        assert found["status"] == "pass"
        assert found["notes"] == [
            f"`{tmp_path}/manifest.json` is not used: it is not a manifest of tfrecreg"
        ]
    assert len(data_source(tmp_path, raw=True)) == 1


def test_unlisted_strangers_in_data_stay_bare_files(digits_registry: Path) -> None:
    folder = digits_registry / "data/other"
    folder.mkdir()
    (folder / "a.tfrecord").write_bytes(framed(b"x"))
    assert document([folder])["status"] == "pass"


@pytest.mark.parametrize("fault", ["cut", "a shard lost", "one more shard"])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_data_source_of_shards_holds_them_to_their_manifest(
    digits_registry: Path, tmp_path: Path, fault: str, elsewhere: bool
) -> None:
    folder = digits_registry / FOLDER
    if elsewhere:
        folder = folder.rename(tmp_path / "copy")
    assert len(data_source(f"{folder}/*train*", "train")) == 200
    FAULTS[fault][0](folder)
    with pytest.raises((RefusedError, UsageError)):
        data_source(f"{folder}/*tfrecord*", "train")
    if fault != "one more shard":
        with pytest.raises((RefusedError, UsageError)):
            data_source(folder, "train")
    assert len(data_source(folder / OTHER, "train")) == 100


def test_a_data_source_of_shards_verifies_their_digests(digits_registry: Path) -> None:
    folder = digits_registry / FOLDER
    data = bytearray((folder / TRAIN).read_bytes())
    (folder / TRAIN).write_bytes(bytes(data[:-1]) + bytes([data[-1] ^ 1]))
    for target in ("digits", folder, folder / TRAIN):
        with pytest.raises(RefusedError, match="should have the blake3"):
            data_source(target, "train", registry=digits_registry, verify=True)


def test_a_data_source_of_shards_has_the_schema_and_the_keys_of_its_build(
    digits_registry: Path,
) -> None:
    folder = digits_registry / FOLDER
    whole = data_source("digits", "train", registry=digits_registry, with_key=True)
    for target in (folder, folder / TRAIN):
        key, element = data_source(target, "train", with_key=True)[0]
        assert key == whole[0][0]
        assert element["image/class/label"] == whole[0][1]["image/class/label"]
        assert element["image/class/label"].shape == ()


@pytest.mark.parametrize("fault", ["cut", "an index lost", "one more shard"])
def test_shards_behind_urls_are_judged_by_the_manifest_beside_them(
    memory: Any, digits_registry: Path, fault: str
) -> None:
    do, expected = FAULTS[fault]
    do(digits_registry / FOLDER)
    memory.put(str(digits_registry / FOLDER), "/lake/digits", recursive=True)
    for target in ("memory://lake/digits", "memory://lake/digits/*tfrecord*"):
        found = document([target], only=("crc", "manifest"))
        assert sorted(set(codes(found))) == expected
    sound = document([f"memory://lake/digits/{OTHER}"], only=("crc", "manifest"))
    assert (codes(sound), sound["measures"]["manifest.unnamed"]) == ([], 3)


def test_a_damaged_manifest_beside_files_hides_no_other_target(
    digits_registry: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(digits_registry / FOLDER, tmp_path / "copy"))
    (copy / "manifest.json").write_bytes(b"")
    for broken in (copy, copy / TRAIN):
        sound, unjudged = check(["digits", broken], registry=digits_registry)
        assert (sound.target, sound.status) == ("digits", "pass")
        assert (unjudged.target, unjudged.status) == (str(broken), "error")
        assert f"`{copy}/manifest.json` is not a manifest" in unjudged.errors[0]
