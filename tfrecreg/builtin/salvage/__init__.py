"""Salvages damaged shards: writes clean shards, the bytes that were cut out, and a report.

:func:`tfrecreg.core.registry.manifest.read_mark` reads the mark that a salvage leaves in its
folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from tfrecreg.builtin.salvage.model import SalvageResult, ShardResult
    from tfrecreg.core.terminal.console import Line
    from tfrecreg.core.workers.interface import Engine


@session_command("salvage")
@click.argument(
    "targets", nargs=-1, required=True, metavar="SHARD..", shell_complete=complete.targets
)
@options_of("files:Files.salvage")
@jobs_option
def command(session: Session, targets: tuple[str, ...], output: str, engine: Engine) -> int:
    """Write the undamaged records of damaged shards.

    SHARD is a path, URL, folder or glob of TFRecord files, or a reference (mnist, mnist@1.0.0),
    which selects its damaged shards. The originals are never changed. For each shard, DIR gets a
    clean shard of the same name, the bytes that were cut out (NAME.quarantine), and records that
    may not belong to the shard (NAME.doubtful). A report (salvage.json) marks the shards as
    salvaged: `tfrecreg check` refuses them (SHD009) unless the gate accepts such shards.
    """
    from tfrecreg.builtin.salvage.run import salvage

    result = salvage(targets, output, **session.context(engine))
    if not session.printed_json(result):
        print_salvage(session.out, result)
    return result.exit_code


_SHOWN = 5
"""Maximum number of cuts and keys shown per shard; the report lists all."""
_STATUS = {
    "sound": ("sound", "green"),
    "salvaged": ("salvaged", "yellow"),
    "refused": ("no TFRecord", "bold red"),
    "missing": ("missing", "bold red"),
    "unreadable": ("not read", "bold red"),
}


def print_salvage(console: Console, result: SalvageResult) -> None:
    """Print each shard with its cuts and lost keys, and the next command."""
    from tfrecreg.core.terminal.console import line

    if result.passed:
        passed = count(result.passed, "shard")
        console.print(line(f"{passed} skipped: the bytes match the manifest"))
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
        from tfrecreg.core.registry.manifest import SALVAGE_NAME

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
    from tfrecreg.core.terminal.console import line

    for cut in shard.cuts[:_SHOWN]:
        what: str = cut.what
        if cut.record is not None:
            number = f"record {cut.record:,}"
            words = {"header": f"header of {number}", "record": number}
            what = words.get(what, f"{what}, {number}")
        place = f"    {cut.code} {what}, offset {cut.offset:,}, {si_bytes(cut.length)}"
        yield line((place, "bold"), f": {safe(cut.detail, limit=500)}")
    if shard.cuts_total > _SHOWN:
        yield line(f"    … and {shard.cuts_total - _SHOWN:,} more")
    if shard.lost_keys:
        shown = ", ".join(safe(key) for key in shard.lost_keys[:_SHOWN])
        more = len(shard.lost_keys) - _SHOWN
        shown += f" and {more:,} more" if more > 0 else ""
        yield line(("    lost keys: ", "bold"), shown)
    elif shard.lost:
        yield line(("    lost keys: ", "bold"), "unknown without an index")
    if shard.unproven:
        kept = f"only checksums, not an index, verify {count(shard.unproven, 'record')} "
        yield line(("    note: ", "bold"), f"{kept}from damaged gzip")
    if shard.doubts is not None:
        where = f"{count(shard.doubtful, 'record')} moved to {safe(shard.doubts.path)}"
        yield line(("    doubtful: ", "bold"), f"{where}: they may not belong to the shard")
    if shard.reason and shard.status not in ("refused", "unreadable"):
        yield line(("    note: ", "bold"), safe(shard.reason, limit=500))
