"""The whole folder: its files and what they say, and what stops an export."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests_support import Watcher, flip, tree

from tfrecreg.builtin.adopt.request import AdoptRequest
from tfrecreg.builtin.adopt.run import adopt
from tfrecreg.builtin.export.run import export
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import ExporterRecord
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.errors import RefusedError, UnknownPluginError, UsageError
from tfrecreg.core.workers.local import LocalEngine

SCHEMA = """
feature { name: "image/encoded" type: BYTES presence { min_fraction: 1 } shape {} image_domain {} }
feature { name: "image/class/label" type: INT presence { min_fraction: 1 } shape {} }
"""
LABELS = {"image/class/label": ["cat", "dog"]}
GIF = b"GIF89a\x07\0\x05\0" + b"\0" * 9
CONFIG = """
owner = "ada"
license = "CC0-1.0"
description = "Things, drawn."
citation = "@misc{things}"
"""


def examples(count: int) -> list[Any]:
    return [
        {"image/encoded": bytes_feature(GIF), "image/class/label": int64_feature(number % 2)}
        for number in range(count)
    ]


@pytest.fixture
def registry(place_build: Callable[..., Registry]) -> Registry:
    splits = {"train": [examples(3), examples(2)], "test": [examples(1)]}
    return place_build(splits, SCHEMA, labels=LABELS, config=CONFIG)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def loaded(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def test_the_folder_holds_what_tfds_reads(registry: Registry, tmp_path: Path) -> None:
    result = export(registry, "things", tmp_path / "out")
    out = tmp_path / "out"
    assert sorted(names(out)) == [
        "LICENSE",
        "dataset_info.json",
        "features.json",
        "image.class.label.labels.txt",
        "metadata.json",
        "things-test.tfrecord-00000-of-00001",
        "things-train.tfrecord-00000-of-00002",
        "things-train.tfrecord-00001-of-00002",
    ]
    assert (out / "image.class.label.labels.txt").read_text() == "cat\ndog\n"
    assert (out / "LICENSE").read_text() == "CC0-1.0"
    sizes = {path.name: path.stat().st_size for path in out.glob("*.tfrecord-*")}
    train = sum(size for name, size in sizes.items() if "train" in name)
    template = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    assert loaded(out / "dataset_info.json") == {
        "name": "things",
        "version": "0.0.0",
        "fileFormat": "tfrecord",
        "description": "Things, drawn.",
        "citation": "@misc{things}",
        "redistributionInfo": {"license": "CC0-1.0"},
        "downloadSize": "1234",
        "supervisedKeys": {
            "tuple": {
                "items": [{"featureKey": "image/encoded"}, {"featureKey": "image/class/label"}]
            }
        },
        "splits": [
            {
                "name": "test",
                "filepathTemplate": template,
                "shardLengths": ["1"],
                "numBytes": str(sizes["things-test.tfrecord-00000-of-00001"] - 16),
            },
            {
                "name": "train",
                "filepathTemplate": template,
                "shardLengths": ["3", "2"],
                "numBytes": str(train - 5 * 16),
            },
        ],
    }
    kind = "tensorflow_datasets.core.features."
    assert loaded(out / "features.json") == {
        "pythonClassName": kind + "features_dict.FeaturesDict",
        "featuresDict": {
            "features": {
                "image/encoded": {
                    "pythonClassName": kind + "image_feature.Image",
                    "image": {
                        "dtype": "uint8",
                        "shape": {"dimensions": ["-1", "-1", "-1", "3"]},
                    },
                },
                "image/class/label": {
                    "pythonClassName": kind + "class_label_feature.ClassLabel",
                    "classLabel": {"numClasses": "2"},
                },
            }
        },
    }
    manifest = registry.dataset("things").build_manifest()
    assert manifest is not None
    assert loaded(out / "metadata.json") == {
        "tfrecreg": {
            "reference": "things",
            "content": manifest.content,
            "manifest": manifest.digest,
            "owner": "ada",
        }
    }
    assert result.files == tuple(sorted(names(out)))
    assert result.bytes == sum(sizes.values())
    assert result.splits == {"test": 1, "train": 5}
    assert result.shards == {"linked": 3}
    assert (result.version, result.folder, result.to) == ("0.0.0", str(out), "tfds")
    assert result.notes == ("a build has no version number: it is exported as version 0.0.0",)


def test_shards_are_links_and_the_build_stays_as_it_was(registry, tmp_path) -> None:
    root = Path(registry.storage.root)
    before = tree(root)
    export(registry, "things", tmp_path / "out")
    assert tree(root) == before
    for path in (tmp_path / "out").glob("*.tfrecord-*"):
        assert path.samefile(root / "data/things" / path.name)


def test_gzip_is_decompressed_and_noted(place_build, tmp_path) -> None:
    splits = {"train": [examples(3)]}
    export(place_build(splits, SCHEMA), "things", tmp_path / "plain")
    result = export(place_build(splits, SCHEMA, compression="gzip"), "things", tmp_path / "gzip")
    assert result.shards == {"decompressed": 1}
    assert any("decompressed: the records are unchanged" in note for note in result.notes)
    name = "things-train.tfrecord-00000-of-00001"
    assert (tmp_path / "gzip" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()


def test_without_licence_labels_or_configuration_less_is_written(place_build, tmp_path) -> None:
    registry = place_build({"train": [examples(1)]}, SCHEMA)
    export(registry, "things", tmp_path / "out")
    info = loaded(tmp_path / "out/dataset_info.json")
    assert not {"redistributionInfo", "supervisedKeys", "releaseNotes"} & info.keys()
    assert sorted(names(tmp_path / "out"))[:3] == [
        "dataset_info.json",
        "features.json",
        "metadata.json",
    ]


class Watching(Watcher):
    """Somebody who watches the progress, and presses ^C when the first shard is done."""

    def start(self, what: str, total: int, unit: str = "records") -> None:
        assert (what, total) == ("exporting things", 6)

    def advance(self, records: int, size: int) -> None:
        raise KeyboardInterrupt


@pytest.mark.medium
def test_whenever_it_is_interrupted_nothing_is_left(registry, tmp_path) -> None:
    with pytest.raises(KeyboardInterrupt):
        export(registry, "things", tmp_path / "out", engine=LocalEngine(2), progress=Watching())
    assert names(tmp_path) == ["registry-root"]


@pytest.mark.medium
def test_a_damaged_build_is_not_exported(registry, tmp_path) -> None:
    shard = Path(registry.storage.root) / "data/things/things-train.tfrecord-00001-of-00002"
    flip(shard, 20)
    with pytest.raises(
        RefusedError, match=r"^`things-train\..*-00001-of-00002` of .* cannot be exported"
    ):
        export(registry, "things", tmp_path / "out", engine=LocalEngine(2))
    assert sorted(names(tmp_path)) == ["registry-root"]


def refused(
    registry: Registry, tmp_path: Path, error: type[Exception], message: str, **options: Any
) -> None:
    before = tree(tmp_path)
    with pytest.raises(error, match=re.escape(message)):
        export(registry, "things", tmp_path / "out", **options)
    assert tree(tmp_path) == before
    assert not (tmp_path / "out").exists()


def test_an_unknown_format_is_refused(registry, tmp_path) -> None:
    refused(registry, tmp_path, UnknownPluginError, "no exporter named `tdfs`", to="tdfs")
    assert plugins().names(ExporterRecord) == [
        *("arrayrecord", "croissant", "files", "index", "jsonl", "parquet", "tfds", "tfx"),
        "webdataset",
    ]


def test_a_schema_that_changed_since_the_build_is_refused(registry, tmp_path) -> None:
    path = Path(registry.storage.root) / "schemas/things.pbtxt"
    path.write_text(SCHEMA + 'feature { name: "more" }\n')
    message = "`schemas/things.pbtxt` is not the schema that `things` was built with"
    refused(registry, tmp_path, UsageError, message)


def test_an_export_that_is_adopted_back_keeps_its_classes(
    registry: Registry, tmp_path: Path
) -> None:
    export(registry, "things", tmp_path / "out")
    result = adopt(registry, AdoptRequest(name="back", paths=(str(tmp_path / "out"),)))
    assert result.manifest.labels == LABELS
