"""Records of parents by their places, in a worker."""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import NamedTuple

from tfrecreg.builtin.derived.parents import Ancestor, ParentShard, damaged_record
from tfrecreg.builtin.derived.selection import located_records
from tfrecreg.core.example.decode import decode_fast, decode_fully
from tfrecreg.core.example.encode import encode
from tfrecreg.core.example.model import Example
from tfrecreg.core.example.wire import NotAnExampleError
from tfrecreg.core.records.framing import (
    FOOTER_BYTES,
    HEADER_BYTES,
    OVERHEAD,
    header_length,
    masked_crc,
)
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import load_index
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.storage.interface import Readable, Reader
from tfrecreg.core.values.errors import DamagedRecordError, RawDataError, StorageError

_PLACE = struct.Struct("<HIIqq16s")
_OPEN = 32
"""Maximum number of files that a worker holds open."""
_RECORDS_OPEN = 4
"""Maximum number of gzip shards whose members a worker holds."""


class RecordPlace(NamedTuple):
    """Where a record is, and what it is."""

    parent: int
    """Number of the parent, from 0."""
    shard: int
    """Number of the shard in the parent, from 0."""
    number: int
    """Number of the record in the shard, from 0."""
    offset: int
    """Byte of the decompressed stream where it starts."""
    length: int
    """Bytes of its payload."""
    digest: bytes
    """Its digest by the index."""

    def pack(self) -> bytes:
        """The state of an item."""
        return _PLACE.pack(*self)

    @classmethod
    def unpack(cls, state: bytes) -> RecordPlace:
        """From the state of an item."""
        return cls(*_PLACE.unpack(state))


class ParentReader:
    """Reads records, and holds some files open."""

    def __init__(self, raw: Readable) -> None:
        self._raw = raw
        self._files: OrderedDict[str, Reader] = OrderedDict()
        self._records: OrderedDict[str, Records] = OrderedDict()

    def __del__(self) -> None:
        for file in self._files.values():
            file.close()
        for records in self._records.values():
            records.close()

    def read(self, parent: Ancestor, place: RecordPlace) -> tuple[Example, str]:
        """A record, verified by its checksums and by the digest in the index, and what is strange
        about it.
        """
        shard = parent.shards[place.shard]
        try:
            payload = (
                self._of_gzip(shard)[place.number]
                if shard.gzip
                else _framed(self._file(shard), place)
            )
        except DamagedRecordError as error:
            raise damaged_record(parent, shard, place.number, error.message) from None
        except StorageError as error:
            raise RawDataError(
                f"the parent `{parent.name}` cannot be read: {error.message}", hint=error.hint
            ) from error
        if payload is None:
            raise damaged_record(parent, shard, place.number, "its checksums do not hold")
        example, form, problem = _decoded(payload)
        if record_digest(form) != place.digest:
            why = "it is not the record that the index names"
            raise damaged_record(parent, shard, place.number, why)
        return example, problem

    def _file(self, shard: ParentShard) -> Reader:
        file = self._files.pop(shard.path, None)
        if file is None:
            file = self._raw.open(shard.path)
            if len(self._files) >= _OPEN:
                self._files.popitem(last=False)[1].close()
        self._files[shard.path] = file
        return file

    def _of_gzip(self, shard: ParentShard) -> Records:
        records = self._records.pop(shard.path, None)
        if records is None:
            index = load_index(self._raw, shard.index, blake3_hex=shard.index_blake3)
            records = located_records(self._raw, shard, index)
            if len(self._records) >= _RECORDS_OPEN:
                self._records.popitem(last=False)[1].close()
        self._records[shard.path] = records
        return records


def _decoded(payload: bytes) -> tuple[Example, bytes, str]:
    """The features of a payload, its canonical form, and why it cannot be a record of a build."""
    found = decode_fast(payload)
    if found is not None:
        features, ordered = found
        return features, payload if ordered else encode(features), ""
    try:
        features, unknown = decode_fully(payload)
    except NotAnExampleError:
        return {}, payload, "it is not a `tf.train.Example`"
    if unknown:
        return features, payload, "it has fields that `tf.train.Example` does not have"
    return features, encode(features), ""


def _framed(file: Reader, place: RecordPlace) -> bytes | None:
    """The payload of a record; None if its frame or its checksums are not what they should be."""
    frame = file.read_at(place.offset, place.length + OVERHEAD)
    payload = frame[HEADER_BYTES : HEADER_BYTES + place.length]
    footer = frame[HEADER_BYTES + place.length :]
    is_whole = len(footer) == FOOTER_BYTES and header_length(frame[:HEADER_BYTES]) == place.length
    sound = is_whole and masked_crc(payload) == int.from_bytes(footer, "little")
    return payload if sound else None
