"""`tfrecreg build`.

What a build would do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option, settings_options
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from rich.console import Console

if TYPE_CHECKING:
    from tfrecreg.core.build.conclude import BuildResult
    from tfrecreg.core.build.request import BuildRequest
    from tfrecreg.core.build.run import Preview
    from tfrecreg.core.workers.interface import Engine


@session_command("build")
@click.argument("name", shell_complete=complete.datasets)
@settings_options
@click.option(
    "--anew",
    is_flag=True,
    help="Rebuild every shard, including those that an unfinished run completed.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan and write nothing.")
@click.option(
    "--release", "version", metavar="X.Y.Z|auto", help="Release the build under this number."
)
@jobs_option
def command(
    session: Session,
    name: str,
    settings: dict[str, Any],
    anew: bool,
    dry_run: bool,
    version: str | None,
    engine: Engine,
) -> None:
    """Build a dataset's TFRecords from its raw data.

    The new build is written beside the old data/NAME, read back and checked, and then replaces it.
    The first build of a dataset saves its settings in datasets/NAME.toml, and `tfrecreg build NAME`
    repeats it. Settings of a later build apply to that build only, unless `--save-options` saves
    them.
    """
    from tfrecreg.builtin.releases.commands import print_built
    from tfrecreg.core.build.request import BuildRequest
    from tfrecreg.core.build.run import build_from_source, preview

    registry = session.open()
    session.warn_of_broken_plugins()
    request = BuildRequest(name=name, anew=anew, **settings)
    progress = session.progress()
    if dry_run:
        _print_preview(session, preview(registry, request, engine=engine, progress=progress))
        return
    released = None
    if version is None:
        built = build_from_source(registry, request, engine=engine, progress=progress)
    else:
        from tfrecreg.builtin.releases.release import publish

        number = None if version == "auto" else version
        built, released = publish(registry, request, number, engine=engine, progress=progress)
    print_built(session, built, released)
    _note_shards(session, request, built)


def _note_shards(session: Session, request: BuildRequest, built: BuildResult) -> None:
    """Say which splits have fewer records than the shards that were asked for."""
    from tfrecreg.core.terminal.console import line

    asked = request.policy.shards if request.policy is not None else None
    for split in built.manifest.splits:
        if asked is not None and split.records < asked and not session.as_json:
            some = count(split.records, "record")
            session.err.print(line(f"`{split.name}` has {some}, so fewer than {asked:,} shards"))


def _print_preview(session: Session, found: Preview) -> None:
    if not session.as_json:
        print_preview(session.out, found)
        return

    from tfrecreg.builtin.releases.commands import growth_json

    plan = found.plan
    splits = plan.splits()
    shards = {name: sum(s.split == name for s in plan.shards) for name in splits}
    sizes = {
        name: sum(found.sizes[s.path] for s in plan.shards if s.split == name) for name in splits
    }
    session.print_json(
        {
            "dataset": plan.dataset,
            "source": found.prepared.entry.name,
            "options": found.prepared.entry.options,
            "settings": found.settings,
            "found": found.found,
            "raw": {"files": found.raw.files, "stored": found.raw.stored},
            "splits": {
                name: {
                    "items": splits[name],
                    "shards": shards[name],
                    "estimated_bytes": sizes[name],
                }
                for name in splits
            },
            "skipped": len(plan.skipped),
            "growth": growth_json(found.growth),
        }
    )


def print_preview(console: Console, found: Preview) -> None:
    """The plan of a build that was not run."""
    from tfrecreg.builtin.releases.commands import print_growth
    from tfrecreg.core.terminal.console import PlainTable, line

    plan, raw = found.plan, found.raw
    made_of = f"{count(raw.files, 'raw file')}, {si_bytes(raw.stored)}"
    console.print(line(f"would build {plan.dataset} from {made_of}; nothing was written"))
    for name, text in found.found.items():
        console.print(line(f"  {safe(name)}: {safe(text, limit=1000)}"))
    console.print("")
    right = ("items", "shards", "at most about")
    table = PlainTable("split", "items", "shards", "at most about", right=right, indent=2)
    splits = plan.splits()
    for name in sorted(splits, key=in_reading_order):
        shards = [shard for shard in plan.shards if shard.split == name]
        size = si_bytes(sum(found.sizes[shard.path] for shard in shards))
        table.add_row(safe(name), f"{splits[name]:,}", f"{len(shards):,}", size)
    console.print(table)
    console.print("")
    if found.growth is not None:
        print_growth(console, found.growth, would=True)
    if plan.skipped:
        skipped = count(len(plan.skipped), "item")
        console.print("")
        console.print(line(f"the source would skip {skipped}"))
