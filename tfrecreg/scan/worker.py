"""Scanning one shard: the bytes are read once, and every visitor sees them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass

from tfrecreg.errors import TfrecregError
from tfrecreg.guard import Brought, calling, reason_of
from tfrecreg.records import RecordBatch, StreamEnd, scan
from tfrecreg.scan.indexes import IndexHints
from tfrecreg.scan.interface import Part, Shard, Visitor


@dataclass(frozen=True, slots=True)
class ScanTask:
    """One shard and who looks at it. Picklable, whatever the visitors are."""

    shard: Shard
    makers: tuple[tuple[Brought, bytes], ...]
    """Who brought each validator, and what its `begin` returned, in the order of the validators.
    Pickled one by one, so that one that cannot be unpickled in a worker costs no other."""
    digest: bool
    """Whether anybody needs the file's and the stream's digests."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """Stands in a part's place where the visitor raised: its validator has no verdict."""

    reason: str


@dataclass(frozen=True, slots=True)
class ShardScan:
    """What came of one shard."""

    parts: tuple[bytes | Crashed | None, ...]
    """One a validator, pickled, in the order of the task's makers; None where the shard could not
    be read, so that there is none."""
    end: StreamEnd | None
    """None where the shard could not be read to its end."""
    unreadable: str
    """Why it could not: the file system's words. Empty where it could."""


class _Guarded:
    """A visitor whose exceptions cost only its own verdict."""

    def __init__(self, brought: Brought, maker: bytes, shard: Shard) -> None:
        self._brought = brought
        self._visitor: Visitor | None = None
        self.crash: Crashed | None = None
        try:
            with calling(brought, "begin"):
                make: Callable[[Shard], Visitor] = pickle.loads(maker)
                self._visitor = make(shard)
        except Exception as error:
            self._fail(error)

    def call(self, method: str, argument: object) -> Part:
        """What the visitor's method returns; None from a visitor that has crashed."""
        if self._visitor is None:
            return None
        try:
            with calling(self._brought, method):
                return getattr(self._visitor, method)(argument)
        except Exception as error:
            self._fail(error)
            return None

    def close(self, end: StreamEnd | None) -> bytes | Crashed | None:
        """The part, pickled; None where there is no end to close at."""
        part = self.call("close", end) if end is not None else None
        if self.crash is not None or end is None:
            return self.crash
        try:
            with calling(self._brought, "pickle"):
                return pickle.dumps(part)
        except Exception as error:
            return Crashed(f"its part cannot be pickled: {reason_of(error)}")

    def _fail(self, error: BaseException) -> None:
        self._visitor = None
        self.crash = Crashed(reason_of(error))


def scan_shard(task: ScanTask) -> ShardScan:
    """Read one shard to its end and hand back every validator's part.

    A shard that cannot be read is no exception but a result, so that the others are still
    scanned; the check as a whole is then incomplete.
    """
    visitors = [_Guarded(brought, make, task.shard) for brought, make in task.makers]
    end: StreamEnd | None = None
    unreadable = ""
    shard = task.shard
    hints = IndexHints(shard)
    try:
        for event in scan(
            shard.storage,
            shard.path,
            declared=shard.declared,
            digest=task.digest,
            known_offsets=hints.offsets,
            members=hints.members,
        ):
            if isinstance(event, StreamEnd):
                end = event
                continue
            method = "batch" if isinstance(event, RecordBatch) else "fault"
            for visitor in visitors:
                visitor.call(method, event)
    except TfrecregError as error:
        end, unreadable = None, error.message
    return ShardScan(tuple(visitor.close(end) for visitor in visitors), end, unreadable)
