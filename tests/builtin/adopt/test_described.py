"""Folders that describe themselves: `dataset_info.json` and `features.json` of TFDS and RLDS."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from foreign_support import put
from image_support import png

from tfrecreg.builtin.export.run import export
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.schema.definition import BoolDomain, ImageDomain, IntDomain
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import RefusedError, UsageError

_CORE = "tensorflow_datasets.core.features"


def connector(kind: str, **content: Any) -> dict[str, Any]:
    """One feature of `features.json`: ``connector("image", shape=…)``."""
    return {"pythonClassName": f"{_CORE}.{kind}", kind: content}


def features_dict(**features: Any) -> dict[str, Any]:
    """A `FeaturesDict`."""
    return connector("featuresDict", features=features)


def TENSOR(dtype: str, *shape: int, encoding: str = "none") -> dict[str, Any]:
    """A `Tensor`."""
    sizes = {"dimensions": [str(each) for each in shape]} if shape else {}
    return connector("tensor", dtype=dtype, shape=sizes, encoding=encoding)


def CLASSES(number: int) -> dict[str, Any]:
    """A `ClassLabel`."""
    return connector("classLabel", numClasses=str(number))


def write_tfds(
    folder: Path,
    splits: Mapping[str, Sequence[Sequence[bytes]]],
    features: Mapping[str, Any] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    *,
    name: str = "pets",
    template: str = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
    **more: Any,
) -> Path:
    """A dataset of TFDS.

    Args:
        splits: payloads of each shard by split.
        features: of `features.json`; None for no such file.
        labels: names of classes by the name of their file.
        more: fields of `dataset_info.json`; None leaves one out.
    """
    entries = []
    for split, shards in splits.items():
        for number, payloads in enumerate(shards):
            of = f"{number:05d}-of-{len(shards):05d}"
            file = template.format(
                DATASET=name, SPLIT=split, FILEFORMAT="tfrecord", SHARD_X_OF_Y=of
            )
            put(folder / file, *payloads)
        entries.append(
            {
                "name": split,
                "filepathTemplate": template,
                "shardLengths": [str(len(payloads)) for payloads in shards],
                "numBytes": str(sum(len(each) for payloads in shards for each in payloads)),
            }
        )
    info = {"name": name, "version": "1.2.3", "fileFormat": "tfrecord", "splits": entries, **more}
    info = {key: value for key, value in info.items() if value is not None}
    (folder / "dataset_info.json").write_text(json.dumps(info, indent=2))
    if features is not None:
        (folder / "features.json").write_text(json.dumps(features))
    for file, names in (labels or {}).items():
        (folder / f"{file}.labels.txt").write_text("".join(f"{each}\n" for each in names))
    return folder


PICTURE = png(4, 3)


def pet(number: int) -> bytes:
    """A record as TFDS serializes nested features."""
    objects = number % 3
    return encode(
        {
            "image": bytes_feature(png(4, 3, seed=number)),
            "label": int64_feature(number % 2),
            "name": bytes_feature(f"pet {number}"),
            "meta/kind": int64_feature(number % 3),
            "meta/ok": int64_feature(number % 2),
            "objects/bbox": float_feature([0.5] * 4 * objects),
            "objects/label": int64_feature([0] * objects),
            "ragged/ragged_flat_values": int64_feature([1] * objects),
            "ragged/ragged_row_lengths_0": int64_feature([1] * objects),
            "grid": int64_feature(range(6)),
        }
    )


FEATURES = features_dict(
    image=connector("image", shape={"dimensions": ["3", "4", "3"]}),
    label=CLASSES(2),
    name=connector("text"),
    meta=features_dict(kind=CLASSES(3), ok=TENSOR("bool")),
    objects=connector(
        "sequence",
        feature=features_dict(
            bbox=connector("boundingBox", dtype="float32", shape={"dimensions": ["4"]}),
            label=CLASSES(2),
        ),
        length="-1",
    ),
    ragged=connector(
        "sequence",
        feature=connector("sequence", feature=TENSOR("int64"), length="-1"),
        length="-1",
    ),
    grid=TENSOR("uint8", 2, 3),
)
LABELS = {
    "label": ["cat", "dog"],
    "meta-kind": ["x", "y", "z"],
    "objects-label": ["ear", "tail"],
}
TERMS: dict[str, Any] = {
    "description": 'Pets,\n"generated".',
    "citation": "@article{pets, doi={10.1234/pets.5}}",
    "redistributionInfo": {"license": "CC-BY-4.0"},
    "location": {"urls": ["https://example.org/pets"]},
}


@pytest.fixture
def tfds(tmp_path: Path) -> Path:
    """Two splits, of three shards and of one."""
    shards = [[pet(each) for each in range(at, 10, 3)] for at in range(3)]
    splits = {"train": shards, "val": [[pet(20), pet(21)]]}
    return write_tfds(tmp_path / "tfds/pets/1.2.3", splits, FEATURES, LABELS, **TERMS)


def change(folder: Path, *path: str | int, to: Any) -> None:
    """Set a value of `dataset_info.json`."""
    file = folder / "dataset_info.json"
    info = json.loads(file.read_text())
    inner = info
    for each in path[:-1]:
        inner = inner[each]
    inner[path[-1]] = to
    file.write_text(json.dumps(info))


def test_a_folder_of_tfds_is_adopted_with_all_that_it_knows(adopter, tfds: Path) -> None:
    result = adopter.adopt(tfds)
    manifest = adopter.manifest()
    assert {split.name: split.records for split in manifest.splits} == {
        "train": 10,
        "validation": 2,
    }
    assert manifest.labels == {
        "label": ["cat", "dog"],
        "meta/kind": ["x", "y", "z"],
        "objects/label": ["ear", "tail"],
    }
    text = (adopter.root / "schemas/pets.pbtxt").read_text()
    schema = {each.name: each for each in parse_schema(text, "pets").features}
    assert schema["label"].domain == IntDomain(0, 1, is_categorical=True)
    assert schema["meta/kind"].domain == IntDomain(0, 2, is_categorical=True)
    assert schema["objects/label"].domain == IntDomain(0, 1, is_categorical=True)
    assert schema["meta/ok"].domain == BoolDomain()
    assert schema["image"].domain == ImageDomain()
    assert schema["grid"].shape == (2, 3)
    assert schema["name"].is_text
    assert schema["objects/bbox"].shape is None
    assert adopter.check()["status"] == "pass"
    assert result.terms == {
        "license": "CC-BY-4.0",
        "description": 'Pets,\n"generated".',
        "citation": "@article{pets, doi={10.1234/pets.5}}",
        "version": "1.2.3",
        "homepage": "https://example.org/pets",
        "doi": "10.1234/pets.5",
    }
    assert result.notes == (
        "checked against the `dataset_info.json` next to the shards: `pets` 1.2.3 of TensorFlow "
        "Datasets, 2 splits, 12 records",
    )


@pytest.mark.parametrize(
    ("path", "to", "code", "message"),
    [
        (
            ("splits", 0, "shardLengths", 1),
            "4",
            "SHD003",
            "`dataset_info.json` says 4 records, found 3",
        ),
        (
            ("splits", 1, "numBytes"),
            "77",
            "SHD012",
            "`dataset_info.json` says 77 bytes for the split `val`, but the payloads have ",
        ),
    ],
)
def test_one_changed_count_is_found(
    adopter, tfds: Path, path: tuple[str | int, ...], to: str, code: str, message: str
) -> None:
    change(tfds, *path, to=to)
    found = adopter.check(str(tfds))["findings"]
    assert [each["code"] for each in found] == [code]
    assert found[0]["message"].startswith(message)
    with pytest.raises(RefusedError) as refused:
        adopter.adopt(tfds)
    assert refused.value.message.startswith(f"the files of `pets` are not adopted: {message}")


def test_a_split_without_a_shard_and_a_shard_without_a_split_are_found(adopter, tfds: Path) -> None:
    (tfds / "pets-val.tfrecord-00000-of-00001").rename(tfds / "pets-more.tfrecord-00000-of-00001")
    found = {each["code"]: each for each in adopter.check(str(tfds))["findings"]}
    assert found.keys() == {"SHD001", "SHD005"}
    message = "`dataset_info.json` lists the split `val`, but some shards are missing"
    assert found["SHD001"]["message"] == message
    assert found["SHD001"]["locations"][0]["shard"].endswith("pets-val.tfrecord-00000-of-00001")
    assert found["SHD005"]["message"] == "`dataset_info.json` next to the shard does not list it"


def test_shards_that_were_not_named_are_not_missing(adopter, tfds: Path) -> None:
    report = adopter.check(str(tfds / "pets-train.tfrecord-00001-of-00003"))
    assert report["findings"] == []
    assert report["measures"]["manifest.described"] == 1


def test_where_records_and_features_disagree_the_records_count(adopter, tfds: Path) -> None:
    features = json.loads((tfds / "features.json").read_text())
    inner = features["featuresDict"]["features"]
    inner["label"] = CLASSES(1)
    inner["grid"] = TENSOR("uint8", 2, 4)
    inner["name"] = TENSOR("int64")
    inner["absent"] = TENSOR("int64")
    inner["sound"] = connector("audio", dtype="int64")
    (tfds / "features.json").write_text(json.dumps(features))
    adopter.adopt(tfds)
    assert adopter.check()["status"] == "pass"


def test_the_steps_of_an_episode_are_lists(adopter, tmp_path: Path) -> None:
    def episode(steps: int) -> bytes:
        return encode(
            {
                "steps/action": int64_feature([number % 2 for number in range(steps)]),
                "steps/observation/image": bytes_feature([PICTURE] * steps),
                "steps/is_first": int64_feature([1] + [0] * (steps - 1)),
            }
        )

    features = features_dict(
        steps=connector(
            "sequence",
            feature=features_dict(
                action=CLASSES(2),
                is_first=TENSOR("bool"),
                observation=features_dict(image=connector("image")),
            ),
            length="-1",
        )
    )
    folder = write_tfds(
        tmp_path / "rlds",
        {"train": [[episode(number) for number in range(1, 5)]]},
        features,
        {"steps-action": ["left", "right"]},
    )
    adopter.adopt(folder)
    assert adopter.manifest().labels == {"steps/action": ["left", "right"]}
    text = (adopter.root / "schemas/pets.pbtxt").read_text()
    schema = {each.name: each for each in parse_schema(text, "pets").features}
    assert schema["steps/action"].domain == IntDomain(0, 1, is_categorical=True)
    assert schema["steps/is_first"].domain == BoolDomain()
    assert schema["steps/observation/image"].is_image


def test_shards_go_to_the_splits_that_the_template_names(adopter, tmp_path: Path) -> None:
    folder = write_tfds(
        tmp_path / "odd",
        {"a": [[pet(1)]], "b": [[pet(2), pet(3)]]},
        template="{SPLIT}_part.{FILEFORMAT}-{SHARD_X_OF_Y}",
    )
    adopter.adopt(folder)
    assert {split.name: split.records for split in adopter.manifest().splits} == {"a": 1, "b": 2}


def test_an_export_to_tfds_comes_back_with_all_that_it_knows(adopter, tfds: Path) -> None:
    adopter.adopt(tfds)
    folder = adopter.root.parent / "exported"
    export(adopter.registry, "pets", folder, to="tfds")
    adopter.adopt(folder, name="again")
    first, again = adopter.manifest(), adopter.manifest("again")
    assert again.content == first.content
    assert again.labels == first.labels
    change(folder, "splits", 0, "numBytes", to="1")
    assert [each["code"] for each in adopter.check(str(folder))["findings"]] == ["SHD012"]


_BUILDER = """
import sys
import numpy as np
import tensorflow_datasets as tfds
from etils import epath

