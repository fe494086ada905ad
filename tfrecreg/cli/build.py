"""`tfrecreg build`, which also shows what a build would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.core.build.run import Preview
    from tfrecreg.core.workers.interface import Engine


_POLICY = ("shards", "shard_size", "records_per_shard", "hosts")
"""Options that say how records are distributed over shards."""


@session_command("build")
@click.argument("name", shell_complete=complete.datasets)
@options_of(
    "making:Making.build",
    *("data", "key", "labels", "jobs"),
    shard_size="SIZE",
    base={"metavar": "REF|none", "shell_complete": complete.releases},
    max_skipped="N|P%",
    max_dropped="N|P%",
)
@click.option("--dry-run", is_flag=True, help="Show the plan and write nothing.")
@click.option(
    "--release", "version", metavar="X.Y.Z|auto", help="Release the build under this number."
)
@jobs_option
def command(
    session: Session,
    name: str,
    options: tuple[str, ...],
    dry_run: bool,
    version: str | None,
    engine: Engine,
    **arguments: Any,
) -> None:
    """Build a dataset's TFRecords from its raw data.

    The command writes the new build next to the old data/NAME, reads the new build back and
    checks it. Then the new build replaces the old one. The first build of a dataset saves its
    settings in datasets/NAME.toml, and `tfrecreg build NAME` repeats the build. Settings of a
    later build apply to that build only, unless `--save-options` saves them.
    """
    from tfrecreg.builtin.releases.commands import print_built
    from tfrecreg.core.build.request import BuildRequest
    from tfrecreg.core.build.run import build_from_source, preview
    from tfrecreg.core.values.shards import shard_policy
    from tfrecreg.core.values.typed_values import pairs_of

    registry = session.open()
    session.warn_of_broken_plugins()
    policy = shard_policy(*(arguments.pop(each) for each in _POLICY))
    request = BuildRequest(name=name, options=pairs_of(options), policy=policy, **arguments)
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


def _print_preview(session: Session, found: Preview) -> None:
    from tfrecreg.builtin.releases.commands import growth_json, print_growth
    from tfrecreg.core.terminal.console import PlainTable, line

    start, plan, raw, console = found.start, found.start.plan, found.start.raw, session.out
    splits = {}
    for name, items in plan.splits().items():
        shards = [shard.path for shard in plan.shards if shard.split == name]
        size = sum(found.sizes[path] for path in shards)
        splits[name] = {"items": items, "shards": len(shards), "estimated_bytes": size}
    document = {
        "dataset": plan.dataset,
        "source": start.prepared.entry.name,
        "options": start.prepared.entry.options,
        "settings": start.settings,
        "found": found.found,
        "raw": {"files": raw.files, "stored": raw.stored},
        "splits": splits,
        "skipped": len(plan.skipped),
        "growth": growth_json(found.growth),
    }
    if session.printed_json(document):
        return
    made_of = f"{count(raw.files, 'raw file')}, {si_bytes(raw.stored)}"
    console.print(line(f"would build {plan.dataset} from {made_of}; nothing was written"))
    for name, text in found.found.items():
        console.print(line(f"  {safe(name)}: {safe(text, limit=1000)}"))
    console.print("")
    right = ("items", "shards", "at most about")
    table = PlainTable("split", "items", "shards", "at most about", right=right, indent=2)
    for name in sorted(splits, key=in_reading_order):
        items, number, size = splits[name].values()
        table.add_row(safe(name), f"{items:,}", f"{number:,}", si_bytes(size))
    console.print(table)
    console.print("")
    if found.growth is not None:
        print_growth(console, found.growth, would=True)
    if plan.skipped:
        skipped = count(len(plan.skipped), "item")
        console.print("")
        console.print(line(f"the source would skip {skipped}"))
