"""How much work a check is, and so where it is done."""

from __future__ import annotations

from tfrecreg.engines import Engine, LocalEngine
from tfrecreg.errors import StorageError
from tfrecreg.scan import Shard, Target

__all__ = ["engine_for"]

_BYTE_SECONDS, _RECORD_SECONDS = 2e-9, 10e-6
"""About what a byte and a record cost with the validators that run by default."""
_WORTH_SECONDS = 0.4
"""Work from which on worker processes pay: they take about half of that to start."""


def engine_for(target: Target, engine: Engine) -> Engine:
    """`engine`, or this very process for a target so small that workers do not pay."""
    if engine.jobs == 1:
        return engine
    work = 0.0
    for shard in target.shards:
        work += _seconds(shard)
        if work > _WORTH_SECONDS:
            return engine
    return LocalEngine(1)


def _seconds(shard: Shard) -> float:
    if shard.entry is not None:
        return shard.entry.bytes * _BYTE_SECONDS + shard.entry.records * _RECORD_SECONDS
    try:
        entry = shard.storage.stat(shard.path)
    except StorageError:
        return 0.0  # it costs nothing, and the scan says why
    return entry.size * _BYTE_SECONDS if entry is not None else 0.0
