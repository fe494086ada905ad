"""Exports in Croissant's JSON-LD: the document, the files, and what mlcroissant says of it."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from foreign_support import SEQUENCES, put

import tfrecreg
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.values.errors import UsageError

from .conftest import run_python

READER = Path(__file__).parent / "read_croissant.py"

CONFIG = 'license = "CC0-1.0"\ndescription = "Über digits."\ncitation = "@misc{digits}"\n'


@pytest.fixture
def digits(digits_registry: Path) -> tfrecreg.Registry:
    (digits_registry / "datasets").mkdir(exist_ok=True)
    (digits_registry / "datasets/digits.toml").write_text(CONFIG, encoding="utf-8")
    return tfrecreg.open(digits_registry)


def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "croissant.json").read_text("ascii"))
    return found


def record_set(made: dict[str, Any], identity: str) -> dict[str, Any]:
    (found,) = (each for each in made["recordSet"] if each["@id"] == identity)
    return dict(found)


def test_files_have_their_digests(digits: tfrecreg.Registry, tmp_path: Path) -> None:
    result = digits.find("digits@latest").export(tmp_path / "out", to="croissant")
    made = document(tmp_path / "out")
    *files, shards = made["distribution"]
    assert len(files) == 4
    for each in files:
        data = (tmp_path / "out" / each["contentUrl"]).read_bytes()
        assert each["sha256"] == hashlib.sha256(data).hexdigest()
        assert each["contentSize"] == f"{len(data)} B"
    assert shards["includes"] == "digits-*.tfrecord-*"
    assert (result.version, result.notes, result.shards) == ("1.0.0", (), {"linked": 4})
    schema = (tmp_path / "out/schema.pbtxt").read_bytes()
    release = digits.find("digits@1.0.0")
    assert blake3(schema).hexdigest() == release.manifest.schema.blake3


def test_the_document_says_what_the_dataset_is(digits: tfrecreg.Registry, tmp_path: Path) -> None:
    digits.find("digits@1.0.0").export(tmp_path / "out", to="croissant")
    made = document(tmp_path / "out")
    manifest = digits.find("digits@1.0.0").manifest
    assert manifest.provenance is not None
    assert {name: made[name] for name in ("name", "version", "license", "citeAs")} == {
        "name": "digits",
        "version": "1.0.0",
        "license": "CC0-1.0",
        "citeAs": "@misc{digits}",
    }
    assert made["description"] == "Über digits."
    assert made["identifier"] == f"tfrecreg:content:{manifest.content}"
    assert made["datePublished"] == manifest.provenance.created
    fields = {each["name"]: each for each in record_set(made, "records")["field"]}
    assert fields["image/encoded"]["dataType"] == "sc:ImageObject"
    assert fields["image/height"]["dataType"] == "sc:Integer"
    classes = {"field": {"@id": "classes/image/class/label/number"}}
    assert fields["image/class/label"]["references"] == classes
    assert not any("repeated" in each for each in fields.values())
    pattern = fields["split"]["source"]["transform"]["regex"]
    found = [re.match(pattern, each["name"]) for each in made["distribution"][:-1]]
    assert [each[1] for each in found if each] == ["test", "test", "train", "train"]


def test_a_gzip_build_stays_as_it_is(digits: tfrecreg.Registry, tmp_path: Path) -> None:
    raw = str(Path(digits.storage.root) / "raw")
    packed = digits["packed"].build(source="mnist", raw=raw, compression="gzip")
    result = packed.export(tmp_path / "out", to="croissant")
    assert result.shards == {"linked": 2}
    for each in document(tmp_path / "out")["distribution"][:-1]:
        data = (tmp_path / "out" / each["contentUrl"]).read_bytes()
        assert each["encodingFormat"] == "application/gzip"
        assert each["sha256"] == hashlib.sha256(data).hexdigest()


def test_the_export_has_the_content_of_the_release(
    digits: tfrecreg.Registry, tmp_path: Path
) -> None:
    digits.find("digits@1.0.0").export(tmp_path / "out", to="croissant")
    assert len(tfrecreg.data_source(tmp_path / "out", "train")) == 200
    found = tfrecreg.digest(tmp_path / "out")
    assert found.content == digits.find("digits@1.0.0").describe()["content"]


def test_records_that_are_no_examples_are_refused(
    digits: tfrecreg.Registry, tmp_path: Path
) -> None:
    put(tmp_path / "logs/train-00000-of-00001.tfrecord", *SEQUENCES)
    digits["logs"].adopt(tmp_path / "logs")
    with pytest.raises(UsageError, match=r"`logs` holds .*, but Croissant reads only Examples"):
        digits.find("logs").export(tmp_path / "out", to="croissant")


SCHEMA = """\
feature { name: "an id" type: BYTES presence { min_fraction: 1 } shape {} }
feature { name: "boxes" type: FLOAT value_count { min: 0 } }
feature { name: "größe" type: INT presence { min_fraction: 1 } shape {} }
"""


@pytest.mark.slow
def test_mlcroissant_accepts_it(
    digits: tfrecreg.Registry, tmp_path: Path, croissant_python: str
) -> None:
    digits.find("digits@1.0.0").export(tmp_path / "out", to="croissant")
    arguments = (tmp_path / "out/croissant.json", "splits", "classes/image/class/label")
    done = run_python(croissant_python, str(READER), *map(str, arguments))
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["errors"], found["warnings"]) == ([], [])
    assert (found["name"], found["version"]) == ("digits", "1.0.0")
    assert found["license"] == ["CC0-1.0"]
    shards = sorted((tmp_path / "out").glob("*.tfrecord-*"))
    assert found["sha256"] == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in shards
    }
    assert found["record_sets"] == ["splits", "classes/image/class/label", "records"]
    assert found["records"]["splits"] == [
        {"splits/name": "test", "splits/records": 60},
        {"splits/name": "train", "splits/records": 200},
    ]
    classes = [each["classes/image/class/label/name"] for each in found["records"][arguments[2]]]
    assert classes == list("0123456789")


@pytest.mark.slow
def test_mlcroissant_accepts_names_that_are_no_identifiers(
    place_build, tmp_path: Path, croissant_python: str
) -> None:
    record = {"an id": bytes_feature(b"x"), "größe": int64_feature(1)}
    registry = place_build({"train": [[record]]}, SCHEMA, labels={"größe": ["a b", "c\nd"]})
    tfrecreg.export("things", tmp_path / "out", to="croissant", registry=registry)
    fields = record_set(document(tmp_path / "out"), "records")["field"]
    assert [each["@id"] for each in fields] == [
        "records/split",
        "records/an%20id",
        "records/boxes",
        "records/gr%C3%B6%C3%9Fe",
    ]
    assert [each.get("repeated", False) for each in fields] == [False, False, True, False]
    done = run_python(croissant_python, str(READER), str(tmp_path / "out/croissant.json"), "splits")
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1])["errors"] == []
