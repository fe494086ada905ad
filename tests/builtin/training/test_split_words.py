"""Expressions for splits: what they mean, as TensorFlow Datasets says, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from tfrecreg.core.registry.splits import even_parts, find_ranges, named_splits
from tfrecreg.core.values.errors import UsageError

SHARDS = {"test": [50, 50], "train": [400, 300, 303], "validation": [0]}


@pytest.mark.parametrize(
    ("words", "ranges"),
    [
        ("train", [("train", 0, 1003)]),
        ("train[:80%]", [("train", 0, 802)]),
        ("train[80%:]", [("train", 802, 1003)]),
        ("train[100:200]", [("train", 100, 200)]),
        ("train[1_000:]", [("train", 1000, 1003)]),
        ("train[-3:]", [("train", 1000, 1003)]),
        ("train[:-10%]", [("train", 0, 903)]),
        ("train[33.3%:66.6%]", [("train", 334, 668)]),
        ("train[:1shard]", [("train", 0, 400)]),
        ("train[-1shard:]", [("train", 700, 1003)]),
        ("train[1shard:2shard]", [("train", 400, 700)]),
        ("train[0shard]", [("train", 0, 400)]),
        ("train[ 1shard ]", [("train", 400, 700)]),
        ("train[-1shard]", [("train", 700, 1003)]),
        ("train[-2shard]+test", [("train", 400, 700), ("test", 0, 100)]),
        ("test[5:5]", [("test", 5, 5)]),
        ("train + test[:1%]", [("train", 0, 1003), ("test", 0, 1)]),
        ("test+test", [("test", 0, 100), ("test", 0, 100)]),
        ("all", [("test", 0, 100), ("train", 0, 1003), ("validation", 0, 0)]),
        ("validation[:50%]", [("validation", 0, 0)]),
    ],
)
def test_what_words_mean(words: str, ranges: list[tuple[str, int, int]]) -> None:
    found = find_ranges(words, SHARDS)
    assert found == [(name, range(start, stop)) for name, start, stop in ranges]
    assert named_splits(words, list(SHARDS), "x") == list(dict.fromkeys(n for n, *_ in ranges))


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("", "is not an expression for splits"),
        ("train[", "is not an expression for splits"),
        ("train[5]", "is not an expression for splits"),
        ("train[:]", "is not an expression for splits"),
        ("train[a:b]", "is not an expression for splits"),
        ("train[1.5:3]", "is not an expression for splits"),
        ("train[1:2:3]", "is not an expression for splits"),
        ("train++test", "is not an expression for splits"),
        ("all[:5%]", "is not an expression for splits"),
        ("all[1shard]", "is not an expression for splits"),
        ("train[3]", "is not an expression for splits"),
        ("train[50%]", "is not an expression for splits"),
        ("train[3shard]", "reaches beyond its split, which has 3 shards"),
        ("train[-4shard]", "reaches beyond its split, which has 3 shards"),
        ("train[10%:20]", "mixes units: both bounds should be percentages,"),
        ("train[:1004]", "reaches beyond its split, which has 1003 records"),
        ("train[-1004:]", "reaches beyond its split, which has 1003 records"),
        ("train[:101%]", "reaches beyond its split, which has 1003 records"),
        ("train[4shard:]", "reaches beyond its split, which has 3 shards"),
        ("train[20:10]", "begins at record 20, but ends at record 10"),
        ("tran", "`x` has no split `tran`; did you mean `train`?"),
    ],
)
def test_what_is_refused(words: str, fault: str) -> None:
    def read() -> None:
        named_splits(words, list(SHARDS), "x")
        find_ranges(words, SHARDS)

    with pytest.raises(UsageError) as caught:
        read()
    assert fault in caught.value.message
    assert caught.value.exit_code == 2


def test_even_parts_are_contiguous_and_the_first_are_larger() -> None:
    assert [list(part) for part in even_parts(range(5, 16), 3, drop_remainder=False)] == [
        [5, 6, 7, 8],
        [9, 10, 11, 12],
        [13, 14, 15],
    ]
    dropped = even_parts(range(5, 16), 3, drop_remainder=True)
    assert [(part.start, part.stop) for part in dropped] == [(5, 8), (8, 11), (11, 14)]
    assert [len(part) for part in even_parts(range(2), 3, drop_remainder=False)] == [1, 1, 0]


# --- TensorFlow Datasets itself


@pytest.fixture(scope="module")
def tfds() -> Any:
    reason = "TensorFlow Datasets is not installed: nothing to compare with"
    pytest.importorskip("tensorflow", reason=reason)
    return pytest.importorskip("tensorflow_datasets", reason=reason)


def theirs(tfds: Any, spec: Any, shards: dict[str, list[int]]) -> list[tuple[str, int, int]]:
    infos = {
        name: SimpleNamespace(num_examples=sum(each), shard_lengths=each)
        for name, each in shards.items()
    }
    found = tfds.core.splits.AbstractSplit.from_spec(spec).to_absolute(infos)
    ends = {name: sum(each) for name, each in shards.items()}
    return [
        (each.splitname, each.from_ or 0, ends[each.splitname] if each.to is None else each.to)
        for each in found
    ]


BOUND = (
    st.integers(-100, 100).map(lambda value: f"{value}%")
    | st.floats(-100, 100).map(lambda value: f"{value:.3f}%")
    | st.integers(-3, 3).map(str)
    | st.just("")
)


@given(shards=st.lists(st.integers(1, 40), min_size=3, max_size=4), start=BOUND, stop=BOUND)
def test_bounds_are_rounded_as_tfds_rounds_them(
    tfds: Any, shards: list[int], start: str, stop: str
) -> None:
    words = f"train[{start}:{stop}]+test"
    splits = {"train": shards, "test": [3]}
    try:
        ours = find_ranges(words, splits)
    except UsageError:
        reject()  # a test above says which bounds are refused
    assert theirs(tfds, words, splits) == [(name, r.start, r.stop) for name, r in ours]


@given(size=st.integers(0, 200), count=st.integers(1, 9), drop=st.booleans())
def test_even_parts_are_those_of_tfds(tfds: Any, size: int, count: int, drop: bool) -> None:
    specs = tfds.even_splits("train", count, drop_remainder=drop)
    found = [theirs(tfds, spec, {"train": [size]}) for spec in specs]
    ours = even_parts(range(size), count, drop_remainder=drop)
    assert found == [[("train", part.start, part.stop)] for part in ours]
