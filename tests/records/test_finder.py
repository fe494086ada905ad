"""Both finders against trying every place; and what they look at, counted."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tfrecreg.records import frame, frame_header
from tfrecreg.records.finder import KEPT_BYTES, Finder, PythonFinder
from tfrecreg.records.framing import header_length, masked_crc
from tfrecreg.records.native import ENGINES, NativeFinder

Make = Callable[..., Finder]
NOWHERE = 1 << 62


@pytest.fixture(params=["python", "tables", "SSE 4.2"])
def make(request: pytest.FixtureRequest) -> Make:
    """Each finder in turn; what the processor lacks is replaced by what it has."""
    if request.param == "python":
        return PythonFinder
    request.getfixturevalue("compiled")
    engine = ENGINES.index(request.param)
    return lambda at, **limits: NativeFinder(at, **limits, engine=engine)


def record(payload: bytes) -> bytes:
    head, foot = frame(payload)
    return head + payload + foot


def search(
    finder: Finder, data: bytes, size: int, at: int = 0
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What is found in blocks of a size: sound records, and where the gap test passes."""
    gaps = []
    while True:
        block = data[at : at + size]
        last = at + len(block) == len(data)
        while finder.feed(block, at, last=last):
            gaps.append((finder.found, finder.payload))
        if last:
            return finder.spans(), gaps
        at += len(block) - KEPT_BYTES


def by_trying(data: bytes, stop: int) -> list[tuple[int, int]]:
    """The outermost sound records behind the first byte, each place tried for itself."""
    found = []
    for start in range(1, stop - 15):
        length = header_length(data[start : start + 12])
        if length is None or (end := start + 16 + length) > stop:
            continue
        if masked_crc(data[start + 12 : end - 4]) == int.from_bytes(data[end - 4 : end], "little"):
            found.append((start, end))
    outer: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda span: span[1]):
        while outer and outer[-1][0] >= start:
            outer.pop()
        if not outer or outer[-1][1] <= start:
            outer.append((start, end))
    return outer


def odd_stream(dice: random.Random) -> bytes:
    """Sound records, records inside records, headers of nothing, zeros and noise."""
    kinds: list[Callable[[], bytes]] = [
        lambda: dice.randbytes(dice.randrange(40)),
        lambda: record(dice.randbytes(dice.randrange(30))),
        lambda: record(record(b"abc") + record(b"") + dice.randbytes(dice.randrange(5))),
        lambda: frame_header(dice.randrange(200)),
        lambda: bytes(dice.randrange(40)),
    ]
    data = b"".join(dice.choice(kinds)() for _ in range(dice.randrange(8)))
    return data[dice.choice((0, 0, 5, 12)) :]


def test_it_finds_just_what_trying_every_place_finds(make: Make) -> None:
    for seed in range(200):
        dice = random.Random(seed)
        data = odd_stream(dice)
        stop = len(data) - dice.choice((0, 0, 0, 9))
        found = [
            search(make(0, before=NOWHERE, stop=stop, gap=True), data, size)
            for size in (32, 41, 64, 1000)
        ]
        assert found[0][0] == by_trying(data, stop), seed
        assert all(each == found[0] for each in found), seed


@pytest.mark.parametrize("header", [b"\xff" * 12, bytes(12), b"", b"\xff" * 5, b"\xff" * 20])
def test_a_payload_is_known_whatever_became_of_its_header(make: Make, header: bytes) -> None:
    payload, following = random.Random(1).randbytes(300), record(b"following")
    for inside in (b"", record(b"inside")):
        data = header + record(payload + inside)[12:] + following
        finder = make(0, before=NOWHERE, stop=len(data), gap=True)
        place = len(data) - len(following)
        assert (place, len(header)) in search(finder, data, 100)[1]


def test_a_payload_that_ends_with_the_stream_is_known(make: Make) -> None:
    data = bytes(12) + record(b"the last one")[12:]
    finder = make(0, before=NOWHERE, stop=len(data), gap=True)
    assert search(finder, data, 1000) == ([], [(len(data), 12)])


def test_headers_side_by_side_are_no_payloads(make: Make) -> None:
    data = b"\xff" * 16 + frame_header(300) * 50
    finder = make(0, before=NOWHERE, stop=len(data), gap=True)
    assert search(finder, data, 100) == ([], [])


def test_no_record_starts_at_the_limit_nor_ends_behind_the_stop(make: Make) -> None:
    data = b"".join(record(b"number %d" % number) for number in range(9))
    size = len(data) // 9
    finder = make(0, before=3 * size, stop=len(data), gap=False)
    assert search(finder, data, 50)[0] == [(size, 2 * size), (2 * size, 3 * size)]
    finder = make(0, before=NOWHERE, stop=3 * size + 1, gap=False)
    assert search(finder, data, 50)[0] == [(size, 2 * size), (2 * size, 3 * size)]


def test_it_tells_the_first_and_whether_more_are_on_their_way(make: Make) -> None:
    inside, outside = record(b"inside"), frame_header(5000)
    data = b"x" + outside + inside + bytes(100)
    finder = make(0, before=NOWHERE, stop=1 << 40, gap=False)
    assert finder.first() is None
    assert not finder.waiting()
    finder.feed(data, 0, last=False)
    assert finder.first() == (13, 13 + len(inside))
    assert finder.waiting()
    rest = bytes(5000)
    finder.feed(data[-KEPT_BYTES:] + rest, len(data) - KEPT_BYTES, last=True)
    assert not finder.waiting()


def test_more_headers_than_it_remembers_cost_no_near_record(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    if make is PythonFinder:
        monkeypatch.setattr("tfrecreg.records.finder._PENDING", 64)
        data = frame_header(1 << 20) * 100 + record(b"near")
    else:
        data = frame_header(1 << 30) * ((1 << 20) + 10) + record(b"near")
    finder = make(0, before=NOWHERE, stop=1 << 40, gap=False)
    assert search(finder, data, 1 << 16)[0] == [(len(data) - 20, len(data))]