class Pets(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.0.0")
    pkg_dir_path = epath.Path(sys.argv[1])

    def _info(self):
        return self.dataset_info_from_configs(features=tfds.features.FeaturesDict({
            "image": tfds.features.Image(shape=(4, 3, 3)),
            "meta": {"kind": tfds.features.ClassLabel(names=["x", "y"])},
            "steps": tfds.features.Dataset({"action": tfds.features.ClassLabel(names=["l", "r"])}),
            "objects": tfds.features.Sequence({"bbox": tfds.features.BBoxFeature()}),
        }))

    def _split_generators(self, manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for number in range(6):
            yield number, {
                "image": np.full((4, 3, 3), number, np.uint8),
                "meta": {"kind": number % 2},
                "steps": [{"action": each % 2} for each in range(number + 1)],
                "objects": [{"bbox": tfds.features.BBox(0.0, 0.0, 0.5, 0.5)}] * number,
            }

Pets(data_dir=sys.argv[1]).download_and_prepare()
"""


@pytest.mark.realdata
def test_a_folder_that_tfds_itself_wrote_is_adopted(adopter, tmp_path: Path) -> None:
    python = os.environ.get("TFRECREG_TFDS_PYTHON", sys.executable)
    probe = subprocess.run(
        [python, "-c", "import tensorflow_datasets"], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip(
            "tensorflow_datasets is not installed: TFRECREG_TFDS_PYTHON names a Python that has it"
        )
    subprocess.run([python, "-c", _BUILDER, str(tmp_path)], check=True, capture_output=True)
    folder = tmp_path / "pets/1.0.0"
    adopter.adopt(folder)
    assert adopter.manifest().labels == {"meta/kind": ["x", "y"], "steps/action": ["l", "r"]}
    assert adopter.check()["status"] == "pass"
    change(folder, "splits", 0, "shardLengths", 0, to="7")
    assert [each["code"] for each in adopter.check(str(folder))["findings"]] == ["SHD003"]


def test_an_unfinished_folder_is_refused(adopter, tfds: Path) -> None:
    folder = tfds.with_name("incomplete.7ZG760_1.2.3")
    tfds.rename(folder)
    with pytest.raises(UsageError, match="did not finish any split here"):
        adopter.adopt(folder)
    assert not adopter.data().exists()


def test_an_unfinished_file_is_left_out(adopter, tfds: Path) -> None:
    whole = tfds / "pets-val.tfrecord-00000-of-00001"
    shutil.copy(whole, tfds / f"incomplete.{'0' * 32}.pets-test.tfrecord-00000-of-00001")
    notes = adopter.adopt(tfds).notes
    assert [split.name for split in adopter.manifest().splits] == ["train", "validation"]
    assert "left out as unfinished: `" in notes[0]
    assert "pets-test.tfrecord-00000-of-00001`" in notes[0]


def test_an_unfinished_file_need_not_be_listed(adopter, tfds: Path) -> None:
    whole = tfds / "pets-val.tfrecord-00000-of-00001"
    shutil.copy(whole, tfds / "incomplete.ABC123_pets-train.tfrecord-00000-of-00001")
    assert "SHD005" not in {each["code"] for each in adopter.check(str(tfds))["findings"]}


def test_fields_that_are_null_are_absent(adopter, tfds: Path) -> None:
    change(tfds, "description", to=None)
    change(tfds, "splits", 0, "shardLengths", 1, to="4")
    assert [each["code"] for each in adopter.check(str(tfds))["findings"]] == ["SHD003"]


def test_beside_a_finished_version_an_unfinished_one_is_left_out(adopter, tfds: Path) -> None:
    shutil.copytree(tfds, tfds.with_name("1.2.3.incompleteABC123"))
    notes = adopter.adopt(tfds.parent).notes
    assert notes[0] == "left out as unfinished: the folder `1.2.3.incompleteABC123`"
    assert sum(split.records for split in adopter.manifest().splits) == 12
