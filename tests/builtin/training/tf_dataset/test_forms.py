"""The form of elements: boxes, images, stored tensors, pairs, chosen features."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_support import png

from tfrecreg.builtin.training.load import load
from tfrecreg.core.images.read import read_header
from tfrecreg.core.values.errors import ManifestError, RefusedError, UsageError


def batches(root: Path, **arguments: Any) -> list[Any]:
    return list(load("odd", registry=root, **arguments))


def test_boxes_are_batched_as_ragged_tensors(tf: Any, boxes: Path) -> None:
    first, *_ = batches(boxes, batch_size=4, ragged=True)
    assert first["box/xmin"].to_list() == [[], [0.5], [0.5, 1.5], [0.5, 1.5, 2.5]]
    assert first["box/text"].to_list() == [[b"cat"] * number for number in range(4)]


@pytest.mark.medium
def test_ragged_elements_can_be_batched_in_one_line(tf: Any, boxes: Path) -> None:
    dataset = load("odd", registry=boxes, ragged=True)
    assert next(iter(dataset.skip(2)))["box/xmin"].numpy().tolist() == [0.5, 1.5]
    first = next(iter(dataset.batch(3)))
    assert first["box/xmin"].to_list() == [[], [0.5], [0.5, 1.5]]


def test_without_a_choice_boxes_are_sparse(tf: Any, boxes: Path) -> None:
    spec = load("odd", registry=boxes, batch_size=4).element_spec
    assert isinstance(spec["box/xmin"], tf.SparseTensorSpec)


@pytest.mark.medium
def test_boxes_are_padded_to_a_length(tf: Any, boxes: Path) -> None:
    dataset = load("odd", registry=boxes, batch_size=4, drop_remainder=True, pad_to=5)
    assert dataset.element_spec["box/xmin"] == tf.TensorSpec((4, 5), tf.float32)
    first = next(iter(dataset))
    assert first["box/xmin"].numpy()[2].tolist() == [0.5, 1.5, 0, 0, 0]
    assert first["box/text"].numpy()[1].tolist() == [b"cat", b"", b"", b"", b""]
    single = load("odd", registry=boxes, pad_to={"box/xmin": 4})
    assert single.element_spec["box/xmin"] == tf.TensorSpec((4,), tf.float32)
    assert isinstance(single.element_spec["box/text"], tf.SparseTensorSpec)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("channels", "expected"), [("min: 1 max: 1", 1), ("min: 1 max: 3", None), ("", None)]
)
def test_sides_and_channels_that_the_schema_fixes_are_in_the_shape(
    tf: Any, odd: Callable[..., Path], channels: str, expected: int | None
) -> None:
    always = "presence { min_fraction: 1 min_count: 1 } shape {}"
    sides = {"height": "min: 4 max: 4", "width": "min: 3 max: 3", "channels": channels}
    schema = f'feature {{ name: "image/encoded" type: BYTES {always} image_domain {{}} }}\n'
    schema += "".join(
        f'feature {{ name: "image/{side}" type: INT {always} int_domain {{ {domain} }} }}\n'
        for side, domain in sides.items()
    )
    data = png(3, 4, colour=0)
    features = {"image/encoded": [data], "image/height": [4], "image/width": [3]}
    root = odd(schema, [{**features, "image/channels": [read_header(data).channels]}] * 3)
    dataset = load("odd", registry=root, decode=True, batch_size=2)
    shape = (None, 4, 3, expected)
    assert dataset.element_spec["image/encoded"] == tf.TensorSpec(shape, tf.uint8)
    if expected is not None:
        (*_, last) = dataset
        assert last["image/encoded"].shape == (1, 4, 3, 1)


@pytest.mark.medium
@pytest.mark.parametrize(("cache", "shuffle", "whole"), [(False, False, False), (True, True, True)])
def test_boxes_are_padded_to_the_longest_of_a_batch(
    tf: Any, boxes: Path, cache: bool, shuffle: bool, whole: bool
) -> None:
    found = batches(
        boxes, batch_size=3, drop_remainder=whole, pad_to="longest", cache=cache, shuffle=shuffle
    )
    assert [len(batch["box/xmin"]) for batch in found] == [3, 3, 3, *([] if whole else [1])]
    for batch in found:
        counts = [number % 4 for number in batch["image/class/label"].numpy()]
        assert batch["box/xmin"].shape == (len(counts), max(counts))


@pytest.mark.medium
def test_more_values_than_the_length_are_an_error_that_names_the_record(
    tf: Any, boxes: Path
) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        batches(boxes, batch_size=4, pad_to=2)
    message = caught.value.message
    assert "record 3 of `odd-train.tfrecord-00000-of-00001` of odd does not parse: " in message
    assert "`box/text` has more values than the length 2 that it is padded to" in message


@pytest.mark.medium
def test_images_of_all_sizes_and_channels_make_a_batch(tf: Any, boxes: Path) -> None:
    found = batches(boxes, batch_size=5, decode=True, channels=3, image_size=(8, 9))
    assert [batch["image/encoded"].shape for batch in found] == [(5, 8, 9, 3)] * 2
    assert found[0]["image/encoded"].dtype == tf.uint8
    values = found[0]["image/encoded"].numpy()
    assert [np.unique(image).tolist() for image in values] == [[0], [1], [2], [3], [4]]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("arguments", "shapes"),
    [
        ({}, "10 different shapes, such as (4, 6, 3) and (13, 6, 1)"),
        ({"image_size": (8, 9)}, "2 different shapes, such as (8, 9, 1) and (8, 9, 3)"),
    ],
)
def test_images_of_several_sizes_make_no_batch_and_the_error_says_how(
    tf: Any, boxes: Path, arguments: dict[str, Any], shapes: str
) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        batches(boxes, batch_size=5, decode=True, **arguments)
    message = caught.value.message
    assert f"`image/encoded` has values of {shapes}" in message
    assert "pass `image_size=…` and `channels=3` to give images one shape" in message


@pytest.mark.medium
def test_single_images_keep_their_sizes(tf: Any, boxes: Path) -> None:
    found = batches(boxes, decode=True, channels=1)
    assert [each["image/encoded"].shape for each in found] == [(4 + n, 6, 1) for n in range(10)]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("batch_size", "batch", "channels", "expected"), [(None, (), 3, 3), (16, (None,), 0, 1)]
)
def test_a_dataset_of_the_source_mnist_has_static_shapes(
    tf: Any,
    digits_original: Path,
    batch_size: int | None,
    batch: tuple[None, ...],
    channels: int,
    expected: int,
) -> None:
    dataset = load(
        "digits",
        "test",
        registry=digits_original,
        decode=True,
        channels=channels,
        as_supervised=True,
        batch_size=batch_size,
    )
    assert dataset.element_spec == (
        tf.TensorSpec((*batch, 28, 28, expected), tf.uint8),
        tf.TensorSpec(batch, tf.int64),
    )
    images = [image for image, _ in dataset]
    assert len(images) == (4 if batch_size else 60)
    assert images[-1].shape[-3:] == (28, 28, expected)


TAGGED = """
    feature {
      name: "image/encoded" type: BYTES presence { min_fraction: 1 min_count: 1 } shape {}
      image_domain {} annotation { tag: "%s" }
    }
