"""`tfrecreg head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tfrecreg.cli.common import Face, json_option

if TYPE_CHECKING:
    from tfrecreg.operations.head import ShownRecord


@click.command(name="head")
@click.argument("target")
@click.option(
    "-n",
    "--records",
    "count",
    type=int,
    metavar="N",
    help="How many. Default: 5, with --at 1.",
)
@click.option(
    "--at",
    type=int,
    metavar="N",
    help="Begin with record N of its shard, numbered from 0 as findings do; -1 is the last.",
)
@click.option("--shard", metavar="NAME", help="Look at this shard only.")
@click.option("--save", metavar="DIR", help="Write the pictures of these records as files to DIR.")
@click.option(
    "--pictures",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Show pictures as pictures: in a terminal that can (auto), in pipes, too (always).",
)
@json_option
@click.pass_obj
def command(
    face: Face,
    target: str,
    count: int | None,
    at: int | None,
    shard: str | None,
    save: str | None,
    pictures: str,
) -> None:
    """Show the first records.

    TARGET is a reference (mnist, mnist@1.0.0, mnist@latest), or a path, folder or glob of TFRecord
    files, which need no registry. Damaged records are passed over.
    """
    from tfrecreg.operations.check import find_target
    from tfrecreg.operations.head import head

    if count is None:
        count = 5 if at is None else 1
    records = head(find_target(target, registry=face.registry), count, at=at, shard=shard)
    if save is not None:
        from tfrecreg.operations.head_save import save_pictures

        records = save_pictures(records, save)
    if face.as_json:
        face.print_json({"target": target, "records": [each.to_json() for each in records]})
        return
    from tfrecreg.report.inline import find_way
    from tfrecreg.report.records import print_records

    out = face.out
    way = find_way(os.environ, terminal=sys.stdout.isatty(), always=pictures == "always")
    saved = 0

    def counted() -> Iterator[ShownRecord]:
        nonlocal saved
        for each in records:
            saved += len(each.saved)
            yield each

    print_records(out, counted(), way=way if pictures != "never" else None)
    if save is not None and not saved:
        face.err.print("these records have no pictures: nothing was saved")
