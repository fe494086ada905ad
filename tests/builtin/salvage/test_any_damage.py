"""Whatever happens to a shard: every record that was not touched is salvaged, and nothing else."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from salvage_support import Made, make, nested, payloads_in, put, rescue

HITS = st.lists(
    st.tuples(
        st.sampled_from(["flip", "zeros", "noise", "header", "cut", "garbage"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(1, 60),
    ),
    min_size=1,
    max_size=4,
)
"""What is done to the file, where in it, and how much."""

SIZES = st.lists(st.integers(0, 120), min_size=1, max_size=14)


def damaged(data: bytes, headers: Sequence[int], hits: list[tuple[str, float, int]]) -> bytes:
    """`data` after all that; `headers` are where records, or members, begin."""
    found = bytearray(data)
    chance = random.Random(str(hits))
    for kind, place, size in hits:
        at = int(place * len(found))
        if kind == "flip" and found:
            found[at] ^= 1 << size % 8
        elif kind == "zeros":
            found[at : at + size] = bytes(len(found[at : at + size]))
        elif kind == "noise":
            found[at : at + size] = chance.randbytes(len(found[at : at + size]))
        elif kind == "header":
            at = headers[int(place * len(headers))]
            found[at : at + 12] = chance.randbytes(len(found[at : at + 12]))
        elif kind == "cut":
            del found[len(found) - size :]
        elif kind == "garbage":
            found += chance.randbytes(size)
    return bytes(found)


def untouched(before: bytes, after: bytes, spans: Iterator[tuple[int, int]]) -> list[int]:
    """The numbers of the spans whose bytes are where they were."""
    return [
        number for number, (begin, end) in enumerate(spans) if before[begin:end] == after[begin:end]
    ]


def is_part(few: Sequence[bytes], many: Sequence[bytes]) -> bool:
    """Whether `few` are some of `many`, in order."""
    rest = iter(many)
    return all(each in rest for each in few)


def salvaged(
    made: Made, data: bytes, *, indexed: bool, cut: bool
) -> tuple[list[bytes], list[bytes]]:
    """The payloads that were kept and repaired, and the doubtful ones; that the counts are true is
    checked on the way.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = put(Path(folder), data, made.index if indexed else None)
        shard = rescue(path, Path(folder) / "out")
        found = payloads_in(Path(folder) / "out/x.tfrecord")
        apart = Path(folder) / "out/x.tfrecord.doubtful"
        doubtful = payloads_in(apart) if apart.exists() else []
    assert len(found) == shard.kept + shard.repaired
    assert len(doubtful) == shard.doubtful
    lost = len(made.payloads) - len(found)
    if indexed:
        assert (shard.lost, shard.exact) == (lost, True)
        assert shard.lost_keys is not None
        kept = {f"k{number}" for number in range(len(made.payloads))} - set(shard.lost_keys)
        # Equal payloads are one as good as the other.
        assert sorted(made.payloads[int(key[1:])] for key in kept) == sorted(found)
    else:
        # Without an index nobody knows of a cut right between two records.
        assert not shard.exact or cut or shard.lost == lost
    return found, doubtful


def expect_saved(
    made: Made, sound: Sequence[int], found: Sequence[bytes], doubtful: Sequence[bytes]
) -> None:
    """Every record that was not touched is there, in order where nothing is doubtful."""
    payloads = [made.payloads[number] for number in sound]
    assert not Counter(payloads) - Counter([*found, *doubtful])
    assert doubtful or is_part(payloads, found)
    assert is_part(found, made.payloads)


@pytest.mark.slow
@settings(max_examples=250)
@given(sizes=SIZES, hits=HITS, indexed=st.booleans(), seed=st.integers(0, 9))
def test_plain(
    sizes: list[int], hits: list[tuple[str, float, int]], indexed: bool, seed: int
) -> None:
    chance = random.Random(seed)
    made = make([chance.randbytes(size) for size in sizes])
    data = damaged(made.data, made.offsets, hits)
    sound = untouched(made.data, data, zip(made.offsets, made.ends(), strict=True))
    if not sound and data:
        return  # nothing may be left that says that it was a TFRecord
    found, doubtful = salvaged(
        made, data, indexed=indexed, cut=any(kind == "cut" for kind, *_ in hits)
    )
    expect_saved(made, sound, found, doubtful)


@pytest.mark.medium
@settings(max_examples=100)
@given(hits=HITS, seed=st.integers(0, 99))
def test_plain_with_records_inside_records(hits: list[tuple[str, float, int]], seed: int) -> None:
    chance = random.Random(seed)
    inner = [nested(*(chance.randbytes(20) for _ in range(3))) for _ in range(4)]
    outer = [chance.randbytes(50) for _ in range(4)]
    # Whatever is damaged, an index tells inner records from those of the shard.
    made = make([each for pair in zip(outer, inner, strict=True) for each in pair])
    data = damaged(made.data, made.offsets, hits)
    sound = untouched(made.data, data, zip(made.offsets, made.ends(), strict=True))
    if len(sound) < 4:
        return  # an index of which most is gone may be another shard's
    found, doubtful = salvaged(made, data, indexed=True, cut=True)
    expect_saved(made, sound, found, doubtful)


@pytest.mark.medium
@settings(max_examples=150)
@given(sizes=SIZES, hits=HITS, indexed=st.booleans(), seed=st.integers(0, 9))
def test_gzip(
    sizes: list[int], hits: list[tuple[str, float, int]], indexed: bool, seed: int
) -> None:
    chance = random.Random(seed)
    made = make([chance.randbytes(size) for size in sizes], member_bytes=150)
    starts = [file for file, _ in made.members]
    data = damaged(made.data, starts, hits)
    spans = zip(starts, [*starts[1:], len(made.data)], strict=True)
    whole = untouched(made.data, data, spans)
    if not whole or (0 not in whole and not indexed):
        return  # nothing may be left that says that it was gzip
    bounds = [*(stream for _, stream in made.members), len(made.stream)]
    sound = [
        number
        for number, offset in enumerate(made.offsets)
        if any(bounds[each] <= offset < bounds[each + 1] for each in whole)
    ]
    found, doubtful = salvaged(
        made, data, indexed=indexed, cut=any(kind == "cut" for kind, *_ in hits)
    )
    expect_saved(made, sound, found, doubtful)
