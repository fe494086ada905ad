"""Reading every record of a target, for results that are only valid for complete data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.check.scan.run import ScanResult, run_scan
from tfrecreg.core.values.errors import FailureError, RefusedError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """Damage that was skipped while the undamaged records were read. Strings are escaped."""

    shard: str
    record: int | None
    """Number of the first damaged record, if known."""
    offset: int
    """Offset in the stream where it starts."""
    reason: str
    """``CRC002: …``."""
    count: int = 1
    """Damaged places in the shard, as far as it was read."""


def passed_over(name: str, damage: Sequence[PassedOver]) -> RefusedError:
    """The error for a result without the damaged records of a target."""
    first, total = damage[0], sum(each.count for each in damage)
    where = "" if first.record is None else f"record {first.record} of "
    places = "1 damaged place was" if total == 1 else f"{total} damaged places were"
    return RefusedError(
        f"{places} skipped, the first is {where}`{first.shard}`, at byte {first.offset}: "
        f"{first.reason}",
        hint=f"tfrecreg check {name}",
    )


def read_whole(
    target: Target,
    validators: Sequence[Validator],
    engine: Engine,
    progress: Progress,
    *,
    doing: str,
    otherwise: str,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> ScanResult:
    """Scan all shards of `target`."""
    result = run_scan(
        target,
        validators,
        engine,
        options=options,
        label=f"{doing} {target.name}",
        progress=progress,
    )
    if not result.complete:
        lost = [f"`{safe(each.shard)}`: {each.reason}" for each in result.unreadable]
        lost += [each.reason for each in result.crashes]
        raise FailureError(
            f"`{target.name}` was not read completely: {lost[0]}",
            hint=f"{otherwise}: fix that first",
        )
    return result
