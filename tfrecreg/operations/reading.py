"""Reading every record of a target for what is true of the whole alone, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfrecreg.engines import Engine
from tfrecreg.errors import FailureError
from tfrecreg.operations.progress import Progress
from tfrecreg.scan import ScanResult, Target, Validator, run_scan
from tfrecreg.text import safe

__all__ = ["read_whole"]


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
    """Scan all shards of `target`.

    Args:
        target: what to read.
        validators: what looks at its records.
        engine: where.
        progress: told how far it is.
        doing: what is done, for the progress: ``"looking at"``.
        otherwise: what would be wrong with a part: ``"a schema of a part would refuse the rest"``.
        options: by validator name, what its `begin` is given.

    Raises:
        FailureError: a shard could not be read, or a validator failed.
    """
    known = sum(shard.entry.records for shard in target.shards if shard.entry is not None)
    progress.start(f"{doing} {target.name}", known)
    try:
        result = run_scan(
            target,
            validators,
            engine,
            options=options,
            progress=lambda _, end: progress.advance(
                *((end.records, end.file_bytes) if end is not None else (0, 0))
            ),
        )
    finally:
        progress.stop()
    if not result.complete:
        lost = [f"`{safe(each.shard)}`: {each.reason}" for each in result.unreadable]
        lost += [each.reason for each in result.crashes]
        raise FailureError(
            f"`{target.name}` was not read to its end: {lost[0]}",
            hint=f"{otherwise}: mend that first",
        )
    return result
