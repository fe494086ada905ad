"""TODO."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg_imagefolder.splitter import Splitter, is_split_name

NAMES = [f"class/picture{number}.jpg" for number in range(5_000)]


def test_each_split_gets_about_its_share() -> None:
    counts = Counter(
        map(Splitter(["train=0.8", "validation=0.1", "test=0.1"]).split_of_group, NAMES)
    )
    assert counts["train"] == pytest.approx(4_000, abs=120)
    assert counts["validation"] == pytest.approx(500, abs=90)
    assert counts["test"] == pytest.approx(500, abs=90)


def test_a_share_is_what_it_is_forever() -> None:
    # Golden: another hash, or another order, would move pictures of everybody's next build.
    splitter = Splitter(["train=0.8", "validation=0.1", "test=0.1"])
    found = "".join(splitter.split_of_group(name)[:2] for name in NAMES[:40])
    assert found == GOLDEN


GOLDEN = "trtrtetrtrtetrvatetrvatrtrtrtrtrtrtrtetrtrvatrvatrtrtrtrtrtrtetrvatrtrtrtrtrtrtr"


def test_only_proportions_count() -> None:
    alike = [["train=0.8", "test=0.2"], ["train=80", "test=20"], ["train=4/5", "test=1/5"]]
    found = [[Splitter(texts).split_of_group(name) for name in NAMES[:500]] for texts in alike]
    assert found[0] == found[1] == found[2]


def test_names_come_in_their_normal_spelling() -> None:
    assert Splitter(["Training=1", "val=1", "TEST=1", "extra=1"]).names == [
        "train",
        "validation",
        "test",
        "extra",
    ]


def test_what_is_added_moves_nothing() -> None:
    splitter = Splitter(["train=0.8", "test=0.2"])
    before = {name: splitter.split_of_group(name) for name in NAMES[:1000]}
    after = {name: splitter.split_of_group(name) for name in reversed(NAMES)}
    assert {name: after[name] for name in before} == before


def test_names_that_are_not_utf8_have_a_split_too() -> None:
    assert Splitter(["a=1", "b=1"]).split_of_group("caf\udce9") in ("a", "b")


@given(
    st.lists(st.integers(1, 10**9), min_size=2, max_size=12),
    st.lists(st.text(max_size=20), min_size=1, max_size=20),
)
@settings(max_examples=100)
def test_every_group_has_exactly_one_split(weights: list[int], groups: list[str]) -> None:
    splitter = Splitter([f"s{number}={weight}" for number, weight in enumerate(weights)])
    for group in groups:
        assert splitter.split_of_group(group) in splitter.names
        assert splitter.split_of_group(group) == splitter.split_of_group(group)


@pytest.mark.parametrize(
    ("name", "good"),
    [("train", True), ("test_dev", True), ("2017", True), ("test-dev", False), ("", False)],
)
def test_a_split_is_called_what_a_file_name_can_hold(name: str, good: bool) -> None:
    assert is_split_name(name) is good
