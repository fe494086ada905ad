"""An adopted build is used like any other: by TensorFlow, by TFDS, and on real data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tfrecreg.builtin.export.run import export
from tfrecreg.builtin.look.head import Choice, head
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.core.registry.find import find_target
from tfrecreg.core.workers.local import LocalEngine


@pytest.fixture(scope="session")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


@pytest.fixture
def written(tf: Any, tmp_path: Path) -> Path:
    """Two splits as TensorFlow writes them, gzip, in Beam's names."""
    folder = tmp_path / "by-tensorflow"
    folder.mkdir()
    options = tf.io.TFRecordOptions(compression_type="GZIP")
    for split, first, count in (("train", 0, 20), ("test", 100, 6)):
        for shard in range(2):
            path = str(folder / f"{split}-{shard:05d}-of-00002.tfrecord.gz")
            with tf.io.TFRecordWriter(path, options) as writer:
                for number in range(first + shard, first + count, 2):
                    writer.write(_example(tf, number).SerializeToString())
    return folder


def _example(tf: Any, number: int) -> Any:
    train = tf.train
    return train.Example(
        features=train.Features(
            feature={
                "x": train.Feature(float_list=train.FloatList(value=[number, -number])),
                "id": train.Feature(bytes_list=train.BytesList(value=[f"id{number}".encode()])),
                "label": train.Feature(int64_list=train.Int64List(value=[number % 4])),
            }
        )
    )


@pytest.mark.medium
def test_tensorflow_reads_what_tensorflow_wrote(adopter, written) -> None:
    from tfrecreg import load

    adopter.adopt(written, key="id")
    release(adopter.registry, ReleaseRequest(name="pets", version="1.0.0"))
    assert adopter.passes("pets@1.0.0")
    rows = list(load("pets@1.0.0", "train", registry=adopter.root).as_numpy_iterator())
    assert [row["id"].decode() for row in rows] == [
        f"id{number}" for shard in range(2) for number in range(shard, 20, 2)
    ]
    assert [row["x"].tolist() for row in rows][:2] == [[0.0, 0.0], [2.0, -2.0]]
    (first, *_) = head(find_target("pets@1.0.0", registry=adopter.root), Choice(1))
    assert (first.key, first.payload) == ("id100", "example")


def test_in_place_names_are_kept_and_exported_under_ours(adopter, written, tmp_path) -> None:
    adopter.data().parent.mkdir(exist_ok=True)
    written.rename(adopter.data())
    adopter.adopt(how="in-place")
    assert adopter.passes()
    export(adopter.registry, "pets", str(tmp_path / "tfds"), to="tfds")
    assert (tmp_path / "tfds/pets-test.tfrecord-00001-of-00002").is_file()


REAL = {
    "raccoon": (["tfrecord/raccoon/data/test.record"], {"test": 40}, "example", "none"),
    "taxi": (
        ["tfrecord/tfx/components/testdata/csv_example_gen"],
        {"eval": 5091, "train": 9909, "unlabelled": 2459},
        "example",
        "gzip",
    ),
    "penguin": (
        ["schema/tfx/components/testdata/penguin/data"],
        {"eval": 100, "train": 234},
        "example",
        "gzip",
    ),
    "toy": (["tfrecord/ydf/toy.tfe-tfrecord@2"], {"train": 4}, "example", "gzip"),
    "lite": (["tfrecord/tfrecord-lite/images.tfrecord"], {"train": 2}, "example", "none"),
    "sequences": (
        ["tfrecord/tfx/components/testdata/tfrecord_sequence/*/*.gz"],
        {"eval": 4500, "train": 10500},
        "sequence_example",
        "gzip",
    ),
    "torch": (
        ["tfrecord/torchdata/sequence_example.tfrecord"],
        {"train": 4},
        "sequence_example",
        "none",
    ),
    "log": (["tfrecord/wandb/events.out.tfevents.*"], {"train": 105}, "event", "none"),
    "genome": (
        ["tfrecord/nucleus/test_samples.vcf.golden.tfrecord"],
        {"train": 753},
        "other",
        "none",
    ),
}


@pytest.mark.realdata
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in ("sequences", "taxi") else ())
        for name in REAL
    ],
)
def test_what_others_published_is_adopted_released_and_checked(
    adopter, realdata: Path, name: str
) -> None:
    patterns, splits, kind, compression = REAL[name]
    result = adopter.adopt(*(realdata / pattern for pattern in patterns), name=name)
    manifest = result.manifest
    assert {split.name: split.records for split in manifest.splits} == splits
    assert manifest.source.options["payloads"] == kind
    assert manifest.compression == compression
    release(adopter.registry, ReleaseRequest(name=name, version="1.0.0"), engine=LocalEngine(1))
    found = adopter.check(f"{name}@1.0.0")
    assert (found["status"], found["findings"]) == ("pass", [])
    assert found["summary"]["records"] == sum(splits.values())


@pytest.mark.medium
@pytest.mark.realdata
def test_images_that_were_adopted_load(adopter, realdata: Path, tf: Any) -> None:
    from tfrecreg import load

    adopter.adopt(realdata / "tfrecord/raccoon/data/test.record", name="raccoon")
    rows = list(load("raccoon", registry=adopter.root, decode=True).take(3))
    assert [row["image/encoded"].shape[2] for row in rows] == [3, 3, 3]
