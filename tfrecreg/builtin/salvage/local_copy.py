"""A local copy of a shard behind a URL: salvage reads a shard several times, and every time has to
find the same bytes.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.records.batch import Fault
from tfrecreg.core.records.reader import scan
from tfrecreg.core.storage.interface import Reader, RereadableReader, Storage
from tfrecreg.core.values.errors import StorageError, TransferError

_COPY = ".original"
_INDEX = ".original.index"
_CHUNK = 1 << 20
_READS = 3
"""Number of times that a shard is copied if its store gives other bytes on a second read."""


class UnreadableShardError(StorageError):
    """The store did not deliver the shard. Other errors concern the copy."""


@contextmanager
def read_locally(shard: Shard, stage: Storage) -> Iterator[Shard]:
    """The shard itself, or for one behind a URL its copy in `stage`, which is removed at the end.

    Each copy is in a folder of its own, because an engine may run a task twice at the same time.

    If the copy is damaged, a second read of the store gave the same bytes.
    """
    if shard.storage.is_local:
        yield shard
        return
    folder = f".original.{secrets.token_hex(8)}.tmp"
    place = stage.below(folder)
    try:
        with _reading():
            index = shard.storage.read(shard.index) if shard.index is not None else None
        if index is not None:
            with place.create(_INDEX, durable=False) as writer:
                writer.write(index)
        _copy(shard, place)
        yield replace(shard, storage=place, path=_COPY, index=_INDEX if index is not None else None)
    finally:
        stage.remove(folder)


def _copy(shard: Shard, stage: Storage) -> None:
    for attempt in range(1, _READS + 1):
        try:
            _copy_once(shard, stage)
            return
        except TransferError as error:
            if attempt == _READS:
                raise UnreadableShardError(error.message, hint=error.hint) from error


def _copy_once(shard: Shard, stage: Storage) -> None:
    with _reading():
        reader = shard.storage.open(shard.path)
    with reader:
        with stage.create(_COPY, durable=False) as writer:
            at = 0
            while piece := _piece(reader, at):
                writer.write(piece)
                at += len(piece)
        events = scan(stage, _COPY, declared=shard.declared)
        if any(isinstance(event, Fault) for event in events) and isinstance(
            reader, RereadableReader
        ):
            with _reading():
                reader.confirm(0, reader.size)


def _piece(reader: Reader, at: int) -> bytes:
    with _reading():
        return reader.read_at(at, _CHUNK)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except TransferError:
        raise
    except StorageError as error:
        raise UnreadableShardError(error.message, hint=error.hint) from error
