"""Twenty thousand damaged shards: all damage is found, all whole records are saved, none invented.

Each is salvaged without and with its index, and every fourth with a manifest beside it as well. A
record from inside another is not invented where every reader takes it for one of the shard's, since
damage brought it to where one has to be; an index tells these as well.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest
from blake3 import blake3
from memory_support import see
from registry_support import manifest
from salvage_mutants_support import Damaged, damaged
from salvage_support import Made, payloads_in, put
from system_support import unsynced as unsynced  # a fixture

from tfrecreg.errors import RefusedError
from tfrecreg.manifest import MANIFEST_NAME, ShardEntry, render_manifest
from tfrecreg.operations.salvage import salvage
from tfrecreg.records.framing import header_length, masked_crc

MANY = 10_000
PART = 1_250
"""So many are tried in one test, so that several run at once."""
FEW = 60
Outcome = tuple[Counter[bytes], Counter[bytes]]


def salvaged(
    shard: Damaged, folder: Path, *, compressed: bool, indexed: bool, listed: bool
) -> Outcome:
    """The payloads of the clean shard, and those that are set apart.

    Each shard has a parent of its own: a salvage looks at all that is beside its output.
    """
    name = "x.tfrecord.gz" if compressed else "x.tfrecord"
    folder.mkdir(parents=True)
    path = put(folder, shard.data, shard.made.index if indexed else None, name)
    if listed:
        entry = entry_of(shard.made, name, index=f"index/{name}.index" if indexed else "")
        kind = "gzip" if compressed else "none"
        data = render_manifest(manifest("damaged", shards=[entry], compression=kind))
        (folder / MANIFEST_NAME).write_bytes(data)
    output = folder.with_name("out")
    try:
        (result,) = salvage([str(path)], output).shards
    except RefusedError:
        return Counter(), Counter()
    clean, apart = output / name, output / f"{name}.doubtful"
    assert clean.stat().st_size == 0 or (clean.read_bytes()[:2] == b"\x1f\x8b") == compressed
    kept = Counter(payloads_in(clean))
    doubtful = Counter(payloads_in(apart)) if apart.exists() else Counter[bytes]()
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


def expect_located(shard: Damaged, *, compressed: bool) -> None:
    """A plain shard's first fault is where its records stop; of gzip there is one at least where
    less is left, or something else.
    """
    faults = see(shard.data).faults
    if compressed:
        left = shard.whole & Counter(shard.made.payloads)
        told = bool(faults) or left.total() == len(shard.made.payloads)
        assert told or _cut_between(shard)
        return
    stop = leads_to(shard.data)
    assert bool(faults) == (stop < len(shard.data))
    if faults:
        assert faults[0].offset == stop


def _cut_between(shard: Damaged) -> bool:
    """Whether only whole members, or all behind the last one, are missing or elsewhere."""
    seen = [payload for _, _, payload in see(shard.data).records]
    return not Counter(seen) - Counter(shard.made.payloads) - shard.whole


def sweep(numbers: range, folder: Path, *, compressed: bool) -> None:
    """Salvage the shards of these numbers."""
    for number in numbers:
        shard = damaged(number, compressed=compressed)
        expect_located(shard, compressed=compressed)
        originals = Counter(shard.made.payloads)
        needed, allowed = shard.whole & originals, shard.whole | originals
        for indexed in (False, True):
            listed = number % 4 == 0
            where = (number, shard.done, indexed, listed)
            kept, doubtful = salvaged(
                shard,
                folder / f"{number}-{indexed}/in",
                compressed=compressed,
                indexed=indexed,
                listed=listed,
            )
            assert not needed - (kept + doubtful), where
            invented = kept - allowed
            # An index of which most records are gone may be that of another shard.
            if invented and (not indexed or 2 * needed.total() < len(shard.made.payloads)):
                readable = {*shard.readable, *(() if compressed else shard.made.payloads)}
                invented = Counter(payload for payload in invented if payload not in readable)
            assert not invented, where


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_damaged_shards_sampled(compressed: bool, tmp_path: Path) -> None:
    sweep(range(FEW), tmp_path, compressed=compressed)


@pytest.mark.slow
@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("begin", range(0, MANY, PART))
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_damaged_shards(compressed: bool, begin: int, tmp_path: Path) -> None:
    sweep(range(begin, begin + PART), tmp_path, compressed=compressed)
