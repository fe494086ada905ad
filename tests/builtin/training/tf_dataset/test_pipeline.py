"""Order and grouping of elements: lengths, batches, shuffles, epochs, caches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.builtin.training.load import load

pytestmark = pytest.mark.slow  # TensorFlow traces a graph for each test

Keys = Callable[..., list[bytes]]


def read(dataset: Any) -> list[bytes]:
    found: list[bytes] = []
    for element in dataset:
        keys = element["record/key"].numpy()
        found += [keys] if isinstance(keys, bytes) else keys.tolist()
    return found


def with_keys(root: Path, split: str = "train", **arguments: Any) -> Any:
    return load("digits7", split, registry=root, features=[], with_key=True, **arguments)


@pytest.mark.parametrize(
    ("arguments", "length"),
    [
        ({}, 200),
        ({"batch_size": 32}, 7),
        ({"batch_size": 32, "drop_remainder": True}, 6),
        ({"batch_size": 500, "drop_remainder": True}, 0),
        ({"shuffle": 10, "seed": 1, "batch_size": 32}, 7),
        ({"repeat": 2, "batch_size": 32, "drop_remainder": True, "shuffle": True}, 12),
        ({"cache": True, "shuffle": True}, 200),
        ({"cache": True, "shuffle": True, "batch_size": 32, "decode": True}, 7),
        ({"prefetch": 4, "deterministic": False}, 200),
        ({"hosts": 7, "host": 1, "batch_size": 10}, 3),
        ({"as_supervised": True, "batch_size": 32, "decode": True}, 7),
    ],
)
def test_the_length_is_known_and_true(
    tf: Any, numbered: Path, arguments: dict[str, Any], length: int
) -> None:
    dataset = load("digits7", "train", registry=numbered, **arguments)
    assert dataset.cardinality() == length
    assert sum(1 for _ in dataset) == length


def test_without_end_the_length_is_infinite(tf: Any, numbered: Path) -> None:
    dataset = with_keys(numbered, repeat=True, batch_size=150)
    assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    assert len(read(dataset.take(5))) == 150 + 50 + 150 + 50 + 150


@pytest.mark.parametrize(
    ("split", "parts"),
    [
        ("train[:25%]", [("train", 0, 50)]),
        ("train[-10:]", [("train", 190, 200)]),
        ("train[20:150]", [("train", 20, 150)]),
        ("test[:5]+train[100:102]", [("test", 0, 5), ("train", 100, 102)]),
        ("all", [("test", 0, 60), ("train", 0, 200)]),
        ("train[7:7]", []),
    ],
)
def test_split_expressions_name_records(
    tf: Any, numbered: Path, keys: Keys, split: str, parts: list[tuple[str, int, int]]
) -> None:
    expected: list[bytes] = []
    for name, start, stop in parts:
        expected += keys(7, name)[start:stop]
    assert read(with_keys(numbered, split, batch_size=16)) == expected


def test_elements_come_in_order_without_a_shuffle(tf: Any, numbered: Path, keys: Keys) -> None:
    assert read(with_keys(numbered)) == keys()
    assert read(with_keys(numbered, batch_size=32, cache=True)) == keys()
    assert sorted(read(with_keys(numbered, deterministic=False))) == sorted(keys())


@pytest.mark.parametrize("cache", [False, True])
@pytest.mark.parametrize("batch_size", [None, 16])
def test_a_shuffle_has_another_order_each_epoch(
    tf: Any, numbered: Path, keys: Keys, cache: bool, batch_size: int | None
) -> None:
    dataset = with_keys(numbered, shuffle=True, seed=1, batch_size=batch_size, cache=cache)
    first, second = read(dataset), read(dataset)
    assert sorted(first) == sorted(second) == sorted(keys())
    assert len({tuple(first), tuple(second), tuple(keys())}) == 3


def test_a_seed_repeats_its_orders(tf: Any, numbered: Path) -> None:
    one, other = (with_keys(numbered, shuffle=True, seed=5, repeat=2) for _ in range(2))
    assert read(one) == read(other)
    third = with_keys(numbered, shuffle=True, seed=6, repeat=2)
    assert read(one) != read(third)


def test_a_small_buffer_still_mixes_shards(tf: Any, numbered: Path, keys: Keys) -> None:
    found = read(with_keys(numbered, shuffle=1, seed=2))
    assert sorted(found) == sorted(keys())
    assert found != keys()


def test_a_batch_has_records_of_one_epoch(tf: Any, numbered: Path) -> None:
    for batch in with_keys(numbered, repeat=3, batch_size=64, shuffle=True):
        found = batch["record/key"].numpy().tolist()
        assert len(found) == len(set(found))


def test_a_cache_lies_in_files_where_a_path_is_given(
    tf: Any, numbered: Path, tmp_path: Path, keys: Keys
) -> None:
    dataset = with_keys(numbered, cache=str(tmp_path / "kept"), batch_size=64)
    assert read(dataset) == read(dataset) == keys()
    assert list(tmp_path.glob("kept*"))


def test_options_are_applied(tf: Any, numbered: Path) -> None:
    options = tf.data.Options()
    options.threading.private_threadpool_size = 2
    dataset = load("digits7", "test", registry=numbered, options=options)
    assert dataset.options().threading.private_threadpool_size == 2
    policy = dataset.options().experimental_distribute.auto_shard_policy
    assert policy == tf.data.experimental.AutoShardPolicy.DATA


def test_keras_trains_on_it(tf: Any, numbered: Path, recwarn: pytest.WarningsRecorder) -> None:
    dataset = load(
        "digits7",
        "train",
        registry=numbered,
        decode=True,
        channels=1,
        image_size=(28, 28),
        as_supervised=True,
        batch_size=50,
        drop_remainder=True,
        shuffle=True,
        seed=1,
    )
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Rescaling(1 / 255), layers.Flatten(), layers.Dense(10)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    history = model.fit(dataset, epochs=3, verbose=0)
    assert len(history.history["loss"]) == 3
    assert history.history["loss"][-1] < history.history["loss"][0]
    assert [str(each.message) for each in recwarn if "ran out of data" in str(each.message)] == []


def test_batches_have_their_size_in_their_shapes(tf: Any, numbered: Path) -> None:
    dataset = load(
        "digits7",
        "train",
        registry=numbered,
        batch_size=32,
        drop_remainder=True,
        decode=True,
        channels=3,
        image_size=(32, 40),
        with_key=True,
    )
    spec = dataset.element_spec
    assert spec["image/encoded"] == tf.TensorSpec((32, 32, 40, 3), tf.uint8)
    assert spec["image/class/label"] == tf.TensorSpec((32,), tf.int64)
    assert spec["record/key"] == tf.TensorSpec((32,), tf.string)
