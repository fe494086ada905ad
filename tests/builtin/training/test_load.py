"""A build or a release as a `tf.data.Dataset`: what comes out is what went in."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_support import gif, webp
from registry_support import put_odd

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.training.load import load
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.shards import ShardPolicy


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")


def idx(folder: Path, name: str) -> np.ndarray:
    """The images or labels of an IDX file, read by its published layout."""
    data = gzip.decompress((folder / f"{name}.gz").read_bytes())
    rank = data[3]
    shape = np.frombuffer(data, ">u4", rank, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def compare(tf: Any, dataset: Any, raw: Path, prefix: str) -> None:
    """Every example against the raw data, whatever its place."""
    images = idx(raw, f"{prefix}-images-idx3-ubyte")
    labels = idx(raw, f"{prefix}-labels-idx1-ubyte")
    pairs = zip(images, labels, strict=True)
    expected = sorted((image.tobytes(), int(label)) for image, label in pairs)
    found = []
    for example in dataset:
        image = example["image/encoded"]
        assert image.dtype == tf.uint8
        assert image.shape == (28, 28, 1)
        assert (int(example["image/height"]), int(example["image/width"])) == (28, 28)
        assert example["image/class/label"].dtype == tf.int64
        found.append((image.numpy().tobytes(), int(example["image/class/label"])))
    assert sorted(found) == expected


@pytest.mark.medium
@pytest.mark.parametrize("reference", ["digits", "digits@1.0.0", "digits@latest"])
def test_decoded_images_and_labels_are_those_of_the_raw_data(
    tf: Any, digits_original: Path, reference: str
) -> None:
    raw = digits_original / "raw"
    dataset = load(reference, "test", registry=str(digits_original), decode=True)
    compare(tf, dataset, raw, "t10k")
    if reference == "digits":
        compare(tf, load("digits", "train", registry=digits_original, decode=True), raw, "train")


@pytest.mark.medium
def test_tensorflow_warns_of_nothing(
    tf: Any, digits_original: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tf.get_logger().addHandler(caplog.handler)
    try:
        for decode in (False, True):
            next(iter(load("digits", "test", registry=digits_original, decode=decode)))
    finally:
        tf.get_logger().removeHandler(caplog.handler)
    assert [record.getMessage() for record in caplog.records if record.levelno > 20] == []


@pytest.mark.medium
def test_examples_come_in_the_order_of_the_shards(tf: Any, digits_original: Path) -> None:
    folder = digits_original / "data/digits"
    names = sorted(str(path) for path in folder.glob("digits-train.tfrecord-*"))
    spec = {"image/encoded": tf.io.FixedLenFeature([], tf.string)}
    expected = [
        tf.io.parse_single_example(record, spec)["image/encoded"].numpy()
        for record in tf.data.TFRecordDataset(names)
    ]
    dataset = load("digits", "train", registry=digits_original)
    assert [example["image/encoded"].numpy() for example in dataset] == expected


def write_examples(tf: Any, root: Path, schema: str, *examples: dict[str, Any]) -> None:
    """A registry with a dataset `odd` that TensorFlow itself has written."""
    made = (tf.train.Example(features=tf.train.Features(feature=each)) for each in examples)
    put_odd(root, schema, [each.SerializeToString() for each in made])


IMAGES = """
    feature {
      name: "one" type: BYTES presence { min_fraction: 1 min_count: 1 }
      shape { dim { size: 1 } } image_domain {}
    }
    feature {
      name: "two" type: BYTES presence { min_fraction: 1 min_count: 1 }
      shape { dim { size: 2 } } image_domain {}
    }
    feature { name: "some" type: BYTES image_domain {} }
    feature { name: "text" type: BYTES }
