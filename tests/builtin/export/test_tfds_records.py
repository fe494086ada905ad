"""Exports to TFDS whose records are written anew: ArrayRecord files, and boxes as `BBoxFeature`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from image_support import png

from tfrecreg.builtin.export.run import export
from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.records.reader import scan
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError

PlaceBuild = Callable[..., Registry]

SCHEMA = """
feature { name: "image/encoded" type: BYTES presence { min_fraction: 1 } shape {} image_domain {} }
feature { name: "box/xmin" type: FLOAT }
feature { name: "box/xmax" type: FLOAT }
feature { name: "box/ymin" type: FLOAT }
feature { name: "box/ymax" type: FLOAT }
feature { name: "label" type: INT }
"""


def boxes(number: int) -> dict[str, Any]:
    """A record with so many boxes."""
    sides = {
        side: float_feature([at / 8 + number / 64 for number in range(number)])
        for at, side in enumerate(("box/ymin", "box/xmin", "box/ymax", "box/xmax"))
    }
    return {
        "image/encoded": bytes_feature(png(4, 3, seed=number)),
        "label": int64_feature([1] * number),
        **sides,
    }


RECORDS = [boxes(0), boxes(1), boxes(3), {"image/encoded": bytes_feature(png(4, 3))}]


@pytest.fixture
def things(place_build: PlaceBuild) -> Registry:
    return place_build({"train": [RECORDS[:2], RECORDS[2:]], "test": [RECORDS]}, SCHEMA)


def exported(registry: Registry, out: Path, *options: str) -> Any:
    return export(registry, "things", out, to="tfds", options=options)


def payloads(folder: Path, name: str) -> list[bytes]:
    found: list[bytes] = []
    for event in scan(LocalStorage(folder), name, declared="none", digest=False):
        if hasattr(event, "payloads"):
            found.extend(event.payloads())
    return found


def test_boxes_become_one_feature_and_no_number_changes(things: Registry, tmp_path: Path) -> None:
    result = exported(things, tmp_path / "out", "boxes=yes")
    manifest = things.dataset("things").build_manifest()
    assert manifest is not None
    assert result.content == manifest.content
    assert result.shards == {"converted": 3}
    first = payloads(tmp_path / "out", "things-test.tfrecord-00000-of-00001")
    examples = [decode(each) for each in first]
    assert "box" not in examples[3]
    assert examples[0]["box"] == float_feature([])
    assert examples[2]["box"].values == (
        *(0.0, 0.125, 0.25, 0.375),
        *(0.015625, 0.140625, 0.265625, 0.390625),
        *(0.03125, 0.15625, 0.28125, 0.40625),
    )
    features = json.loads((tmp_path / "out/features.json").read_text())["featuresDict"]["features"]
    assert sorted(features) == ["box", "image/encoded", "label"]
    assert features["box"]["sequence"]["feature"] == {
        "pythonClassName": "tensorflow_datasets.core.features.bounding_boxes.BBoxFeature",
        "boundingBox": {
            "shape": {"dimensions": ["4"]},
            "dtype": "float32",
            "bboxFormat": "REL_YXYX",
        },
    }
    assert features["image/encoded"]["image"]["shape"]["dimensions"] == ["3", "4", "3"]
    splits = json.loads((tmp_path / "out/dataset_info.json").read_text())["splits"]
    sizes = {each["name"]: each["numBytes"] for each in splits}
    assert sizes == dict.fromkeys(("test", "train"), str(sum(map(len, first))))


def test_array_record_files_are_named_and_declared_as_tfds_does(
    things: Registry, tmp_path: Path
) -> None:
    pytest.importorskip("array_record", reason="the extra `arrayrecord` is not installed")
    result = exported(things, tmp_path / "out", "file_format=array_record")
    manifest = things.dataset("things").build_manifest()
    assert manifest is not None
    assert result.content == manifest.content
    assert [each for each in sorted(result.files) if "array_record" in each] == [
        "things-test.array_record-00000-of-00001",
        "things-train.array_record-00000-of-00002",
        "things-train.array_record-00001-of-00002",
    ]
    info = json.loads((tmp_path / "out/dataset_info.json").read_text())
    assert info["fileFormat"] == "array_record"
    assert [each["shardLengths"] for each in info["splits"]] == [["4"], ["2", "2"]]


@pytest.mark.parametrize(
    "record",
    [
        {"box/ymin": float_feature([0.5])},
        {**boxes(2), "box/xmax": float_feature([0.5])},
        {**boxes(1), "box/xmax": int64_feature([1])},
        {**boxes(1), "box": float_feature([0.5])},
        {"box": float_feature([0.0, 0.5, 1.0, 1.0])},
    ],
)
def test_boxes_that_lack_a_side_are_refused(
    place_build: PlaceBuild, tmp_path: Path, record: dict[str, Any]
) -> None:
    registry = place_build({"train": [[boxes(1), record]]}, SCHEMA)
    with pytest.raises(UsageError) as caught:
        exported(registry, tmp_path / "out", "boxes=yes")
    assert caught.value.message == (
        "the boxes `box` of record 1 of `things-train.tfrecord-00000-of-00001` cannot become a "
        "`BBoxFeature`: expected four sides with the same number of floats"
    )
    assert caught.value.exit_code == 2
    assert not (tmp_path / "out").exists()


READ = """
import json, sys
import numpy as np
import tensorflow_datasets as tfds

for folder in sys.argv[1:]:
    builder = tfds.builder_from_directory(folder)
    source = builder.as_data_source("test")
    print(json.dumps([
        {"boxes": np.asarray(each["box"]).tolist(), "shape": each["image/encoded"].shape}
        for each in source
    ]))
"""


@pytest.mark.slow
def test_tfds_reads_array_records_by_number_and_boxes(
    place_build: PlaceBuild,
    tmp_path: Path,
    run_tfds: Callable[..., Any],
    read_tfds: Callable[..., Any],
) -> None:
    pytest.importorskip("array_record", reason="the extra `arrayrecord` is not installed")
    things = place_build({"test": [RECORDS[:3]]}, SCHEMA)
    exported(things, tmp_path / "both", "file_format=array_record", "boxes=yes")
    exported(things, tmp_path / "boxes", "boxes=yes")
    done = run_tfds("-c", READ, str(tmp_path / "both"))
    assert done.returncode == 0, done.stderr[-4000:]
    (found,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert [len(each["boxes"]) for each in found] == [0, 1, 3]
    assert found[1] == {"boxes": [[0.0, 0.125, 0.25, 0.375]], "shape": [3, 4, 3]}
    (said,) = read_tfds(tmp_path / "boxes")
    assert "BBoxFeature" in said["features"]["box"]
    assert [each["box"]["shape"] for each in said["splits"]["test"]] == [
        [0, 4],
        [1, 4],
        [3, 4],
    ]
