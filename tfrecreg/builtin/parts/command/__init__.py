"""`tfrecreg parts`: its subcommands are `plan`, `build` and `publish`, a module each."""

from __future__ import annotations

import click

from tfrecreg.commands.lazy_group import LazyGroup

_LINES = {
    "plan": "List the items of a build and write its plan",
    "build": "Make the shards of one part of a plan",
    "publish": "Publish a planned build from the shards of its parts",
}


@click.group(
    name="parts",
    cls=LazyGroup,
    package="tfrecreg.builtin.parts.command",
    lines=_LINES,
    no_args_is_help=True,
)
def command() -> None:
    """Build a dataset in parts, on several machines.

    `parts plan NAME DIR` writes the plan of a build. `parts build DIR --part I/N` makes the shards
    of one part, on any machine that sees DIR and the raw data. `parts publish DIR` compares every
    shard with its receipt, the plan and its bytes, and publishes the build. DIR may be in a bucket:
    `s3://bucket/plan`.
    """
