"""The records of one side by their places, each held against the digest that its index has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfrecreg.digests import record_digest
from tfrecreg.errors import MissingFileError, StorageError, TfrecregError
from tfrecreg.example import Example, canonical, decode_or_none, encode
from tfrecreg.operations.diff.rows import record_of, shard_of
from tfrecreg.operations.diff.side import Side
from tfrecreg.records import Records

__all__ = ["Payloads", "Read", "UnreadError"]

Digests = npt.NDArray[np.uint8]
"""Shape (records, 16): of the records of a shard."""

_OPEN = 64
"""So many shards are open at once."""


class UnreadError(Exception):
    """A record cannot be had, or is not the one that the index is of.

    Args:
        reason: why, in a few words.
        missing: whether the bytes are simply not on this machine.
    """

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason, missing)
        self.reason = reason
        self.missing = missing


@dataclass(frozen=True, slots=True)
class Read:
    """One record."""

    size: int
    """Bytes of the payload."""
    example: Example | None
    """None where it is no `tf.train.Example`, or one with fields that no Example has."""


class Payloads:
    """Reads records by place. Holds 32 bytes for each record of the shards that it reads of."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._shards: dict[int, tuple[Records, Digests]] = {}
        self._refused: dict[int, tuple[str, bool]] = {}
        self._open: list[int] = []

    def read(self, place: int) -> Read:
        """The record at a place.

        Raises:
            UnreadError: it cannot be had.
            StorageError: it is there, and the machine refused it.
        """
        shard, number = shard_of(place), record_of(place)
        records, digests = self._shard(shard)
        try:
            payload = records[number]
        except TfrecregError as error:
            _let_machine_fail(error)
            raise UnreadError(error.message) from None
        expected = digests[number].tobytes()
        example = decode_or_none(payload)
        # Only what is an Example and nothing besides is what its features say.
        if example is not None and record_digest(encode(example)) == expected:
            return Read(len(payload), example)
        if record_digest(canonical(payload)) == expected:
            return Read(len(payload), None)
        path = self._side.manifest.shards[shard].path
        raise UnreadError(f"record {number} of `{path}` is not the one that its index is of")

    def close(self) -> None:
        """Close what is open."""
        for records, _ in self._shards.values():
            records.close()
        self._open.clear()

    def _shard(self, shard: int) -> tuple[Records, Digests]:
        if shard not in self._shards and shard not in self._refused:
            self._find(shard)
        if shard in self._refused:
            reason, missing = self._refused[shard]
            raise UnreadError(reason, missing=missing)
        if shard not in self._open:
            self._open.append(shard)
            if len(self._open) > _OPEN:
                self._shards[self._open.pop(0)][0].close()
        return self._shards[shard]

    def _find(self, shard: int) -> None:
        try:
            index, records = self._side.index(shard), self._side.records(shard)
        except TfrecregError as error:
            _let_machine_fail(error)
            self._refused[shard] = error.message, False
            return
        if records is None or index is None:
            reason = f"the bytes of `{self._side.name}` are not on this machine"
            self._refused[shard] = reason, True
        elif len(records) != len(index):
            path = self._side.manifest.shards[shard].path
            reason = f"`{path}` has {len(records)} records, and its index {len(index)}"
            self._refused[shard] = reason, False
        else:
            self._shards[shard] = records, index.digests.copy()


def _let_machine_fail(error: TfrecregError) -> None:
    """Raise what another try may not meet: it says nothing of the data, and a release keeps for
    good what it was told of them.
    """
    machine = isinstance(error, StorageError) and isinstance(error.__cause__, OSError)
    if machine and not isinstance(error, MissingFileError):
        raise error
