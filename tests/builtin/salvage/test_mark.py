"""The mark of a salvaged set: SHD009, which the gate refuses unless it is told otherwise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from check_support import document
from salvage_support import filler, make, put, rescue

from tfrecreg.builtin.salvage.run import salvage
from tfrecreg.core.registry.manifest import parse_manifest, read_mark, render_manifest, seal
from tfrecreg.core.storage.local import LocalStorage


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with a shard that was damaged, and one that was not."""
    made = make([filler(number) for number in range(20)])
    data = bytearray(made.data)
    data[550] ^= 1
    put(tmp_path, bytes(data), name="d-train.tfrecord-00000-of-00002")
    put(tmp_path, made.data, name="d-train.tfrecord-00001-of-00002")
    salvage([str(tmp_path / "d-*")], tmp_path / "out")
    return tmp_path / "out"


def findings(*targets: Path, registry: Path | None = None) -> dict[str, Any]:
    found = document(targets, registry, only=("manifest",))
    return {"status": found["status"], "codes": [each["code"] for each in found["findings"]]} | {
        "messages": [each["message"] for each in found["findings"]]
    }


def test_shard_that_lost_records_is_found(out: Path) -> None:
    found = findings(out)
    assert (found["status"], found["codes"]) == ("fail", ["SHD009"])
    assert found["messages"] == ["it was cut out of a damaged shard: 1 record lost"]


def test_shard_that_kept_its_bytes_is_not(out: Path) -> None:
    (out / "d-train.tfrecord-00000-of-00002").unlink()
    assert "SHD009" not in findings(out)["codes"]


def test_shard_that_was_renamed_is_found_all_the_same(out: Path) -> None:
    (out / "d-train.tfrecord-00000-of-00002").rename(out / "all.tfrecord")
    found = findings(out / "all.tfrecord")
    assert found["messages"] == ["it was cut out of a damaged shard: renamed since"]


@pytest.mark.parametrize(("changed", "lost"), [(slice(532, None), 13), (slice(532, 533), 0)])
def test_shards_that_lost_no_byte_or_were_repaired_are_marked(
    tmp_path: Path, changed: slice, lost: int
) -> None:
    made = make([filler(number) for number in range(20)])
    data = bytearray(made.data)
    data[changed] = b"\xff" if lost == 0 else b""
    rescue(put(tmp_path, bytes(data), made.index), tmp_path / "out")
    assert findings(tmp_path / "out")["messages"] == [
        f"it was cut out of a damaged shard: {lost} records lost"
    ]


def test_sound_shards_are_not_marked(tmp_path: Path) -> None:
    made = make([filler(number) for number in range(20)])
    rescue(put(tmp_path, made.data), tmp_path / "out")
    assert read_mark(LocalStorage(tmp_path), "out") is None
    assert findings(tmp_path / "out") == {"status": "pass", "codes": [], "messages": []}


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda text: text[:-20], "line "),
        (lambda text: text.replace('"format_version": 1', '"format_version": 2'), "format"),
        (lambda text: text.replace('"exact"', '"exakt"'), "it is incomplete"),
    ],
)
def test_damaged_mark_marks_the_whole_folder(out: Path, damage: Any, why: str) -> None:
    mark = out / "salvage.json"
    mark.write_text(damage(mark.read_text()))
    found = findings(out)
    assert found["codes"] == ["SHD009", "SHD009"]
    assert all(why in message for message in found["messages"])


def test_file_of_that_name_that_is_a_strangers_marks_nothing(out: Path) -> None:
    (out / "salvage.json").write_text(json.dumps({"ships": 3}))
    assert findings(out)["codes"] == []


def test_gate_can_be_told(out: Path, digits_registry: Path) -> None:
    toml = digits_registry / "tfrecreg.toml"
    toml.write_text(toml.read_text() + '\n[gates.default.severity]\nSHD009 = "warning"\n')
    found = findings(out, registry=digits_registry)
    assert (found["status"], found["codes"]) == ("pass", ["SHD009"])


def test_build_that_was_adopted_from_a_salvaged_set(digits_registry: Path) -> None:
    path = digits_registry / "data/digits/manifest.json"
    manifest = parse_manifest(path.read_bytes(), "manifest.json")
    assert b'"salvaged"' not in path.read_bytes()
    path.write_bytes(render_manifest(seal(replace(manifest, salvaged="ab" * 32))))
    assert parse_manifest(path.read_bytes(), "manifest.json").salvaged == "ab" * 32
    found = document(["digits"], digits_registry, only=("manifest",))
    assert found["status"] == "fail"
    (finding,) = found["findings"]
    assert (finding["code"], finding["message"], finding["fingerprint"]) == (
        "SHD009",
        "it was adopted from salvaged files",
        "SHD009:digits:::",
    )
