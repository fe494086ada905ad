"""Damaged files by number: the same file on any machine. And tfrecreg's result for one, in the
terms of other readers.
"""

from __future__ import annotations

import gzip
import random
from typing import Literal, NamedTuple

from check_support import framed
from memory_support import Seen, see

from docs.other_readers import Reading, record_mark
from tfrecreg.core.records.framing import frame_header
from tfrecreg.core.records.gzip_writer import INPUT_BUFFER, GzipEncoder
from tfrecreg.core.values.findings import TensorflowOutcome

Compression = Literal["none", "gzip"]
Payloads = tuple[bytes, ...]


class Mutant(NamedTuple):
    """A TFRecord file after some edits, or none."""

    number: int
    compression: Compression
    """Of the sound file, and for readers."""
    payloads: Payloads
    """Of the sound file."""
    data: bytes
    done: tuple[str, ...]
    """The edits, in order."""


def mutant(number: int) -> Mutant:
    dice = random.Random(number)
    payloads = tuple(_payload(dice) for _ in range(dice.randrange(25)))
    compression: Compression = dice.choice(("none", "gzip"))
    # Before compression and behind it: gzip wraps what was damaged already as well.
    inside = dice.choice((0, 0, 1, 1, 2)) if compression == "gzip" else 0
    outside = dice.choice((0, 1, 1, 1, 2, 3))
    done: list[str] = []
    data = framed(*payloads)
    for _ in range(inside):
        data = mutate(dice, data, payloads, "none", done)
    if compression == "gzip":
        data = compressed(dice, data)
    for _ in range(outside):
        data = mutate(dice, data, payloads, compression, done)
    return Mutant(number, compression, payloads, data, tuple(done))


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


def _place(dice: random.Random, kind: str, data: bytearray, payloads: Payloads) -> int:
    match kind:
        case "anywhere":
            return dice.randrange(len(data) + 1)
        case "front":
            return dice.randrange(12)
        case "end":
            return len(data) - dice.randrange(1, 11)
        case "record":
            return _boundary(dice, payloads) + dice.randrange(-5, 16)
    # A gzip member, which its first bytes show, or the end of the file.
    starts = [0, len(data)]
    while (at := data.find(b"\x1f\x8b\x08", starts[-2] + 1)) >= 0:
        starts.insert(-1, at)
    return dice.choice(starts) + dice.randrange(-12, 14)


def _boundary(dice: random.Random, payloads: Payloads) -> int:
    """The start of a record of the sound file, or its end."""
    before = dice.randrange(len(payloads) + 1)
    return sum(len(payload) + 16 for payload in payloads[:before])


_EDITS = (
    *("flip",) * 5,
    *("cut",) * 3,
    *("replace", "insert", "delete", "append", "become_text"),
)


def _edit(dice: random.Random, kind: str, data: bytearray, at: int) -> None:
    match kind:
        case "flip":
            if at < len(data):
                data[at] ^= 1 << dice.randrange(8)
        case "cut":
            del data[at:]
        case "replace":
            count = min(dice.choice((4, 12, 30, 100)), len(data) - at)
            data[at : at + count] = dice.choice((bytes(count), dice.randbytes(count)))
        case "insert":
            noise = dice.randbytes(dice.choice((1, 4, 16, 50)))
            data[at:at] = dice.choice((noise, data[at : at + 60]))
        case "delete":
            del data[at : at + dice.choice((1, 4, 16, 50))]
        case "append":
            count = dice.choice((1, 2, 3, 5, 11, 12, 13, 40))
            tails = dice.randbytes(count), bytes(count), b"\x1f\x8b\x08\x00" * 9
            data += dice.choice(tails)[:count]
        case "append_member":
            between = dice.choice((b"", b"\0", b"x", b"xyz"))
            data += between + gzip.compress(framed(b"one", b"more"), mtime=0)
        case "become_text":
            text = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 1234\n"
            data[:] = text[: dice.choice((3, 11, 12, len(text)))]
        case "write_header":  # of no or of any length, with its checksum or without
            lengths = (0, 7, 500, 2**31, 2**31 + 1, 2**35, 2**62, 2**63 - 5, 2**63 - 4, 2**64 - 1)
            others = bytes(12), b"\xff" * 12, dice.randbytes(12)
            data[at : at + 12] = dice.choice((frame_header(dice.choice(lengths)), *others))


def mutate(
    dice: random.Random, data: bytes, payloads: Payloads, compression: Compression, done: list[str]
) -> bytes:
    """The bytes of a file of `payloads` after one more edit, whose name is added to `done`."""
    changed = bytearray(data)
    is_stream = compression == "none"
    near, more = ("record", "write_header") if is_stream else ("member", "append_member")
    place = dice.choice(("anywhere", "anywhere", "front", "end", near, near, near))
    edit = dice.choice((*_EDITS, more, more))
    at = min(max(_place(dice, place, changed, payloads), 0), len(changed))
    if edit == "write_header":
        at = min(_boundary(dice, payloads), len(changed))
    _edit(dice, edit, changed, at)
    done.append(f"{edit} at {at}")
    if dice.randrange(25) == 0:
        changed[:] = (
            gzip.compress(changed, mtime=0) if changed[:2] != b"\x1f\x8b" else framed(*payloads)
        )
        done.append("the other compression")
    return bytes(changed)


class Expected(NamedTuple):
    """How TensorFlow reads a file, as tfrecreg predicts."""

    outcome: TensorflowOutcome
    records: tuple[str, ...]
    """Marks of the records before the fault that decides, see `docs.other_readers`."""
    code: str
    """Of that fault; empty without one."""


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
    ours = expected(see(made.data, declared=made.compression))
    outcome = TensorflowOutcome.STOPS if theirs.error else TensorflowOutcome.READS
    known = ours.records
    if theirs.crash:
        outcome, known = TensorflowOutcome.CRASHES, ()
    elif theirs.error and made.compression == "gzip":
        # zlib drops decoded bytes together with the invalid ones.
        known = known[: len(theirs.records)]
    if outcome is ours.outcome and theirs.records == known:
        return ""
    return f"expected {ours}, found {theirs}"
