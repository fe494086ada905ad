"""Derived datasets of real pictures, compared with the original annotations and folders."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import tfrecreg
from tfrecreg.core.registry.init import init

pytestmark = pytest.mark.realdata


def test_objects_are_those_of_the_annotations(realdata: Path, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="the extra `query` is not installed")
    raw = realdata / "coco/dali"
    init(tmp_path / "registry", with_dvc=False)
    registry = tfrecreg.open(tmp_path / "registry")
    registry["all"].build(source="coco", raw=raw, max_skipped=10, progress=False)
    options = {"inputs": ["all"], "where": "boxes >= 2", "classes": ["Cat=Pet", "Dog=Pet", "Car="]}
    build = registry["some"].build(source="tfrecreg", options=options, progress=False)

    document = json.loads((raw / "instances.json").read_text())
    names = {each["id"]: each["name"] for each in document["categories"]}
    files = {each["id"]: each["file_name"] for each in document["images"]}
    by_image: dict[str, list[str]] = {}
    for each in document["annotations"]:
        by_image.setdefault(files[each["image_id"]], []).append(names[each["category_id"]])
    pets = {"Cat": "Pet", "Dog": "Pet"}
    wanted = {
        name: Counter(pets.get(each, each) for each in found if each != "Car")
        for name, found in by_image.items()
        if len(found) >= 2
    }

    label_map = build.manifest.labels["image/object/class/label"]
    found = {}
    for record in tfrecreg.data_source("some", "train", registry=registry):
        texts = [text.decode() for text in record["image/object/class/text"]]
        assert texts == [label_map[each] for each in record["image/object/class/label"]]
        assert len(texts) == len(record["image/object/bbox/xmin"])
        found[record["image/filename"].decode()] = Counter(texts)
    assert found == wanted
    assert "Pet" in label_map
    assert not {"Cat", "Dog", "Car"} & set(label_map)


def test_two_folders_of_classes_become_one_dataset(realdata: Path, tmp_path: Path) -> None:
    init(tmp_path / "registry", with_dvc=False)
    registry = tfrecreg.open(tmp_path / "registry")
    folders = {"dali": "imagefolder/dali", "pets": "imagefolder/tfrecorder/images"}
    for name, folder in folders.items():
        raw = realdata / folder
        registry[name].build(source="imagefolder", raw=raw, max_skipped=2, progress=False)
    options = {"inputs": ["dali", "pets"]}
    registry["both"].build(source="tfrecreg", options=options, progress=False)
    digests = Counter(
        (split, record["image/key/sha256"], record["image/class/text"])
        for split in ("train", "validation", "test")
        for record in tfrecreg.data_source("both", split, registry=registry)
    )
    files = Counter[tuple[str, bytes, bytes]]()
    for name in folders:
        for split in registry[name].built.manifest.splits:
            for record in tfrecreg.data_source(name, split.name, registry=registry):
                files[split.name, record["image/key/sha256"], record["image/class/text"]] += 1
    assert digests == files
    labels = registry["both"].built.manifest.labels["image/class/label"]
    assert labels[-2:] == ["cat", "goat"]