"""


@pytest.mark.medium
def test_lists_of_images_stay_as_they_are(tf: Any, tmp_path: Path) -> None:
    png = tf.io.encode_png(tf.zeros((2, 3, 3), tf.uint8)).numpy()

    def feature(*values: bytes) -> Any:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))

    write_examples(
        tf,
        tmp_path,
        IMAGES,
        {"one": feature(png), "two": feature(png, png), "some": feature(png), "text": feature()},
        {"one": feature(png), "two": feature(png, png)},
    )
    # The one split need not be named.
    first, second = load("odd", registry=tmp_path, decode=True)
    assert first["one"].shape == (2, 3, 3)
    assert first["two"].shape == (2,)
    assert first["two"].dtype == tf.string
    assert isinstance(first["some"], tf.SparseTensor)
    assert [len(each["some"].values) for each in (first, second)] == [1, 0]
    assert len(second["text"].values) == 0


@pytest.mark.medium
def test_an_image_that_does_not_decode_is_named_by_its_record(
    tf: Any, digits_registry: Path, tmp_path: Path
) -> None:
    raw = tmp_path / "raw" / "cat"
    raw.mkdir(parents=True)
    shades = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    for number in range(5):
        (raw / f"{number}.png").write_bytes(tf.io.encode_png(shades + number).numpy())
    (raw / "fine.gif").write_bytes(gif(4, 4))
    (raw / "odd.webp").write_bytes(webp())
    registry = open_registry(digits_registry)
    request = BuildRequest(
        name="pets", source="imagefolder", raw=str(raw.parent), policy=ShardPolicy(shards=2)
    )
    build(registry, request)
    names = [
        bytes(each["image/filename"].numpy()) for each in load("pets", registry=digits_registry)
    ]
    number = next(at for at, name in enumerate(names) if name.endswith(b".webp"))
    manifest = registry.dataset("pets").build_manifest()
    assert manifest is not None
    first = manifest.shards[0].records
    shard = manifest.shards[number >= first]
    record = number - first if number >= first else number
    dataset = load("pets", registry=digits_registry, decode=True)
    assert len(list(dataset.take(number))) == number
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(dataset)
    assert (
        f"`image/encoded` of record {record} of `{shard.path}` of pets does not decode: a WebP"
    ) in caught.value.message


@pytest.mark.medium
@pytest.mark.parametrize("data", [b"", b"GIF8", b"\xff\xd8\xff\xd9"])
def test_whatever_is_no_image_is_named(tf: Any, tmp_path: Path, data: bytes) -> None:
    def feature(*values: bytes) -> Any:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))

    png = tf.io.encode_png(tf.zeros((2, 3, 3), tf.uint8)).numpy()
    rows = [{"one": feature(each), "two": feature(png, png)} for each in (png, data)]
    write_examples(tf, tmp_path, IMAGES, *rows)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(load("odd", registry=tmp_path, decode=True))
    if data[-2:] != b"\xff\xd9":  # which begins and ends as a JPEG
        assert "`one` of record 1 of `odd-train.tfrecord-00000-of-00001` of odd does not" in (
            caught.value.message
        )


@pytest.mark.medium
def test_an_empty_split_is_an_empty_dataset(tf: Any, tmp_path: Path) -> None:
    write_examples(tf, tmp_path, IMAGES)
    dataset = load("odd", "train", registry=tmp_path, decode=True)
    assert list(dataset) == []
    assert dataset.element_spec["two"].shape == (2,)


@pytest.mark.medium
def test_several_splits_are_a_tuple(tf: Any, digits_original: Path) -> None:
    digits = {"reference": "digits@1.0.0", "registry": digits_original}
    both = load(split=["train[:50]", "test"], batch_size=16, **digits)
    assert isinstance(both, tuple)
    assert [len(each) for each in both] == [4, 4]
    for found, split in zip(both, ("train[:50]", "test"), strict=True):
        expected = load(split=split, batch_size=16, **digits)
        one, other = next(iter(found)), next(iter(expected))
        assert one["image/encoded"].numpy().tolist() == other["image/encoded"].numpy().tolist()
    with pytest.raises(UsageError, match="no split `tset`"):
        load(split=["train", "tset"], **digits)
