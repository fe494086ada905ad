"""Whole folders of converted records, and their content digest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foreign_support import SEQUENCES, put
from memory_support import PRINT_PEAK, on_linux
from tests_support import flip, tree

import tfrecreg
from tfrecreg.builtin.export.run import export
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.registry.manifest import render_manifest, seal
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.errors import FailureError, RefusedError, UsageError
from tfrecreg.core.workers.local import LocalEngine

from .conftest import NASTY, SCHEMA

FILES = {
    "arrayrecord": [
        "digits-test.array_record-00000-of-00002",
        "digits-test.array_record-00001-of-00002",
        "digits-train.array_record-00000-of-00002",
        "digits-train.array_record-00001-of-00002",
    ],
    "parquet": [
        "data/test-00000-of-00002.parquet",
        "data/test-00001-of-00002.parquet",
        "data/train-00000-of-00002.parquet",
        "data/train-00001-of-00002.parquet",
    ],
    "jsonl": [
        "digits-test-00000-of-00002.jsonl",
        "digits-test-00001-of-00002.jsonl",
        "digits-train-00000-of-00002.jsonl",
        "digits-train-00001-of-00002.jsonl",
    ],
    "webdataset": [
        "digits-test-000000.tar",
        "digits-test-000001.tar",
        "digits-train-000000.tar",
        "digits-train-000001.tar",
    ],
}
MODULES = {"arrayrecord": "array_record", "parquet": "pyarrow"}


@pytest.fixture(params=("arrayrecord", "jsonl", "parquet", "webdataset"))
def to(request: pytest.FixtureRequest) -> str:
    if request.param in MODULES:
        pytest.importorskip(MODULES[request.param], reason="the extra is not installed")
    return str(request.param)


@pytest.fixture
def digits(digits_registry: Path) -> Registry:
    return tfrecreg.open(digits_registry)


def test_the_folder_says_its_content(digits: Registry, tmp_path: Path, to: str) -> None:
    before = tree(Path(digits.storage.root))
    result = export(digits, "digits@1.0.0", tmp_path / "out", to=to)
    manifest = digits.find("digits@1.0.0").manifest
    names = FILES[to]
    assert sorted(tree(tmp_path / "out")) == sorted(result.files)
    assert sorted(result.files) == sorted([*names, "schema.pbtxt", "tfrecreg.json"])
    assert result.content == manifest.content
    assert (result.to, result.version, result.notes) == (to, "1.0.0", ())
    assert (result.splits, result.shards) == ({"test": 60, "train": 200}, {"converted": 4})
    assert result.bytes == sum((tmp_path / "out" / name).stat().st_size for name in names)
    said = json.loads((tmp_path / "out/tfrecreg.json").read_text())
    assert {name: said[name] for name in ("to", "reference", "dataset", "version", "content")} == {
        "to": to,
        "reference": "digits@1.0.0",
        "dataset": "digits",
        "version": "1.0.0",
        "content": manifest.content,
    }
    assert [each["path"] for each in said["files"]] == names
    assert [each["records"] for each in said["files"]] == [30, 30, 100, 100]
    assert said["splits"] == [
        {"name": each.name, "records": each.records, "content": each.content}
        for each in manifest.splits
    ]
    assert said["labels"] == {"image/class/label": [str(number) for number in range(10)]}
    assert tree(Path(digits.storage.root)) == before


def test_keys_come_from_the_index(digits: Registry, tmp_path: Path) -> None:
    pq: Any = pytest.importorskip("pyarrow.parquet")
    export(digits, "digits@1.0.0", tmp_path / "out", to="parquet")
    source = tfrecreg.data_source(digits.find("digits@1.0.0"), "train")
    names = [tmp_path / "out" / name for name in FILES["parquet"][2:]]
    found = [key for name in names for key in pq.read_table(name).column("__key__").to_pylist()]
    assert found == [source.key(number) for number in range(200)]
    assert len(set(found)) == 200


@pytest.mark.parametrize(("hub", "kind"), [("true", "string"), ("false", "binary")])
def test_texts_need_no_declaration(place_build, tmp_path: Path, hub: str, kind: str) -> None:
    pq: Any = pytest.importorskip("pyarrow.parquet")
    registry = place_build({"train": [[{"raw": bytes_feature("é")}]]}, SCHEMA)
    export(registry, "things", tmp_path / "out", to="parquet", options=[f"huggingface={hub}"])
    schema = pq.read_schema(tmp_path / "out/data/train-00000-of-00001.parquet")
    assert str(schema.field("raw").type.value_type) == kind


@pytest.mark.slow
def test_the_same_export_has_the_same_bytes_whatever_the_workers(
    digits: Registry, tmp_path: Path, to: str
) -> None:
    export(digits, "digits", tmp_path / "a", to=to)
    export(digits, "digits", tmp_path / "b", to=to, engine=LocalEngine(2))
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_anything_in_any_split_keeps_its_content(
    place_build: Callable[..., Registry], tmp_path: Path, to: str
) -> None:
    splits = {"train": [NASTY, [], NASTY[:1]], "test": [NASTY[1:3]], "empty": []}
    for compression in ("none", "gzip"):
        registry = place_build(splits, SCHEMA, compression=compression)
        result = export(registry, "things", tmp_path / compression, to=to)
        manifest = registry.dataset("things").build_manifest()
        assert manifest is not None
        assert result.content == manifest.content
        assert result.splits == {"empty": 0, "test": 2, "train": len(NASTY) + 1}
        assert result.version == "0.0.0"


def test_other_content_than_the_manifest_says_is_exit_3(
    place_build: Callable[..., Registry], tmp_path: Path, to: str
) -> None:
    registry = place_build({"train": [NASTY]}, SCHEMA)
    manifest = registry.dataset("things").build_manifest()
    assert manifest is not None
    path = Path(registry.storage.root, "data/things/manifest.json")
    path.write_bytes(render_manifest(seal(replace(manifest, content="0" * 64))))
    with pytest.raises(FailureError) as caught:
        export(registry, "things", tmp_path / "deep/out", to=to)
    assert caught.value.message == (
        "the content digest of the written records differs from that of `things`: expected "
        f"0000000000000000…, found {manifest.content[:16]}…"
    )
    assert [each.name for each in tmp_path.iterdir()] == ["registry-root"]


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_damage_in_the_middle_leaves_nothing(
    digits: Registry, tmp_path: Path, to: str, jobs: int
) -> None:
    name = "digits-train.tfrecord-00001-of-00002"
    shard = Path(digits.storage.root) / "data/digits" / name
    flip(shard, shard.stat().st_size // 2)
    with pytest.raises(RefusedError) as caught:
        export(digits, "digits", tmp_path / "out", to=to, engine=LocalEngine(jobs))
    assert caught.value.message.startswith(
        f"`{name}` of `digits` cannot be exported: CRC002 at byte "
    )
    assert caught.value.hint == "tfrecreg check digits"
    assert [each.name for each in tmp_path.iterdir()] == ["digits-registry"]


def test_sequences_are_for_array_records(digits: Registry, tmp_path: Path, to: str) -> None:
    put(tmp_path / "logs/train-00000-of-00001.tfrecord", *SEQUENCES)
    digits["logs"].adopt(tmp_path / "logs")
    if to == "arrayrecord":
        result = export(digits, "logs", tmp_path / "out", to=to)
        manifest = digits.find("logs").manifest
        assert result.content == manifest.content
        return
    reader = {"jsonl": "JSON Lines", "parquet": "Parquet", "webdataset": "WebDataset"}[to]
    with pytest.raises(UsageError, match=rf"`logs` holds .*, but {reader} reads only Examples"):
        export(digits, "logs", tmp_path / "out", to=to)


def test_a_build_without_a_schema(
    place_build: Callable[..., Registry], tmp_path: Path, to: str
) -> None:
    registry = place_build({"train": [NASTY]}, SCHEMA)
    (Path(registry.storage.root) / "schemas/things.pbtxt").unlink()
    if to == "arrayrecord":
        result = export(registry, "things", tmp_path / "out", to=to)
        assert sorted(result.files) == [
            "tfrecreg.json",
            "things-train.array_record-00000-of-00001",
        ]
        return
    with pytest.raises(UsageError, match="`things` has no schema: there is no `schemas/things"):
        export(registry, "things", tmp_path / "out", to=to)


MEASURE = f"""
import sys
from tfrecreg.builtin.export.run import export
from tfrecreg.core.registry.registry import open_registry
export(open_registry(sys.argv[1]), "things", sys.argv[2], to=sys.argv[3])
{PRINT_PEAK}"""


@on_linux
@pytest.mark.slow
def test_memory_is_bounded(place_build: Callable[..., Registry], tmp_path: Path, to: str) -> None:
    """A shard of 300 MB is converted in less memory than that, libraries included."""
    image = bytes(range(256)) * 400
    examples = [
        {"image/encoded": bytes_feature(image), "image/class/label": int64_feature(number)}
        for number in range(3000)
    ]
    registry = place_build({"train": [examples]}, SCHEMA)
    arguments = [registry.storage.root, str(tmp_path / "out"), to]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >> 10 < 280
