"""Twenty thousand damaged shards: all damage is found, all whole records are saved, none invented.

Each is salvaged without and with its index, and every fourth with a manifest beside it as well. A
record from inside another is not invented where every reader takes it for one of the shard's, since
damage brought it to where one has to be; an index tells these as well. In one shard a record that
two others reach into is in quarantine alone.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import struct
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pytest
from blake3 import blake3
from check_support import framed
from memory_support import MemoryFolder, Seen, see
from salvage_support import Made, filler, make, payloads_of

from tfrecreg.builtin.salvage.shard import salvage_shard
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.records.frame_scan import header_candidates
from tfrecreg.core.records.framing import frame_header, header_length, masked_crc
from tfrecreg.core.records.gzip_writer import MAGIC, MEMBER_HEADER, TRAILER, Compression
from tfrecreg.core.registry.manifest import ShardEntry
from tfrecreg.core.storage.interface import Storage

ADDED = -1
"""Of a byte that is not of the sound file."""


@dataclass(frozen=True)
class Damaged:
    """A damaged shard."""

    number: int
    made: Made
    """The sound one."""
    data: bytes
    done: tuple[str, ...]
    """What was done to it, in order."""
    whole: Counter[bytes]
    """The payloads of the records that survive whole, and how often."""
    spared: Counter[bytes]
    """With those of gzip members of which only the header is damaged."""
    readable: frozenset[bytes]
    """Payloads of frames inside others that look like records without an index."""


def damaged(number: int, *, compressed: bool) -> Damaged:
    """The damaged shard of this number."""
    dice = random.Random(f"{number} {compressed}")
    made = _shard(dice, compressed=compressed)
    file = _File(made, [*range(len(made.data))], bytearray(made.data))
    kinds = [*_ANYWHERE, *(_GZIP if compressed else _PLAIN)]
    done = []
    for _ in range(dice.choice((1, 1, 1, 2, 2, 3))):
        kind = dice.choice(kinds)
        done.append(kind.__name__)
        kind(dice, file)
    whole = _whole_in_members(file) if compressed else _whole(made, file.places)
    spared = _whole_in_members(file, headers=False) if compressed else whole
    stream, starts = bytes(file.data), _whole_places(made, file.places)
    if compressed:
        stream, starts = _decoded(stream)
    readable = _readable(stream, starts)
    return Damaged(number, made, bytes(file.data), tuple(done), whole, spared, readable)


def _shard(dice: random.Random, *, compressed: bool) -> Made:
    payloads = [_payload(dice, number) for number in range(dice.randrange(3, 16))]
    if dice.randrange(8) == 0:  # tiny records
        payloads = [filler(number, dice.randrange(5)) for number in range(dice.randrange(1, 40))]
    if not compressed:
        return make(payloads)
    ours = make(payloads, dice.choice((1, 60, 200, 1 << 20)))
    if dice.randrange(3):
        return ours
    # As others write it: members that end anywhere, perhaps with a name and a time.
    size = dice.choice((7, 50, 300, 1 << 20))
    stream = ours.stream
    members, parts, at = [], [], 0
    for begin in range(0, len(stream), size):
        part = gzip.compress(stream[begin : begin + size], mtime=dice.choice((0, 1)))
        members.append((at, begin))
        parts.append(part)
        at += len(part)
    return Made(payloads, ours.offsets, b"".join(parts), ours.index, members)


def _payload(dice: random.Random, number: int) -> bytes:
    # Not 8: a payload of 8 bytes that is lost up to the next header, checksum and all, is as good
    # as that header.
    size = dice.choice((0, 9, 30, 60, 150))
    kind = dice.randrange(6)
    if kind == 5:
        return _headers(dice, number)
    if kind == 0:
        inner = [filler(100 * number + each, dice.choice((0, 5, 20, 40))) for each in range(3)]
        before, behind = dice.choice((b"", b"", b"before")), dice.choice((b"", b"behind"))
        return before + framed(*inner) + behind
    return filler(number, size) if kind < 3 else dice.randbytes(size)


def _headers(dice: random.Random, number: int) -> bytes:
    """A payload made of headers, or of pieces of frames."""
    parts = [frame_header(dice.choice((0, 1, 12, 16, 40, number))) for _ in range(5)]
    parts += [framed(filler(1000 + number, dice.randrange(4))), filler(number, 4)]
    return b"".join(dice.choices(parts, k=dice.randrange(1, 8)))


@dataclass
class _File:
    made: Made
    places: list[int]
    """Of each byte, where it was."""
    data: bytearray

    def put(self, at: int, stop: int, data: bytes, places: Sequence[int] | None = None) -> None:
        """Something in the place of a stretch."""
        self.data[at:stop] = data
        self.places[at:stop] = places if places is not None else [ADDED] * len(data)


def _stretch(dice: random.Random, file: _File) -> tuple[int, int]:
    """Of any size, begun and ended where something begins, or anywhere."""
    marks = sorted({*(each for each, _ in file.made.members), *file.made.offsets, len(file.data)})

    def place() -> int:
        near = dice.choice(marks) if dice.randrange(3) == 0 else dice.randrange(len(file.data) + 1)
        return min(near, len(file.data))

    at = place()
    stop = place() if dice.randrange(2) else at + dice.choice((1, 2, 4, 12, 16, 60))
    at, stop = sorted((at, min(stop, len(file.data))))
    return at, stop


def _bits(dice: random.Random, file: _File) -> None:
    for _ in range(dice.choice((1, 1, 1, 2, 9))):
        if file.data:
            at = dice.randrange(len(file.data))
            file.put(at, at + 1, bytes([file.data[at] ^ 1 << dice.randrange(8)]))


def _deleted(dice: random.Random, file: _File) -> None:
    at, stop = _stretch(dice, file)
    file.put(at, stop, b"")


def _inserted(dice: random.Random, file: _File) -> None:
    at, _ = _stretch(dice, file)
    size = dice.choice((1, 3, 12, 16, 100))
    file.put(at, at, dice.choice((bytes(size), dice.randbytes(size))))


def _zeroed(dice: random.Random, file: _File) -> None:
    at, stop = _stretch(dice, file)
    file.put(at, stop, bytes(stop - at))


def _swapped(dice: random.Random, file: _File) -> None:
    one, two = sorted((_stretch(dice, file), _stretch(dice, file)))
    if one[1] <= two[0]:
        data = file.data[slice(*two)] + file.data[one[1] : two[0]] + file.data[slice(*one)]
        was = file.places
        places = [*was[slice(*two)], *was[one[1] : two[0]], *was[slice(*one)]]
        file.put(one[0], two[1], data, places)


def _moved(dice: random.Random, file: _File) -> None:
    at, stop = _stretch(dice, file)
    data, places = bytes(file.data[at:stop]), file.places[at:stop]
    file.put(at, stop, b"")
    to = min(_stretch(dice, file)[0], len(file.data))
    file.put(to, to, data, places)


def _doubled(dice: random.Random, file: _File) -> None:
    at, stop = _stretch(dice, file)
    to = _stretch(dice, file)[0]
    over = to + (stop - at) * dice.randrange(2)
    file.put(to, over, bytes(file.data[at:stop]), file.places[at:stop])


def _cut(dice: random.Random, file: _File) -> None:
    at, _ = _stretch(dice, file)
    file.put(at, len(file.data), b"")


def _forged(dice: random.Random, file: _File) -> None:
    """A header that holds, with another length."""
    at = dice.choice(file.made.offsets)
    length = dice.choice(
        (0, 1, 40, dice.randrange(300), len(file.data), 1 << 20, 1 << 31, 1 << 40, (1 << 64) - 1)
    )
    if at + 12 <= len(file.data):
        file.put(at, at + 12, frame_header(length))


def _header_moved(dice: random.Random, file: _File) -> None:
    """A header, or a whole frame, from anywhere to where another one begins."""
    headers = header_candidates(bytes(file.data))
    if len(headers) < 2:
        return
    (at, length), (to, _) = dice.sample(headers, 2)
    size = dice.choice((12, 12, 16, 16 + length))
    data, places = bytes(file.data[at : at + size]), file.places[at : at + size]
    way = dice.randrange(3)
    if way == 0:
        to += dice.choice((-4, 0, 0, 12))
        file.put(max(to, 0), max(to, 0) + dice.choice((0, len(data))), data, places)
        return
    file.put(at, at + size, b"")
    to = max(to if to < at else to - len(data), 0)
    file.put(to, to, data, places)


def _forged_begin(dice: random.Random, file: _File) -> None:
    """A header of a record that holds, where the file begins."""
    size = len(file.data)
    length = dice.choice((0, 1, 40, dice.randrange(300), size, size - 16, 1 << 20, 1 << 40))
    if size >= 28:
        file.put(0, 12, frame_header(length))


def _members_swapped(dice: random.Random, file: _File) -> None:
    one, two = sorted((_member(dice, file), _member(dice, file)))
    if one[1] <= two[0] and two[1] <= len(file.data):
        data = file.data[slice(*two)] + file.data[one[1] : two[0]] + file.data[slice(*one)]
        was = file.places
        places = [*was[slice(*two)], *was[one[1] : two[0]], *was[slice(*one)]]
        file.put(one[0], two[1], bytes(data), places)


def _member_doubled(dice: random.Random, file: _File) -> None:
    at, stop = _member(dice, file)
    to = dice.choice((at, stop, _member(dice, file)[0]))
    file.put(to, to, bytes(file.data[at:stop]), file.places[at:stop])


def _member(dice: random.Random, file: _File) -> tuple[int, int]:
    members = [at for at, _ in file.made.members]
    number = dice.randrange(len(members))
    stop = [*members[1:], len(file.made.data)][number]
    return min(members[number], len(file.data)), min(stop, len(file.data))


def _member_dropped(dice: random.Random, file: _File) -> None:
    file.put(*_member(dice, file), b"")


def _member_cut(dice: random.Random, file: _File) -> None:
    at, stop = _member(dice, file)
    if at < stop:
        file.put(dice.randrange(at, stop), stop, b"")


def _member_head(dice: random.Random, file: _File) -> None:
    at, stop = _member(dice, file)
    where = at + dice.randrange(10)
    if where < stop:
        file.put(where, where + 1, dice.randbytes(1))


def _member_headless(dice: random.Random, file: _File) -> None:
    at, stop = _member(dice, file)
    file.put(at, min(stop, at + dice.choice((1, 2, 10, 11, 30))), b"")


def _member_trailer(dice: random.Random, file: _File) -> None:
    at, stop = _member(dice, file)
    if stop - at > 8:
        crc, size = TRAILER.unpack(file.data[stop - 8 : stop])
        changed = dice.choice(((crc ^ 1, size), (crc, size + 5), (crc ^ 7, size ^ 1)))
        file.put(stop - 8, stop, struct.pack("<II", changed[0], changed[1] & 0xFFFFFFFF))


_ANYWHERE = (_bits, _deleted, _inserted, _zeroed, _swapped, _moved, _doubled, _cut)
_PLAIN = (_forged, _forged, _header_moved, _header_moved)
_GZIP = (
    *(_member_dropped, _member_cut, _member_head, _member_headless, _member_trailer),
    *(_members_swapped, _member_doubled, _forged_begin),
)


def _whole(made: Made, places: Sequence[int]) -> Counter[bytes]:
    """The payloads of the records whose bytes are all in order."""
    numbers = {start: number for number, start in enumerate(made.offsets)}
    return Counter(made.payloads[numbers[places[at]]] for at in _whole_places(made, places))


def _whole_places(made: Made, places: Sequence[int]) -> list[int]:
    """The places of those records."""
    ends = dict(zip(made.offsets, [*made.offsets[1:], len(made.stream)], strict=True))
    return [
        at
        for at, place in enumerate(places)
        if place in ends
        and [*places[at : at + ends[place] - place]] == [*range(place, ends[place])]
    ]


def _readable(stream: bytes, starts: Sequence[int]) -> frozenset[bytes]:
    """Payloads of sound frames that stand where a record has to stand: where another ends, as its
    header says, or so that they lead on to another or to the end.
    """
    lengths = {at: header_length(stream[at : at + 12]) for at in range(len(stream) - 15)}
    ends = {
        at: at + 16 + length
        for at, length in lengths.items()
        if length is not None and at + 16 + length <= len(stream)
    }
    sound = {
        at
        for at, end in ends.items()
        if masked_crc(stream[at + 12 : end - 4]) == int.from_bytes(stream[end - 4 : end], "little")
    }
    found = set()
    reached = {0, *starts}
    for at in range(len(stream)):
        if at in reached and at in ends:
            reached.add(ends[at])
            found.add(at)
    leading = {len(stream), *starts}
    for at in sorted(sound, reverse=True):
        if ends[at] in leading:
            leading.add(at)
            found.add(at)
    return frozenset(stream[at + 12 : ends[at] - 4] for at in found & sound)


def _decoded(data: bytes) -> tuple[bytes, list[int]]:
    """What can be had of gzip by going from member to member, and where each begins."""
    parts: list[bytes] = []
    starts = []
    while data:
        starts.append(sum(map(len, parts)))
        inflater = zlib.decompressobj(31)
        taken = 0
        try:
            while taken < len(data) and not inflater.eof:
                parts.append(inflater.decompress(data[taken : taken + 1]))
                taken += 1
        except zlib.error:
            pass
        following = taken if inflater.eof else data.find(MAGIC, 1)
        data = data[following:] if following > 0 else b""
    return b"".join(parts), starts


def _whole_in_members(file: _File, *, headers: bool = True) -> Counter[bytes]:
    """Records all of whose members are whole, and stand in a row.

    Args:
        headers: whether the header of a member has to be whole, too.
    """
    made = file.made
    begins = [at for at, _ in made.members]
    ends = [*begins[1:], len(made.data)]
    stream = [*(at for _, at in made.members), len(made.stream)]
    head = 0 if headers else len(MEMBER_HEADER)
    starts = {begin + head: number for number, begin in enumerate(begins)}
    places: list[int] = []
    at = 0
    while at < len(file.places):
        number = starts.get(file.places[at])
        size = ends[number] - begins[number] - head if number is not None else 0
        begin = begins[number] + head if number is not None else 0
        if number is not None and file.places[at : at + size] == [*range(begin, begin + size)]:
            places += range(stream[number], stream[number + 1])
            at += size
        else:
            # The header of the next member separates nothing.
            places += [ADDED] * headers
            at += 1
    return _whole(made, places)


MANY = 10_000
PART = 1_250
"""So many are tried in one test, so that several run at once."""
Outcome = tuple[Counter[bytes], Counter[bytes]]


def salvaged(shard: Damaged, *, compressed: bool, indexed: bool, listed: bool) -> Outcome:
    """The payloads of the clean shard, and those that are set apart."""
    name = "x.tfrecord.gz" if compressed else "x.tfrecord"
    index = f"index/{name}.index"
    files = MemoryFolder({name: shard.data, index: shard.made.index})
    entry = entry_of(shard.made, name, index=index if indexed else "") if listed else None
    kind: Compression = "gzip" if compressed else "none"
    declared = kind if listed else None
    found = index if indexed else None
    storage = cast("Storage", files)
    damaged = Shard("", 0, name, storage, name, declared, entry, found)
    out = MemoryFolder({})
    result = salvage_shard(damaged, name, cast("Storage", out))
    assert files.files[name] == shard.data
    if result.status == "refused":
        assert not out.files
        return Counter(), Counter()
    clean = out.files[name]
    assert not clean or (clean[:2] == b"\x1f\x8b") == compressed
    kept = Counter(payloads_of(clean))
    doubtful = Counter(payloads_of(out.files.get(f"{name}.doubtful", b"")))
    assert kept.total() == result.kept + result.repaired
    assert doubtful.total() == result.doubtful
    if result.lost_keys is not None and result.exact:
        lost = {int(key[1:]) for key in result.lost_keys}
        left = (each for at, each in enumerate(shard.made.payloads) if at not in lost)
        assert (Counter(left), len(lost)) == (kept, result.lost)
    return kept, doubtful


def entry_of(made: Made, name: str, index: str) -> ShardEntry:
    """What a manifest says of the sound shard."""
    return ShardEntry(
        path=name,
        bytes=len(made.data),
        blake3=blake3(made.data).hexdigest(),
        sha256=hashlib.sha256(made.data).hexdigest(),
        split="train",
        records=len(made.payloads),
        payload_bytes=sum(map(len, made.payloads)),
        stream_blake3=blake3(made.stream).hexdigest(),
        index=index,
    )


def leads_to(data: bytes) -> int:
    """Where sound records lead from the first byte of a plain shard on."""
    at = 0
    while True:
        length = header_length(data[at : at + 12])
        if length is None or at + 16 + length > len(data):
            return at
        end = at + 12 + length
        if masked_crc(data[at + 12 : end]) != int.from_bytes(data[end : end + 4], "little"):
            return at
        at = end + 4


def expect_located(shard: Damaged, seen: Seen, *, compressed: bool) -> None:
    """A plain shard's first fault is where its records stop; of gzip there is one at least where
    less is left, or something else.
    """
    faults = seen.faults
    if compressed:
        left = shard.whole & Counter(shard.made.payloads)
        told = bool(faults) or left.total() == len(shard.made.payloads)
        assert told or _cut_between(shard, seen)
        return
    stop = leads_to(shard.data)
    assert bool(faults) == (stop < len(shard.data))
    if faults:
        assert faults[0].offset == stop


def _cut_between(shard: Damaged, seen: Seen) -> bool:
    """Whether only whole members, or all behind the last one, are missing or elsewhere."""
    read = Counter(payload for _, _, payload in seen.records)
    return not read - Counter(shard.made.payloads) - shard.spared


def sweep(numbers: range, *, compressed: bool) -> None:
    """Salvage the shards of these numbers."""
    for number in numbers:
        shard = damaged(number, compressed=compressed)
        seen = see(shard.data)
        expect_located(shard, seen, compressed=compressed)
        originals = Counter(shard.made.payloads)
        needed, allowed = shard.whole & originals, shard.whole | shard.spared | originals
        for indexed in (False, True):
            listed = number % 4 == 0
            where = (number, shard.done, indexed, listed)
            kept, doubtful = salvaged(shard, compressed=compressed, indexed=indexed, listed=listed)
            saved = kept + doubtful
            # Where damage put a record inside another one, it is saved with that.
            lost = [
                each for each in needed - saved if not any(framed(each) in one for one in saved)
            ]
            assert len(lost) <= (where[:1] == (5373,) and not compressed), where
            invented = kept - allowed
            if invented and not seen.faults:
                # Nothing is damaged: what there is, is copied.
                invented = kept - Counter(payload for _, _, payload in seen.records)
            # An index of which most records are gone may be that of another shard.
            met = (saved & originals).total()
            strange = met <= (saved - originals).total() and 2 * met < len(shard.made.payloads)
            if invented and (not indexed or strange):
                readable = {*shard.readable, *(() if compressed else shard.made.payloads)}
                invented = Counter(payload for payload in invented if payload not in readable)
            assert not invented, where


@pytest.mark.parametrize(
    ("number", "compressed"),
    [
        (507, False),  # a record that others reach into, which are not kept
        (1503, False),  # one that begins before trailing bytes, and ends in them
        (2323, False),  # headers in a payload that lead from one to the next
        (2523, False),
        (3239, False),  # the file begins with what is inside a record
        (9988, False),  # a header that is read as the data of another record
        (6, True),  # a header of a record over the first gzip member
        (776, True),
    ],
)
def test_a_damaged_shard(number: int, compressed: bool) -> None:
    sweep(range(number, number + 1), compressed=compressed)


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("begin", range(0, MANY, PART))
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_damaged_shards(compressed: bool, begin: int) -> None:
    sweep(range(begin, begin + PART), compressed=compressed)