"""


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("channels:1", 1), ("channels:2", None)],
)
def test_channels_are_in_a_tag_of_the_images(
    odd: Callable[..., Path], tag: str, expected: int | None
) -> None:
    root = odd(TAGGED % tag, [{"image/encoded": [png(3, 4, colour=0)]}])
    spec = load("odd", registry=root, decode=True).element_spec["image/encoded"]
    assert tuple(spec.shape) == (None, None, expected)


@pytest.mark.medium
@pytest.mark.parametrize("batch_size", [None, 2])
def test_images_of_other_channels_than_their_tag_are_an_error(
    tf: Any, odd: Callable[..., Path], batch_size: int | None
) -> None:
    root = odd(TAGGED % "channels:1", [{"image/encoded": [png(3, 4, colour=2)]}] * 4)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        batches(root, batch_size=batch_size, decode=True)
    assert (
        "`image/encoded` of record 0 of `odd-train.tfrecord-00000-of-00001` of odd does not decode:"
        " Shape of tensor input [4,3,3] is not compatible with expected shape [?,?,1]."
    ) in caught.value.message


@pytest.mark.medium
def test_stored_tensors_come_as_tensors(tf: Any, odd: Callable[..., Path]) -> None:
    schema = """
        feature { name: "one" type: BYTES presence { min_fraction: 1 min_count: 1 } shape {} }
    """
    rows = [{"one": [tf.io.serialize_tensor(tf.fill((2, 3), float(n))).numpy()]} for n in range(5)]
    root = odd(schema, rows)
    spec = tf.TensorSpec((2, 3), tf.float32)
    dataset = load("odd", registry=root, tensors={"one": spec})
    assert dataset.element_spec["one"] == spec
    assert [each["one"].numpy()[1, 2] for each in dataset] == [0, 1, 2, 3, 4]
    (batch,) = load("odd", registry=root, tensors={"one": tf.float32}, batch_size=8)
    assert batch["one"].shape == (5, 2, 3)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(load("odd", registry=root, tensors={"one": tf.int64}))
    assert "`one` of record 0 of `odd-train" in caught.value.message


@pytest.mark.medium
def test_pairs_of_image_and_label_are_found_by_their_names(tf: Any, boxes: Path) -> None:
    dataset = load("odd", registry=boxes, as_supervised=True)
    assert dataset.element_spec == (tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.int64))
    named = load("odd", registry=boxes, as_supervised=("box/xmin", "image/class/label"), pad_to=3)
    assert [xmin.shape for xmin, _ in named] == [(3,)] * 10


def test_chosen_features_alone_are_parsed(tf: Any, boxes: Path) -> None:
    dataset = load("odd", registry=boxes, features=["image/class/label"], batch_size=4)
    assert list(dataset.element_spec) == ["image/class/label"]


@pytest.mark.medium
def test_a_folder_with_its_manifest_needs_no_registry(
    tf: Any, digits_original: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(digits_original / "data/digits", folder)
    schema = digits_original / "schemas/digits.pbtxt"
    dataset = load(folder, "train[:50]", decode=True, batch_size=25)
    assert [batch["image/encoded"].shape for batch in dataset] == [(25, 28, 28, 1)] * 2
    shard = folder / "digits-train.tfrecord-00001-of-00002"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(RefusedError, match="differ in size from the manifest"):
        load(folder, "train", schema=schema)
    (folder / "schema.pbtxt").write_text(schema.read_text() + "# not it\n")
    with pytest.raises(ManifestError, match="is not the build's schema: the manifest has"):
        load(folder, "test")
    assert len(load(folder, "test", schema=schema)) == 60
    (folder / "schema.pbtxt").unlink()
    with pytest.raises(UsageError, match="no schema lists the features of the records"):
        load(folder, "test")
    (folder / "manifest.json").unlink()
    assert len(load(folder, "test", schema=schema)) == 60
    with pytest.raises(UsageError, match=r"no file matches `.*/none-"):
        load(f"{folder}/none-*", "test", schema=schema)


# What follows is refused before TensorFlow is imported.


@pytest.mark.parametrize(
    "arguments",
    [
        {"batch_size": 0},
        {"shuffle": 0},
        {"repeat": -1},
        {"drop_remainder": True},
        {"seed": 1},
        {"pad_to": "longest"},
        {"channels": 3},
        {"decode": "False"},
        {"decode": ["a"]},
        {"decode": True, "channels": 2},
        {"decode": True, "image_size": (0, 3)},
        {"features": ["image/lable"]},
        {"features": []},
        {"as_supervised": True, "with_key": True},
        {"as_supervised": True, "with_digest": True},
        {"as_supervised": ("image/encoded", "label")},
        {"tensors": {"image/height": "float32"}},
    ],
)
def test_what_makes_no_sense_is_refused(digits_original: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        load("digits", "test", registry=digits_original, **arguments)


def test_one_feature_may_be_a_text(tf: Any, boxes: Path) -> None:
    assert list(load("odd", registry=boxes, features="box/xmin").element_spec) == ["box/xmin"]
