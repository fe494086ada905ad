"""Rebuilds lost or damaged files of a build or release with identical bytes, or changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.text import count, safe

if TYPE_CHECKING:
    from rich.console import Console

    from tfrecreg.builtin.repair.run import RepairResult
    from tfrecreg.core.workers.interface import Engine


@session_command("repair")
@click.argument("reference", metavar="REF", shell_complete=complete.references)
@options_of("making:Mending.repair")
@jobs_option
def command(session: Session, reference: str, raw: str | None, engine: Engine) -> None:
    """Rebuild missing and damaged files, byte for byte.

    REF is a build (mnist) or a release (mnist@1.0.0). Files of a release are restored from intact
    copies in versions/, data/ or DVC. In shards without a copy, undamaged records stay and the rest
    is rebuilt from the raw data. If the result differs from the original in any byte, nothing is
    changed.
    """
    from tfrecreg.builtin.repair.run import repair

    registry = session.open()
    session.warn_of_broken_plugins()
    result = repair(registry, reference, raw=raw, engine=engine, progress=session.progress())
    if session.printed_json(result):
        return

    print_repair(session.out, result)


def print_repair(console: Console, result: RepairResult) -> None:
    """Print the rebuilt shards and files, and the proof."""
    from tfrecreg.core.terminal.console import line

    if not result.shards and not result.files and not result.copied:
        nothing = ("nothing to repair", "bold green")
        console.print(line(nothing, f": every file of {result.reference} is unchanged"))
        return
    console.print(line((f"repaired {result.reference}", "bold"), f", in {result.folder}"))
    for shard in result.shards:
        made = f"{count(shard.made, 'record')} rebuilt, {shard.taken:,} intact"
        console.print(line(f"  {safe(shard.entry.path)}: {made}"))
    for path in result.files:
        console.print(line(f"  {safe(path)}"))
    for path in result.copied:
        console.print(line(f"  {safe(path)}: restored from a copy"))
    proof = f"every file agrees with the manifest, digest {result.digest[:16]}…"
    console.print(line(("proven", "bold green"), f": {proof}"))
