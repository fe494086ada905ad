"""`tfrecreg salvage`: find damaged shards, write their undamaged records, mark the folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from rich.console import Console

from tfrecreg.builtin.salvage.find import find_shards, require_elsewhere
from tfrecreg.builtin.salvage.model import SalvageResult, ShardResult
from tfrecreg.builtin.salvage.original import UnreadableShardError, read_locally
from tfrecreg.builtin.salvage.shard import missing_shard, salvage_shard
from tfrecreg.core.build.state import remove_leftovers
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.registry.lock import free_folder, new_folder
from tfrecreg.core.registry.manifest import SALVAGE_NAME
from tfrecreg.core.registry.registry import RegistryLike, find_registry, open_registry
from tfrecreg.core.registry.shardset.find import TargetsLike, named_targets
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.console import Line, line
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.errors import RefusedError, StorageError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import count, safe, si_bytes
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    from tfrecreg.builtin.salvage.model import Cut, SalvageResult, ShardResult
    from tfrecreg.core.workers.interface import Engine


@session_command("salvage")
@click.argument(
    "targets", nargs=-1, required=True, metavar="SHARD..", shell_complete=complete.targets
)
@click.option(
    "--output",
    required=True,
    metavar="DIR",
    shell_complete=complete.folders,
    help="New folder for the salvaged shards.",
)
@jobs_option
def command(session: Session, targets: tuple[str, ...], output: str, engine: Engine) -> int:
    """Write the undamaged records of damaged shards.

    SHARD is a path, URL, folder or glob of TFRecord files, or a reference (mnist, mnist@1.0.0),
    which selects its damaged shards. The originals are never changed. For each shard, DIR gets a
    clean shard of the same name, the bytes that were cut out (NAME.quarantine), and records that
    may not belong to the shard (NAME.doubtful). A report (salvage.json) marks the set: `tfrecreg
    check` refuses it (SHD009) unless the gate accepts it.
    """

    result = salvage(
        targets, output, registry=session.registry, engine=engine, progress=session.progress()
    )
    if not session.printed_json(result):
        print_salvage(session.out, result)
    return result.exit_code


_SHOWN = 5
"""The number of cuts and keys shown per shard; the report has all of them."""

_STATUS = {
    "sound": ("sound", "green"),
    "salvaged": ("salvaged", "yellow"),
    "refused": ("no TFRecord", "bold red"),
    "missing": ("missing", "bold red"),
    "unreadable": ("not read", "bold red"),
}


def print_salvage(console: Console, result: SalvageResult) -> None:
    """Print each shard with its cuts and lost keys, and the next command."""
    if result.passed:
        passed = count(result.passed, "shard")
        console.print(line(f"{passed}: as in the manifest, skipped"))
    if not result.shards:
        console.print(line(("nothing to salvage", "bold green"), "; nothing was written"))
        return
    for shard in result.shards:
        console.print(
            line((f"{safe(shard.name)}: ", "bold"), _STATUS[shard.status], _counts(shard))
        )
        for text in _details(shard):
            console.print(text)
    written = safe(result.output, limit=1000)
    console.print(line(("written: ", "bold"), written))
    if result.damaged:
        where = f"{written}/{SALVAGE_NAME}"
        console.print(line(("marked: ", "bold"), f"`tfrecreg check` finds SHD009, see {where}"))
    else:
        console.print(line(("no damage found", "bold green"), ": the copies have the same bytes"))


def _counts(shard: ShardResult) -> str:
    if shard.status in ("refused", "unreadable"):
        return f": {safe(shard.reason, limit=500)}"
    parts = [f"{count(shard.kept, 'record')} kept"]
    if shard.repaired:
        parts.append(f"{shard.repaired:,} repaired")
    least = "" if shard.exact else "at least "
    if shard.status != "sound":
        parts.append(f"{least}{shard.lost:,} lost")
    return ", " + ", ".join(parts)


def _details(shard: ShardResult) -> Iterator[Line]:
    for cut in shard.cuts[:_SHOWN]:
        yield line("    ", *_place(cut), f": {safe(cut.detail, limit=500)}")
    if shard.cuts_total > _SHOWN:
        yield line(f"    … and {shard.cuts_total - _SHOWN:,} more")
    if shard.lost_keys:
        yield line(("    lost keys: ", "bold"), _keys(shard.lost_keys))
    elif shard.lost and shard.lost_keys is None:
        yield line(("    lost keys: ", "bold"), "unknown without an index")
    if shard.unproven:
        kept = f"{count(shard.unproven, 'record')} from damaged gzip verified by checksums only, "
        yield line(("    note: ", "bold"), f"{kept}not by an index")
    if shard.doubts is not None:
        where = f"{count(shard.doubtful, 'record')} moved to {safe(shard.doubts.path)}"
        yield line(("    doubtful: ", "bold"), f"{where}: they may not belong to the shard")
    if shard.reason and shard.status not in ("refused", "unreadable"):
        yield line(("    note: ", "bold"), safe(shard.reason, limit=500))


def _place(cut: Cut) -> Iterator[tuple[str, str]]:
    what: str = cut.what
    if cut.record is not None:
        number = f"record {cut.record:,}"
        what = {"header": f"header of {number}", "record": number}.get(what, f"{what}, {number}")
    yield f"{cut.code} {what}, offset {cut.offset:,}, {si_bytes(cut.length)}", "bold"


def _keys(keys: Sequence[str]) -> str:
    shown = ", ".join(safe(key) for key in keys[:_SHOWN])
    more = len(keys) - _SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


def salvage(
    targets: TargetsLike,
    output: str | os.PathLike[str],
    *,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> SalvageResult:
    """Write the undamaged records of damaged shards into a new folder. The originals are only read.

    For each shard the folder gets a clean one of the same name, the bytes that were cut out of it
    (``NAME.quarantine``), and for all of them ``salvage.json``, which marks the folder: `check`
    finds SHD009 for each changed shard in it. It appears when all of it is written
    and synced.
    """
    engine = engine or LocalEngine(1)
    named = named_targets(targets)
    if not named:
        raise UsageError("there is no target to salvage", hint="name shards, or a build or release")
    root = registry if registry is not None else find_registry()
    opened = open_registry(root) if root is not None else None
    path = free_folder(output, opened, "a salvage")
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
        results += [
            missing_shard(shard.path, shard.entry.records, shard)
            for shard in found.missing
            if shard.entry is not None
        ]
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
    """One shard. Picklable."""

    shard: Shard
    stage: Storage
    """The unfinished folder."""


def salvage_one(task: SalvageTask) -> ShardResult:
    """In a worker: salvage one shard. It may run twice, also at the same time."""
    shard = task.shard
    name = os.path.basename(shard.path)  # noqa: PTH119 - a str stays a str
    try:
        with read_locally(shard, task.stage) as local:
            return salvage_shard(local, name, task.stage)
    except UnreadableShardError as error:
        return ShardResult(name=name, status="unreadable", reason=error.message, exact=False)


def _require_some(result: SalvageResult) -> None:
    """Refuse where there is not one clean shard: a folder without would say nothing."""
    if any(shard.clean is not None for shard in result.shards):
        return
    first = min(result.shards, key=lambda shard: _WORST.index(shard.status))
    more = f", nor is any of {len(result.shards) - 1} more" if len(result.shards) > 1 else ""
    name = safe(first.name)
    if first.status == "unreadable":
        raise StorageError(
            f"nothing was salvaged: {first.reason}", hint="copy the file to a working disk first"
        )
    if first.status == "refused":
        raise RefusedError(
            f"`{name}` is not a TFRecord{more}: {first.reason}",
            hint=f"`tfrecreg check {name}` has the details; nothing was written",
        )
    raise RefusedError(
        f"`{name}` is not there{more}: nothing is left to salvage",
        hint="`tfrecreg repair REF` rebuilds it from the raw data",
    )


_WORST = ("unreadable", "refused", "missing", "salvaged", "sound")
