"""Random crops differ by epoch, whoever hands out the numbers; channels that are asked for."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecreg
from tfrecreg.errors import UsageError
from tfrecreg.torch import OrderSampler
from tfrecreg.training.epoch_numbers import InEpoch

image = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")


def png(pixels: Any) -> bytes:
    out = io.BytesIO()
    image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tfrecreg.Registry:
    registry = tfrecreg.init(tmp_path_factory.mktemp("pictures"), with_dvc=False)
    random = np.random.default_rng(1)
    data = [
        {
            "image": png(random.integers(0, 256, (40, 40, 3), np.uint8)),
            "tokens": [at] * (1 + at % 3),
        }
        for at in range(12)
    ]
    registry["pictures"].build(data={"train": data})
    return registry


@pytest.fixture
def source(pictures: tfrecreg.Registry) -> tfrecreg.DataSource:
    return tfrecreg.data_source(
        "pictures",
        "train",
        registry=pictures,
        decode=["image"],
        image_size=(8, 8),
        augment="imagenet",
        seed=1,
    )


def crops(elements: Any) -> list[bytes]:
    return [each["image"].tobytes() for each in elements]


def expected(source: tfrecreg.DataSource, numbers: Any, epoch: int) -> list[bytes]:
    return crops(source.with_epoch(epoch)[int(number)] for number in numbers)


def test_a_sampler_gives_numbers_of_its_epoch(source: tfrecreg.DataSource) -> None:
    sampler = OrderSampler(source, epoch=3, seed=1)
    for epoch in (3, 4):
        numbers = pickle.loads(pickle.dumps(list(sampler)))  # as they reach a worker
        assert numbers == list(source.order(1, epoch))
        assert crops(source.__getitems__(numbers)) == expected(source, numbers, epoch)
        assert crops([source[numbers[0]]]) == expected(source, numbers[:1], epoch)
    assert expected(source, numbers, 3) != expected(source, numbers, 4)


def test_numbers_of_several_epochs_are_read_together(source: tfrecreg.DataSource) -> None:
    numbers = [InEpoch(5, 2), 5, InEpoch(-1, 2), InEpoch(5, 7)]
    found = crops(source.__getitems__(numbers))
    assert found[:2] == [*expected(source, [5], 2), *expected(source, [5], 0)]
    assert found[2:] == [*expected(source, [11], 2), *expected(source, [5], 7)]
    assert len(set(found)) == 4


def test_a_source_without_crops_gives_plain_numbers(pictures: tfrecreg.Registry) -> None:
    plain = tfrecreg.data_source("pictures", "train", registry=pictures)
    assert {type(number) for number in OrderSampler(plain, seed=1)} == {int}


def test_a_mixture_crops_by_the_epoch_of_the_place(source: tfrecreg.DataSource) -> None:
    mixture = tfrecreg.mixture([(source, 1)])
    for epoch in (0, 2):
        places = list(mixture.order(epoch))
        numbers = [mixture.place(place).record for place in places]
        assert crops(mixture.__getitems__(places)) == expected(source, numbers, epoch)
        assert crops([mixture[places[4]]]) == expected(source, numbers[4:5], epoch)


def test_rows_and_iterators_have_the_epoch_of_their_order(source: tfrecreg.DataSource) -> None:
    lengths = [len(each["tokens"]) for each in source]
    order = source.packed_order(6, lengths, seed=1, epoch=5)
    (batch,) = source.batches(len(order), order)
    numbers = [number for row in order for number in row]
    assert [each.tobytes() for each in batch["image"]] == expected(source, numbers, 5)
    walk = iter(source.order(1, 5))
    found = [each.tobytes() for batch in source.batches(5, walk) for each in batch["image"]]
    assert found == expected(source, source.order(1, 5), 5)


def test_an_epoch_of_a_mixture_is_not_negative(source: tfrecreg.DataSource) -> None:
    with pytest.raises(UsageError, match="`epoch` should be a number from 0 on, found -1"):
        tfrecreg.mixture([(source, 1)]).order(-1)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_get_the_channels_that_are_asked_for(channels: int, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    given = [random.integers(0, 256, (5, 4, depth), np.uint8) for depth in (1, 2, 3, 4)]
    data = [{"image": png(each[..., 0] if each.shape[-1] == 1 else each)} for each in given]
    registry = tfrecreg.init(tmp_path / "r", with_dvc=False)
    registry["mixed"].build(data={"train": data})
    found = tfrecreg.data_source(
        "mixed", "train", registry=registry, decode=["image"], channels=channels, with_key=True
    )
    mode = {1: "L", 3: "RGB", 4: "RGBA"}[channels]
    for key, element in found:
        original = given[int(key)]
        opaque = original if channels == 4 else original[..., : 1 if original.shape[-1] < 3 else 3]
        pillow = image.fromarray(opaque[..., 0] if opaque.shape[-1] == 1 else opaque).convert(mode)
        wanted = np.asarray(pillow).reshape(5, 4, channels)
        assert np.array_equal(element["image"], wanted)
    (batch,) = found.batches(4)
    assert batch["image"].shape == (4, 5, 4, channels)
    assert pickle.loads(pickle.dumps(found))[0][1]["image"].shape == (5, 4, channels)


def test_channels_that_are_none_are_refused(pictures: tfrecreg.Registry) -> None:
    with pytest.raises(UsageError, match="`channels` should be one of `0`, `1`, `3` and `4`"):
        tfrecreg.data_source("pictures", "train", registry=pictures, decode=["image"], channels=2)
    with pytest.raises(UsageError, match="`channels` needs `decode`"):
        tfrecreg.data_source("pictures", "train", registry=pictures, channels=3)
