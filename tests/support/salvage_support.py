"""Shards to damage, and a strict reader of what `salvage` writes."""

from __future__ import annotations

import gzip
import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import google_crc32c
from check_support import framed
from registry_support import write

from tfrecreg.builtin.salvage.model import ShardResult
from tfrecreg.builtin.salvage.run import salvage
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.records.gzip_writer import MEMBER_BYTES, GzipEncoder
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import IndexBuilder


def filler(number: int, size: int = 60) -> bytes:
    """A payload that no other number has, of `size` bytes; no `tf.train.Example`."""
    seed = b"record %d " % number
    return (seed * (size // len(seed) + 1))[:size]


Record = tuple[int, int, bytes | None]
"""Number, offset and payload."""


@dataclass(frozen=True)
class Made:
    """A shard, with its records and their places."""

    payloads: Sequence[bytes]
    offsets: Sequence[int]
    data: bytes
    """The file."""
    index: bytes
    """The index of it; its keys are ``k0``, ``k1`` …"""
    members: Sequence[tuple[int, int]]

    @cached_property
    def stream(self) -> bytes:
        return framed(*self.payloads)

    @cached_property
    def records(self) -> list[Record]:
        return [*zip(range(len(self.payloads)), self.offsets, self.payloads, strict=True)]

    def record_at(self, byte: int) -> int:
        """The number of the record that has this byte of the stream."""
        return max(number for number, start in enumerate(self.offsets) if start <= byte)

    def without(self, number: int) -> list[Record]:
        return self.records[:number] + self.records[number + 1 :]


def make(payloads: Sequence[bytes], member_bytes: int | None = None) -> Made:
    """A shard of these payloads, gzip in members of so many bytes or plain."""
    records = [framed(payload) for payload in payloads]
    data, members = b"".join(records), list[tuple[int, int]]()
    if member_bytes is not None:
        encoder = GzipEncoder(member_bytes)
        data = b"".join([*map(encoder.write, records), encoder.close()])
        members = encoder.members
    index = IndexBuilder()
    for number, payload in enumerate(payloads):
        index.add(record_digest(canonical(payload)), len(payload), f"k{number}")
    offsets = [0, *itertools.accumulate(map(len, records))][:-1]
    return Made(payloads, offsets, data, index.render(members), members)


def compress(made: Made, member_bytes: int = MEMBER_BYTES) -> tuple[bytes, Any]:
    """A shard in gzip, and where its members begin."""
    packed = make(made.payloads, member_bytes)
    return packed.data, packed.members


def put(folder: Path, data: bytes, index: bytes | None = None, name: str = "x.tfrecord") -> Path:
    """A shard's file, with its index where a build has it."""
    if index is not None:
        write(folder / f"index/{name}.index", index)
    return write(folder / name, data)


def rescue(path: Path, output: Path) -> ShardResult:
    """Salvage one shard; that it was left as it was is checked on the way."""
    before = path.read_bytes()
    result = salvage([str(path)], output)
    assert path.read_bytes() == before
    (shard,) = result.shards
    return shard


def payloads_in(path: Path) -> list[bytes]:
    """The payloads of a shard, read by the letter of the format: anything odd is an error."""
    return payloads_of(path.read_bytes())


def payloads_of(data: bytes) -> list[bytes]:
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    found, at = [], 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == _masked(data[at : at + 8])
        payload = data[at + 12 : at + 12 + length]
        assert len(payload) == length
        assert struct.unpack_from("<I", data, at + 12 + length) == (_masked(payload),)
        found.append(payload)
        at += 16 + length
    return found


def _masked(data: bytes) -> int:
    crc: int = google_crc32c.value(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
