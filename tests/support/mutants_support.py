"""Damaged files by number: the same file on any machine. And tfrecreg's result for one, in the
terms of other readers.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from check_support import framed
from memory_support import Seen, see

from docs.other_readers import Reading, record_mark
from tfrecreg.core.records.framing import frame_header
from tfrecreg.core.records.gzip_writer import INPUT_BUFFER, GzipEncoder
from tfrecreg.core.values.findings import TensorflowOutcome

Compression = Literal["none", "gzip"]


@dataclass(frozen=True)
class Mutant:
    """A TFRecord file after some edits, or none."""

    number: int
    compression: Compression
    """Of the sound file, and for readers."""
    payloads: tuple[bytes, ...]
    """Of the sound file."""
    data: bytes
    done: tuple[str, ...]
    """The edits, in order."""


def mutant(number: int) -> Mutant:
    """The damaged file of this number."""
    dice = random.Random(number)
    payloads = tuple(_payload(dice) for _ in range(dice.randrange(25)))
    compression: Compression = dice.choice(("none", "gzip"))
    # Before compression and behind it: gzip wraps what was damaged already as well.
    inside = dice.choice((0, 0, 1, 1, 2)) if compression == "gzip" else 0
    outside = dice.choice((0, 1, 1, 1, 2, 3))
    done: list[str] = []
    data = framed(*payloads)
    for _ in range(inside):
        data = _mutate(dice, data, payloads, _STREAM, done)
    if compression == "gzip":
        data = compressed(dice, data)
    for _ in range(outside):
        data = mutated(dice, data, payloads, compression, done)
    return Mutant(number, compression, payloads, data, tuple(done))


def mutated(
    dice: random.Random,
    data: bytes,
    payloads: tuple[bytes, ...],
    compression: Compression,
    done: list[str],
) -> bytes:
    """The bytes of a file of `payloads` after one more mutation, whose name is added to `done`."""
    return _mutate(dice, data, payloads, _STREAM if compression == "none" else _GZIP, done)


def _payload(dice: random.Random) -> bytes:
    kind = dice.randrange(8)
    if kind == 0:
        return bytes(dice.randrange(60))
    if kind == 1:
        return framed(*(dice.randbytes(dice.randrange(12)) for _ in range(3)))
    if kind == 2:
        return b"the same words again and again; " * dice.randrange(4)
    return dice.randbytes(dice.choice((0, 1, 7, 30, 90)))


def compressed(dice: random.Random, stream: bytes) -> bytes:
    """`stream` in gzip, as one of several writers would: in one member, in many, in ours, or with
    so long a header that a member ends near the end of TensorFlow's buffer.
    """
    kind = dice.randrange(4)
    if dice.randrange(25) == 0:
        size = dice.randrange(1, 400)
        pieces = [stream[at : at + size] for at in range(0, len(stream) + 1, size)]
        members = [gzip.compress(piece, mtime=0) for piece in pieces]
        before = sum(map(len, members[: dice.randrange(len(members)) + 1]))
        name = b"n" * (INPUT_BUFFER + dice.randrange(-2, 14) - before - 1) + b"\0"
        return b"\x1f\x8b\x08\x08" + bytes(6) + name + members[0][10:] + b"".join(members[1:])
    if kind == 0:
        return gzip.compress(stream, dice.choice((0, 1, 6, 9)), mtime=0)
    if kind == 1 and stream:
        size = dice.randrange(1, 300)
        pieces = (stream[at : at + size] for at in range(0, len(stream), size))
        return b"".join(gzip.compress(piece, mtime=0) for piece in pieces)
    encoder = GzipEncoder(dice.choice((100, 1000, 1 << 20)))
    pieces = (stream[at : at + 50] for at in range(0, len(stream), 50))
    return b"".join([encoder.write(piece) for piece in pieces]) + encoder.close()


Mutation = Callable[[random.Random, bytearray, tuple[bytes, ...]], None]


def _flip(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    if data:
        data[dice.randrange(len(data))] ^= dice.randrange(1, 256)


def _flip_bit_in_front(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    if data:
        data[dice.randrange(min(len(data), 12))] ^= 1 << dice.randrange(8)


def _flip_at_end(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    if data:
        data[-dice.randrange(1, min(len(data), 10) + 1)] ^= 1 << dice.randrange(8)


def _flip_member_header(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    at = dice.choice(_members(data))
    if at + 10 <= len(data):
        data[at + dice.choice((0, 1, 2, 3, 3, 3, 8, 9))] ^= 1 << dice.randrange(8)


def _flip_member_trailer(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    at = dice.choice([*_members(data)[1:], len(data)])
    if at >= 8:
        data[at - dice.randrange(1, 9)] ^= 1 << dice.randrange(8)


def _cut(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    del data[dice.randrange(len(data) + 1) :]


def _cut_near_a_record(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    del data[max(_boundary(dice, payloads) + dice.randrange(-5, 16), 0) :]


def _cut_near_a_member(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    at = dice.choice([*_members(data), len(data)])
    del data[max(at + dice.randrange(-12, 14), 0) :]


def _append(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    count = dice.choice((1, 2, 3, 5, 11, 12, 13, 40))
    data += dice.choice((dice.randbytes(count), bytes(count), b"\x1f\x8b\x08\x00" * 9))[:count]


def _append_member(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    data += dice.choice((b"", b"\0", b"x", b"xyz")) + gzip.compress(framed(b"one", b"more"))


def _zero(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    at = dice.randrange(len(data) + 1)
    count = min(dice.choice((4, 12, 30, 100)), len(data) - at)
    data[at : at + count] = bytes(count)


def _randomise(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    at = dice.randrange(len(data) + 1)
    count = min(dice.choice((4, 12, 30, 100)), len(data) - at)
    data[at : at + count] = dice.randbytes(count)


def _overwrite_header(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    at = _boundary(dice, payloads)
    data[at : at + 12] = dice.choice((bytes(12), b"\xff" * 12, dice.randbytes(12)))


def _claim(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    lengths = (2**31, 2**31 + 1, 2**32, 2**35, 2**40, 2**62, 2**63 - 5, 2**63 - 4, 2**64 - 1)
    at = _boundary(dice, payloads)
    data[at : at + 12] = frame_header(dice.choice((*lengths, 0, 7, 500)))


def _insert(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    at = dice.randrange(len(data) + 1)
    data[at:at] = dice.randbytes(dice.choice((1, 4, 16, 50)))


def _delete(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    at = dice.randrange(len(data) + 1)
    del data[at : at + dice.choice((1, 4, 16, 50))]


def _repeat(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    at = dice.randrange(len(data) + 1)
    data[at:at] = data[at : at + dice.choice((16, 60, 200))]


def _become_text(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    text = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 1234\n"
    data[:] = text[: dice.choice((3, 11, 12, len(text)))]


def _become_other(dice: random.Random, data: bytearray, payloads: tuple[bytes, ...]) -> None:
    """The other compression: none instead of gzip, gzip instead of none."""
    data[:] = gzip.compress(data) if data[:2] != b"\x1f\x8b" else framed(*payloads)


def _members(data: bytearray) -> list[int]:
    """Starts of gzip members, by their first bytes."""
    found = [0]
    while (at := data.find(b"\x1f\x8b\x08", found[-1] + 1)) >= 0:
        found.append(at)
    return found


def _boundary(dice: random.Random, payloads: tuple[bytes, ...]) -> int:
    """The start of some record of the sound file, or the end of the last one."""
    before = dice.randrange(len(payloads) + 1)
    return sum(len(payload) + 16 for payload in payloads[:before])


_ANY: tuple[Mutation, ...] = (
    _flip,
    _flip_bit_in_front,
    _flip_at_end,
    _cut,
    _append,
    _zero,
    _randomise,
    _insert,
    _delete,
    _repeat,
    _become_text,
    _become_other,
)
_STREAM = (*_ANY, _cut_near_a_record, _cut_near_a_record, _overwrite_header, _claim)
_GZIP = (
    *_ANY,
    *(_flip_member_header, _flip_member_trailer, _cut_near_a_member) * 3,
    _append_member,
)


def _mutate(
    dice: random.Random,
    data: bytes,
    payloads: tuple[bytes, ...],
    kinds: tuple[Mutation, ...],
    done: list[str],
) -> bytes:
    kind = dice.choice(kinds)
    done.append(kind.__name__[1:])
    changed = bytearray(data)
    kind(dice, changed, payloads)
    return bytes(changed)


@dataclass(frozen=True)
class Expected:
    """How TensorFlow reads a file, as tfrecreg predicts."""

    outcome: TensorflowOutcome
    records: tuple[str, ...]
    """Marks of the records before the fault that decides, see `docs.other_readers`."""
    code: str
    """Of that fault; empty without one."""

    @property
    def sound(self) -> bool:
        return not self.code


def expected(seen: Seen) -> Expected:
    """What TensorFlow makes of a file that tfrecreg has seen.

    It gets past no fault but a record above the limit that is really there: so the first other
    one decides.
    """
    records = [
        (offset + 16 + len(payload), record_mark(payload))
        for _, offset, payload in seen.records
        if payload is not None
    ]
    for fault in seen.faults:
        if fault.code != "CRC005" or fault.tensorflow is not TensorflowOutcome.READS:
            before = tuple(mark for end, mark in records if end <= fault.offset)
            return Expected(fault.tensorflow, before, fault.code)
    return Expected(TensorflowOutcome.READS, tuple(mark for _, mark in records), "")


def disagreement(made: Mutant, theirs: Reading) -> str:
    """The difference of TensorFlow's reading from tfrecreg's prediction; empty without one."""
    seen = see(made.data, declared=made.compression)
    ours = expected(seen)
    outcome = TensorflowOutcome.READS
    if theirs.crash:
        outcome = TensorflowOutcome.CRASHES
    elif theirs.error:
        outcome = TensorflowOutcome.STOPS
    told = f"{ours.code or 'no fault'}: {ours.outcome.value}, {len(ours.records)} records"
    if outcome is not ours.outcome:
        return f"{told}; TensorFlow {outcome.value} ({theirs.error or theirs.crash})"
    if outcome is TensorflowOutcome.READS and theirs.records != ours.records:
        return f"{told}; TensorFlow reads {len(theirs.records)} records, or other ones"
    # zlib drops decoded bytes together with the invalid ones.
    if outcome is TensorflowOutcome.STOPS and not _begins(ours.records, theirs.records):
        return f"{told}; TensorFlow reads {len(theirs.records)} records, not all among them"
    if outcome is TensorflowOutcome.STOPS and made.compression == "none":
        return "" if theirs.records == ours.records else f"{told}; it is at {len(theirs.records)}"
    return ""


def _begins(whole: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return whole[: len(part)] == part
