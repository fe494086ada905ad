"""Stratified splits against an independent computation."""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from derived_support import NIGHT, STREET, Derived, pictures
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.build.sources.deal import DealOptions, ListedEntry, deal_strata
from tfrecreg.core.build.sources.interface import Item
from tfrecreg.core.values.errors import RawDataError, UsageError

pytest.importorskip("duckdb", reason="the extra `query` is not installed")

LABEL = "image/class/label"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Derived:
    made = Derived(tmp_path_factory.mktemp("strata") / "registry")
    made.parent("street", pictures("s", STREET, 61, 12), labels={LABEL: STREET}, shards=3)
    made.parent("night", pictures("night", NIGHT, 23, 6), labels={LABEL: NIGHT}, compression="gzip")
    return made


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _number(domain: str, text: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{domain}\0{text}".encode()).digest()[:8], "big")


def dealt(classes: Mapping[str, str | None], shares: Sequence[tuple[str, int]]) -> dict[str, str]:
    """The split of each key by the rule of the documentation, one record after the other."""
    whole = sum(share for _, share in shares)
    of_class = defaultdict(list)
    for key, name in classes.items():
        of_class[name].append(key)
    found = {}
    for name, keys in of_class.items():
        text = "" if name is None else f"={name}"
        rounding = _number("tfrecreg derived stratum rounding v1", text)
        keys.sort(key=lambda key: _number("tfrecreg derived stratum rank v1", key))
        for rank, key in enumerate(keys):
            reached = 0
            for split, share in shares:
                reached += share
                # (rank + 1) <= n * c + u, in integers.
                if (rank + 1) * whole << 64 <= (len(keys) * reached << 64) + rounding * whole:
                    found[key] = split
                    break
    return found


def test_every_class_has_its_share_in_every_split_of_a_build(two: Derived) -> None:
    two.build(
        "dealt",
        "street@1.0.0",
        "night@1.0.0",
        split=["train=0.7", "validation=0.2", "calib=0.1"],
        stratify="label",
        classes=["kitten=cat"],
    )
    rows = two.rows("dealt")
    parents = {**pictures("s", STREET, 61, 12), "more": pictures("night", NIGHT, 23, 6)["train"]}
    classes = {
        row["name"]: row["image/class/text"].replace("kitten", "cat")
        for row in (*parents["train"], *parents["more"])
    }
    expected = dealt(classes, [("train", 7), ("validation", 2), ("calib", 1)])
    assert {key: split for split, key in rows if split != "test"} == expected
    assert sum(split == "test" for split, _ in rows) == 18
    counts = Counter((classes[key], split) for key, split in expected.items())
    totals = Counter(classes.values())
    assert set(totals) == {"cat", "dog", "truck", "fox"}
    for name, total in totals.items():
        for split, share in (("train", 7), ("validation", 2), ("calib", 1)):
            assert abs(counts[name, split] - Fraction(total * share, 10)) < 1


def test_the_same_build_again_of_the_selection(two: Derived) -> None:
    options = {"split": ["train=1", "validation=1"], "stratify": "label", "where": "width > 120"}
    two.build("once", "street@1.0.0", **options)
    first = two.files("once")
    two.build("once", "street@1.0.0", **options)
    assert two.files("once") == first
    kept = {
        row["name"]: row["image/class/text"]
        for row in pictures("s", STREET, 61, 12)["train"]
        if row["width"] > 120
    }
    found = {key: split for split, key in two.rows("once") if split != "test"}
    assert found == dealt(kept, [("train", 1), ("validation", 1)])


def test_classes_may_be_any_expression_and_missing(two: Derived) -> None:
    expression = "CASE WHEN width >= 150 THEN 'wide' END"
    two.build("wide", "street@1.0.0", split=["a=3", "b=1"], split_of="test", stratify=expression)
    rows = pictures("s", STREET, 61, 12)["test"]
    classes = {row["name"]: "wide" if row["width"] >= 150 else None for row in rows}
    assert len(set(classes.values())) == 2
    found = {key: split for split, key in two.rows("wide") if split != "train"}
    assert found == dealt(classes, [("a", 3), ("b", 1)])


def test_what_cannot_be_dealt_is_refused(two: Derived) -> None:
    with pytest.raises(UsageError, match="labell"):
        two.build("no", "street@1.0.0", split=["a=1", "b=1"], stratify="labell")
    with pytest.raises(UsageError, match="is not one class"):
        two.build("no", "street@1.0.0", split=["a=1", "b=1"], stratify="SELECT label FROM records")
    for changing in ({"stratify": '"random"() < 0.5'}, {"where": 'main."random"() < 0.5'}):
        with pytest.raises(UsageError, match="`random` is not constant"):
            two.build("no", "street@1.0.0", split=["a=1", "b=1"], **changing)
    with pytest.raises(RawDataError, match=r"the split `[ab]` got no item"):
        two.build(
            "no",
            "street@1.0.0",
            split=["a=1", "b=1"],
            stratify="label",
            where="key = 's000' OR split = 'test'",
        )


def strata(options: DealOptions, items: Sequence[tuple[Item, str]]) -> list[ListedEntry]:
    return list(deal_strata(options, items, (item for item, _ in items)))


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 40), min_size=1),
    st.lists(st.integers(1, 9), min_size=2, max_size=5),
    st.randoms(use_true_random=False),
)
def test_counts_are_rounded_down_or_up(
    sizes: dict[str, int], shares: list[int], chance: random.Random
) -> None:
    names = [f"s{number}" for number in range(len(shares))]
    options = DealOptions(tuple(f"{a}={b}" for a, b in zip(names, shares, strict=True)))
    items = [
        (Item("train", f"{name}{number}", 1, b""), name)
        for name, size in sizes.items()
        for number in range(size)
    ]
    chance.shuffle(items)
    try:
        found = strata(options, items)
    except RawDataError:
        return  # too few for each split to get one
    expected = dealt(
        {item.key: name for item, name in items}, list(zip(names, shares, strict=True))
    )
    assert {each.key: each.split for each in found} == expected
    assert [each.key for each in found] == [item.key for item, _ in items]
    counts = Counter((each.key[0], each.split) for each in found)
    for name, size in sizes.items():
        for split, share in zip(names, shares, strict=True):
            assert abs(counts[name, split] - Fraction(size * share, sum(shares))) < 1


def test_many_classes_of_few_records_give_a_split_its_share() -> None:
    """Each class alone would be rounded down to nothing."""
    items = [(Item("train", f"{n}-{k}", 1, b""), str(n)) for n in range(600) for k in range(3)]
    found = Counter(each.split for each in strata(DealOptions(("train=0.9", "test=0.1")), items))
    assert 130 < found["test"] < 230  # 180 are expected, with a deviation of 13


def test_growth_of_one_class_moves_no_record_of_another() -> None:
    options = DealOptions(("train=0.8", "test=0.2"))
    items = [(Item("train", f"k{n}", 1, b""), "abc"[n % 3]) for n in range(90)]
    more = [(Item("train", f"new{n}", 1, b""), "a") for n in range(5)]
    before = {each.key: each.split for each in strata(options, items)}
    after = {each.key: each.split for each in strata(options, [*items, *more])}
    moved = {key for key in before if before[key] != after[key]}
    assert {key for key in moved if int(key[1:]) % 3} == set()
    assert len(moved) <= len(more)
