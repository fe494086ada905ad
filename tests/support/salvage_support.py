"""Shards to damage, and a strict reader of what `salvage` writes."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google_crc32c

from tfrecreg.builtin.salvage.model import ShardResult
from tfrecreg.builtin.salvage.run import salvage
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.records.framing import frame
from tfrecreg.core.records.gzip_writer import GzipEncoder
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import IndexBuilder


def filler(number: int, size: int = 60) -> bytes:
    """A payload that no other number has, of `size` bytes; no `tf.train.Example`."""
    seed = b"record %d " % number
    return (seed * (size // len(seed) + 1))[:size]


def nested(*payloads: bytes) -> bytes:
    """A TFRecord stream: also a payload that holds sound records itself."""
    return b"".join(
        head + payload + foot for payload in payloads for head, foot in [frame(payload)]
    )


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

    @property
    def stream(self) -> bytes:
        return nested(*self.payloads)

    def ends(self) -> list[int]:
        """Behind each record."""
        return [*self.offsets[1:], len(self.stream)]


def make(payloads: Sequence[bytes], member_bytes: int | None = None) -> Made:
    """A shard of these payloads, gzip in members of so many bytes or plain."""
    encoder = GzipEncoder(member_bytes) if member_bytes is not None else None
    builder = IndexBuilder()
    offsets, parts, at = [], [], 0
    for number, payload in enumerate(payloads):
        record = nested(payload)
        parts.append(record if encoder is None else encoder.write(record))
        builder.add(record_digest(canonical(payload)), len(payload), f"k{number}")
        offsets.append(at)
        at += len(record)
    members: list[tuple[int, int]] = []
    if encoder is not None:
        parts.append(encoder.close())
        members = encoder.members
    return Made(payloads, offsets, b"".join(parts), builder.render(members), members)


def put(folder: Path, data: bytes, index: bytes | None = None, name: str = "x.tfrecord") -> Path:
    """A shard's file, with its index where a build has it."""
    path = folder / name
    path.write_bytes(data)
    if index is not None:
        (folder / "index").mkdir(exist_ok=True)
        (folder / f"index/{name}.index").write_bytes(index)
    return path


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
    """The payloads of the bytes of a shard; see :func:`payloads_in`."""
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


def report_of(output: Path) -> Any:
    """The report in a salvage's folder."""
    return json.loads((output / "salvage.json").read_bytes())
