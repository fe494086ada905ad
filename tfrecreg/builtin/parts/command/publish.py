"""`tfrecreg parts publish`."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import click

from tfrecreg.commands import complete
from tfrecreg.commands.options import jobs_option
from tfrecreg.commands.session import Session, session_command
from tfrecreg.text import count

if TYPE_CHECKING:
    from tfrecreg.engines.interface import Engine
    from tfrecreg.operations.builds.parts.collect import Collected


@session_command("publish")
@click.argument("folder", metavar="DIR", shell_complete=complete.folders)
@click.argument("name", required=False, shell_complete=complete.datasets)
@click.option(
    "--raw",
    metavar="PATH",
    shell_complete=complete.folders,
    help="Folder of the raw data, or its URL. Default: that of the plan.",
)
@click.option("--parts-only", is_flag=True, help="If shards are missing, name them and stop.")
@click.option(
    "--verify",
    metavar="N|P%",
    help="Rebuild N or P% of the shards, chosen at random, and compare them byte for byte.",
)
@click.option(
    "--release", "version", metavar="X.Y.Z|auto", help="Release the build under this number."
)
@jobs_option
def command(
    session: Session,
    folder: str,
    name: str | None,
    raw: str | None,
    parts_only: bool,
    verify: str | None,
    version: str | None,
    engine: Engine,
) -> None:
    """Publish a planned build from the shards of its parts.

    DIR is the folder of the plan, or its URL. Every shard is compared with its receipt, the plan
    and its bytes; if anything does not fit, nothing is published. Missing shards are made here. If
    NAME is given, the plan has to be one of this dataset.
    """
    from tfrecreg.operations.builds.parts.collect import CollectRequest, collect_parts
    from tfrecreg.operations.builds.parts.plan_files import PlanFolder
    from tfrecreg.operations.builds.parts.remake import parse_sample
    from tfrecreg.operations.release import ReleaseRequest, release
    from tfrecreg.registry.lock import dataset_lock
    from tfrecreg.render.built import print_built

    session.warn_of_broken_plugins()
    request = CollectRequest(
        plan=folder,
        name=name,
        raw=raw,
        parts_only=parts_only,
        verify=parse_sample(verify) if verify is not None else None,
    )
    registry, progress, released = session.open(), session.progress(), None
    with ExitStack() as held:
        if version is not None:  # no other build before the release
            dataset = PlanFolder.open(folder).document.dataset
            waiting = partial(progress.note, "waiting for another command")
            held.enter_context(dataset_lock(registry, dataset, waiting))
        collected = collect_parts(registry, request, engine=engine, progress=progress)
        _print_collected(session, collected)
        if version is not None:
            number = None if version == "auto" else version
            wanted = ReleaseRequest(name=collected.built.manifest.dataset, version=number)
            released = release(registry, wanted, engine=engine, progress=progress)
    print_built(session, collected.built, released, parts=collected)


def _print_collected(session: Session, collected: Collected) -> None:
    here = len(collected.made_here)
    said = f"{count(collected.from_parts, 'shard')} of parts, {here} made here"
    if collected.verified:
        said += f", {len(collected.verified)} rebuilt and equal"
    session.err.print(said)
