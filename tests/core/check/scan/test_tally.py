"""Counting: exact counts, the first places, whatever the order of adding and merging."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scan_support import ODD

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.framing import frame
from tfrecreg.core.records.reader import scan
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.findings import MAX_LOCATIONS, Code, Finding, Location, Severity

DATA = (b"first", b"second one")

OTHER = Code("OTH001", "other", Severity.WARNING, "something else", "look", "A page.")


def place(number: int, split: str = "train", shard: str = "a") -> Location:
    return Location(split=split, shard=shard, record=number, offset=number * 10)


def findings(tally: Tally) -> list[Finding]:
    return list(tally.findings("mnist"))


def test_what_is_added_becomes_one_finding_a_group() -> None:
    tally = Tally()
    assert not tally
    tally.add(ODD, "it is odd", place(3), split="train")
    tally.add(ODD, "it is odd", place(5), split="train", count=4)
    tally.add(ODD, "it is odd", None, split="test", subject="b")
    tally.add(OTHER, "it is other", None, feature="x")
    assert tally
    test, train, other = findings(tally)
    assert (train.code, train.rule, train.severity) == ("ODD001", "odd-record", Severity.ERROR)
    assert (train.message, train.hint) == ("it is odd", "make it even")
    assert (train.count, train.locations) == (5, (place(3), place(5)))
    assert train.fingerprint == "ODD001:mnist:train::"
    assert (test.count, test.locations, test.fingerprint) == (1, (), "ODD001:mnist:test::b")
    assert (other.fingerprint, other.severity) == ("OTH001:mnist::x:", Severity.WARNING)


def test_the_first_twenty_places_are_kept_and_all_are_counted() -> None:
    tally = Tally()
    for number in reversed(range(1000)):
        tally.add(ODD, "it is odd", place(number))
    (found,) = findings(tally)
    assert found.count == 1000
    assert found.locations == tuple(place(number) for number in range(MAX_LOCATIONS))


occurrences = st.lists(
    st.tuples(
        st.sampled_from([ODD, OTHER]),
        st.sampled_from(["one", "two"]),
        st.sampled_from(["test", "train"]),
        st.one_of(st.none(), st.integers(0, 60)),
        st.integers(1, 3),
    ),
    max_size=120,
)


def counted(items: list[tuple[Code, str, str, int | None, int]]) -> Tally:
    tally = Tally()
    for code, message, split, number, count in items:
        where = None if number is None else place(number, split)
        tally.add(code, message, where, split=split, count=count)
    return tally


@pytest.mark.medium
@settings(max_examples=150)
@given(occurrences, st.randoms(use_true_random=False), st.integers(1, 6))
def test_merging_parts_in_any_order_is_counting_in_one_go(
    items: list[tuple[Code, str, str, int | None, int]], chance: random.Random, parts: int
) -> None:
    whole = findings(counted(items))
    dealt: list[list[tuple[Code, str, str, int | None, int]]] = [[] for _ in range(parts)]
    for item in items:
        chance.choice(dealt).append(item)
    chance.shuffle(dealt)
    merged = Tally()
    for each in dealt:
        part = pickle.loads(pickle.dumps(counted(each)))  # as it comes from a worker
        before = findings(part)
        merged.merge(part)
        assert findings(part) == before  # merging leaves what it takes from as it was
    assert findings(merged) == whole
    assert sum(each.count for each in whole) == sum(count for *_, count in items)
    for each in whole:
        orders = [location.order() for location in each.locations]
        assert orders == sorted(orders)
        assert len(orders) <= MAX_LOCATIONS


def test_an_occurrence_in_a_record_has_its_place_and_the_split_of_its_shard(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"".join(frame(each)[0] + each + frame(each)[1] for each in DATA))
    storage = LocalStorage(tmp_path)
    shard = Shard("train", 0, "a", storage, "a", None, None, None)
    batch = next(event for event in scan(storage, "a") if isinstance(event, RecordBatch))
    tally = Tally()
    tally.add_record(shard, batch, 1, ODD, "x", "it is odd", "found 3")
    tally.add_record(shard, batch, 0, ODD, "", "it is odd", None)
    none, feature = findings(tally)
    assert feature.fingerprint == "ODD001:mnist:train:x:"
    (where,) = feature.locations
    assert (where.record, where.offset, where.length) == (1, 16 + len(DATA[0]), len(DATA[1]))
    assert (where.split, where.feature, where.detail) == ("train", "x", "found 3")
    assert none.locations[0].feature is None
