"""Twenty thousand damaged shards: all damage is found, all whole records are saved, none invented.

Each is salvaged without and with its index, and every fourth with a manifest beside it as well. A
record from inside another is not invented where every reader takes it for one of the shard's, since
damage brought it to where one has to be; an index tells these as well.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import cast

import pytest
from blake3 import blake3
from memory_support import MemoryFolder, Seen, see
from salvage_mutants_support import Damaged, damaged
from salvage_support import Made, nested, payloads_of

from tfrecreg.builtin.salvage.shard import salvage_shard
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.records.framing import header_length, masked_crc
from tfrecreg.core.records.gzip_writer import Compression
from tfrecreg.core.registry.manifest import ShardEntry
from tfrecreg.core.storage.interface import Storage

MANY = 10_000
PART = 1_250
"""So many are tried in one test, so that several run at once."""
FEW = 100
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
                each for each in needed - saved if not any(nested(each) in one for one in saved)
            ]
            assert not lost, where
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


@pytest.mark.medium
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_damaged_shards_sampled(compressed: bool) -> None:
    sweep(range(FEW), compressed=compressed)


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
