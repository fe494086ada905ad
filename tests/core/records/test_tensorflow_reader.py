"""What TensorFlow does at a fault: the rules. `tests/acceptance` holds them against TensorFlow."""

from __future__ import annotations

import gzip
import random
from typing import Any

import pytest
from memory_support import see
from salvage_support import compress, make

from tfrecreg.core.records.framing import frame_header
from tfrecreg.core.records.reading.tensorflow_reader import (
    of_length,
    zlib_makes,
)
from tfrecreg.core.values.findings import TensorflowOutcome

READS, STOPS = TensorflowOutcome.READS, TensorflowOutcome.STOPS
CRASHES = TensorflowOutcome.CRASHES


def zipped(data: bytes) -> bytes:
    """gzip without the time, which would be another name for the test in every process."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    ("length", "left", "outcome"),
    [
        (2**31 + 1, 4, STOPS),
        (2**35 - 1, 4, STOPS),
        (2**35, 4, CRASHES),
        (2**40, 1, CRASHES),
        (2**40, 0, STOPS),
        (2**63 - 5, 4, CRASHES),
        (2**63 - 4, 4, STOPS),
        (2**64 - 1, 4, STOPS),
    ],
)
def test_what_is_allocated_and_used_crashes(
    length: int, left: int, outcome: TensorflowOutcome
) -> None:
    assert of_length(length, left) is outcome


def faults(seen: Any) -> list[tuple[str, TensorflowOutcome]]:
    return [(fault.code, fault.tensorflow) for fault in seen.faults]


def test_each_fault_has_its_outcome(small_shard: Any) -> None:
    stream, starts = small_shard.stream, small_shard.offsets
    data = bytearray(stream)
    data[starts[3]] ^= 1
    data[starts[50] + 13] ^= 1
    data[starts[90] : starts[90] + 12] = frame_header(2**40)
    data += b"more"
    assert faults(see(data)) == [
        ("CRC001", STOPS),
        ("CRC002", STOPS),
        ("CRC005", CRASHES),
        ("CRC004", READS),
    ]
    assert faults(see(stream[:-1])) == [("CRC003", STOPS)]
    assert faults(see(stream + bytes(12))) == [("CRC004", STOPS)]
    assert faults(see(b"text" * 2)) == [("CRC008", READS)]
    assert faults(see(b"text" * 2, declared="gzip")) == [("CRC008", STOPS)]
    assert faults(see(b"text" * 9)) == [("CRC008", STOPS)]
    assert faults(see(stream, declared="gzip")) == [("CRC006", STOPS)]
    packed, _ = compress(small_shard)
    assert faults(see(packed[:-3])) == [("CRC007", READS)]
    assert faults(see(packed[:-100])) == [("CRC007", STOPS)]
    assert faults(see(packed + b"x")) == [("CRC007", READS)]
    assert faults(see(packed + b"xy")) == [("CRC007", STOPS)]
    assert faults(see(zipped(b"") + packed)) == [("CRC009", READS)]


def test_a_bit_that_hides_a_whole_member_is_said_to_be_read(small_shard: Any) -> None:
    """FEXTRA: zlib takes what follows for a field that is longer than the file."""
    packed = bytearray(zipped(small_shard.stream[: small_shard.offsets[3]]))
    packed[3] ^= 4
    length = int.from_bytes(packed[10:12], "little")
    assert length > len(packed)
    assert zlib_makes(bytes(packed)) == 0
    assert faults(see(packed)) == [("CRC007", READS)]


def test_a_record_above_the_limit_that_is_really_there_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TFRECREG_SCANNER", "python")
    for module in ("frame_scan", "resync"):
        monkeypatch.setattr(f"tfrecreg.core.records.{module}.MAX_LENGTH", 1000)
    made = make([b"first", random.Random(1).randbytes(1001), b"last"])
    seen = see(made.stream)
    assert faults(seen) == [("CRC005", READS)]
    assert "the data are present and intact" in seen.faults[0].detail
    assert seen.records == made.without(1)
    damaged = bytearray(made.stream)
    damaged[made.offsets[1] + 500] ^= 1
    assert faults(see(damaged)) == [("CRC005", STOPS)]
