"""The operation: find damaged shards, write their undamaged records, and mark the folder."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrecreg.builtin.salvage.find import find_shards, require_elsewhere
from tfrecreg.builtin.salvage.model import SalvageResult, ShardResult
from tfrecreg.builtin.salvage.original import UnreadableShardError, read_locally
from tfrecreg.builtin.salvage.shard import missing_shard, salvage_shard
from tfrecreg.core.build.state import remove_leftovers
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.registry.data import TargetsLike
from tfrecreg.core.registry.find import named_targets
from tfrecreg.core.registry.lock import free_folder, new_folder
from tfrecreg.core.registry.manifest import SALVAGE_NAME
from tfrecreg.core.registry.registry import find_registry, open_registry
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.errors import RefusedError, StorageError, UsageError
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.context import Context, Travelling
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    from typing_extensions import Unpack


def salvage(
    targets: TargetsLike, output: str | os.PathLike[str], **context: Unpack[Context]
) -> SalvageResult:
    """Write the undamaged records of damaged shards into a new folder. The originals are only read.

    For each shard, the folder gets two files: a clean shard of the same name, and the bytes that
    were cut out (``NAME.quarantine``). ``salvage.json`` marks the folder: `check` finds SHD009 for
    each changed shard. The folder appears when everything in it is written and synced.
    """
    registry, engine, progress = Travelling(**context)
    engine = engine or LocalEngine(1)
    named = named_targets(targets)
    if not named:
        raise UsageError("there is no target to salvage")
    root = registry if registry is not None else find_registry()
    opened = open_registry(root) if root is not None else None
    path = free_folder(output, opened)
    found = find_shards(named, registry, engine)
    require_elsewhere(path, found)
    shown = " ".join(map(str, named))
    if not found.shards and not found.missing:
        return SalvageResult(target=shown, output="", passed=found.passed, shards=())
    with new_folder(path, "salvage") as stage:
        results = engine.map(
            salvage_one,
            (SalvageTask(shard, stage) for shard in found.shards),
            cost=lambda _, each: (
                each.kept + each.repaired,
                0 if each.original is None else each.original.bytes,
            ),
            label="salvaging",
            total=sum(shard.entry.records for shard in found.shards if shard.entry is not None),
            progress=progress,
        )
        remove_leftovers(stage)
        results += map(missing_shard, found.missing)
        result = SalvageResult(
            target=shown, output=str(path), passed=found.passed, shards=tuple(results)
        )
        _require_some(result)
        document = json.dumps(result.report(), indent=2, ensure_ascii=True) + "\n"
        with stage.create(SALVAGE_NAME) as writer:
            writer.write(document.encode("ascii"))
    return result


@dataclass(frozen=True, slots=True)
class SalvageTask:
    """The task for one shard. Picklable."""

    shard: Shard
    stage: Storage
    """The unfinished folder."""


def salvage_one(task: SalvageTask) -> ShardResult:
    """Salvage one shard in a worker. It may run twice for a shard, even at the same time."""
    shard = task.shard
    name = os.path.basename(shard.path)  # noqa: PTH119 - a str stays a str
    try:
        with read_locally(shard, task.stage) as local:
            return salvage_shard(local, name, task.stage)
    except UnreadableShardError as error:
        return ShardResult(name=name, status="unreadable", reason=error.message, exact=False)


def _require_some(result: SalvageResult) -> None:
    """Refuse a result without a clean shard, because its folder would be useless."""
    if any(shard.clean is not None for shard in result.shards):
        return
    first = min(result.shards, key=lambda shard: _WORST.index(shard.status))
    more = f", nor is any of {len(result.shards) - 1} others" if len(result.shards) > 1 else ""
    name = safe(first.name)
    if first.status == "unreadable":
        raise StorageError(f"nothing was salvaged: {first.reason}")
    if first.status == "refused":
        raise RefusedError(f"`{name}` is not a TFRecord{more}: {first.reason}")
    raise RefusedError(
        f"`{name}` is not there{more}: nothing is left to salvage",
        hint="`tfrecreg repair REF` rebuilds it from the raw data",
    )


_WORST = ("unreadable", "refused", "missing", "salvaged", "sound")
