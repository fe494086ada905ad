"""Decoded elements that are kept in memory: shuffled anew in each epoch, each once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.builtin.training.load import load
from tfrecreg.builtin.training.open import data_source

FEATURES = ["image/encoded", "image/class/label"]

KEPT = "tfrecreg.builtin.training.tf_dataset.pipeline._KEPT_BYTES"


def opened(root: Path, **more: Any) -> Any:
    arguments = {"batch_size": 8, "shuffle": True, "seed": 1, "decode": True, "cache": True, **more}
    return load("digits7", "train", registry=root, with_digest=True, **arguments)


def epoch(dataset: Any) -> list[bytes]:
    return [each.tobytes() for batch in dataset for each in batch["record/digest"].numpy()]


@pytest.mark.medium
@pytest.mark.parametrize("drop_remainder", [True, False])
def test_each_epoch_has_every_record_once_in_another_order(
    tf: Any, numbered: Path, drop_remainder: bool
) -> None:
    source = data_source("digits7", "train", registry=numbered)
    dataset = opened(numbered, features=FEATURES, drop_remainder=drop_remainder)
    epochs = [epoch(dataset) for _ in range(3)]
    assert len({tuple(each) for each in epochs}) == 3
    expected = {each.tobytes() for each in source.digests()}
    for each in epochs:
        assert len(each) == len(source) - (len(source) % 8 if drop_remainder else 0)
        assert len(set(each)) == len(each)
        assert set(each) <= expected
    again = opened(numbered, features=FEATURES, drop_remainder=drop_remainder)
    assert [epoch(again) for _ in range(2)] == epochs[:2]
    shapes = dataset.element_spec["image/encoded"].shape.as_list()
    assert shapes == [8 if drop_remainder else None, 28, 28, 1]
    assert len(dataset) == len(epochs[0]) // 8 + (len(epochs[0]) % 8 > 0)


@pytest.mark.medium
def test_only_the_first_epoch_reads_shards(tf: Any, numbered: Path, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(numbered, root)
    dataset = opened(root, features=FEATURES, repeat=2)
    first = epoch(opened(root, features=FEATURES))
    both = iter(dataset)
    found = [
        each.tobytes()
        for _ in range(len(dataset) // 2)
        for each in next(both)["record/digest"].numpy()
    ]
    for shard in (root / "data" / "digits7").glob("*.tfrecord-*"):
        shard.unlink()
    rest = [each.tobytes() for batch in both for each in batch["record/digest"].numpy()]
    assert found == first
    assert sorted(rest) == sorted(found)
    assert rest != found


@pytest.mark.medium
def test_features_of_varying_length_are_kept_one_by_one(tf: Any, boxes: Path) -> None:
    dataset = load(
        "odd",
        registry=boxes,
        ragged=True,
        features=["box/xmin", "image/class/label"],
        batch_size=4,
        shuffle=True,
        cache=True,
    )
    for _ in range(2):
        found = [
            (int(label), len(row))
            for batch in dataset
            for label, row in zip(batch["image/class/label"], batch["box/xmin"], strict=True)
        ]
        assert sorted(found) == [(number, number % 4) for number in range(10)]


@pytest.mark.parametrize(
    ("kept", "arguments"),
    [
        (True, {}),
        (True, {"image_size": (32, 32)}),
        (False, {"cache": False}),
        (False, {"decode": False}),
    ],
)
def test_few_images_are_kept_without_being_asked_for(
    tf: Any, numbered: Path, tmp_path: Path, kept: bool, arguments: dict[str, Any]
) -> None:
    root = tmp_path / "copy"
    shutil.copytree(numbered, root)
    dataset = opened(root, **{"features": FEATURES, "cache": "auto", "channels": 0, **arguments})
    first = _whole(dataset)
    for shard in (root / "data" / "digits7").glob("*.tfrecord-*"):
        shard.unlink()
    if kept:
        assert sorted(_whole(dataset)) == sorted(first)
    else:
        with pytest.raises(tf.errors.InvalidArgumentError):
            _whole(dataset)


@pytest.mark.medium
def test_at_most_250_mib_are_kept_without_being_asked_for(
    tf: Any, numbered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An order tells: a shuffle of what is kept is another one than that of what is read."""
    options: dict[str, Any] = {"features": FEATURES, "cache": "auto"}
    orders = {
        each: epoch(opened(numbered, features=FEATURES, cache=each)) for each in (True, False)
    }
    assert orders[True] != orders[False]
    assert epoch(opened(numbered, **options)) == orders[True]
    count = len(data_source("digits7", "train", registry=numbered))
    size = count * (28 * 28 + 8)  # and a label
    monkeypatch.setattr(KEPT, size - 1)
    assert epoch(opened(numbered, **options)) == orders[False]
    monkeypatch.setattr(KEPT, size)
    assert epoch(opened(numbered, **options)) == orders[True]
    # A text takes as much as its record at the most.
    text = {**options, "features": [*FEATURES, "image/format"]}
    assert epoch(opened(numbered, **text)) == orders[False]
    payloads = sum(map(len, data_source("digits7", "train", registry=numbered, raw=True)))
    monkeypatch.setattr(KEPT, count * 28 * 28 + payloads + count)
    assert epoch(opened(numbered, **text)) == orders[True]


def _whole(dataset: Any) -> list[bytes]:
    found = []
    for batch in dataset:
        digests = batch["record/digest"].numpy()
        found += [each.tobytes() for each in (digests if digests.ndim == 2 else [digests])]
    return found
