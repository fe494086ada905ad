"""`tfrecreg digest`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.builtin.look.digest import ContentDigests
    from tfrecreg.core.workers.interface import Engine


@session_command("digest")
@click.argument(
    "targets", nargs=-1, required=True, metavar="TARGET..", shell_complete=complete.targets
)
@click.option(
    "--split", metavar="NAME", help="Split of files whose names contain none, such as train."
)
@jobs_option
def digest_command(
    session: Session,
    targets: tuple[str, ...],
    split: str | None,
    engine: Engine,
) -> None:
    """Print the content digest of each split.

    TARGET is a reference (mnist, mnist@1.0.0), or a path, URL, folder or glob of TFRecord files of
    any tool, which need no registry. The digest is computed from the records: equal records in
    splits of equal names have equal digests, in any order and any shards, plain or gzip. The
    manifest of a release has the same digest. `tfrecreg check TARGET --same-as REF` names the
    records that differ.
    """
    from tfrecreg.builtin.look.digest import digest

    found = digest(
        targets,
        split=split,
        registry=session.registry,
        engine=engine,
        progress=session.progress(),
    )
    if session.printed_json({"targets": found}):
        return
    for each in found:
        _print_digests(each, named=len(found) > 1)


def _print_digests(found: ContentDigests, *, named: bool) -> None:
    """One line per split, and one for all of them if there are several."""
    rows = [(each.content, each.records, safe(each.split) or "(no name)") for each in found.splits]
    if len(rows) != 1:
        records = sum(each.records for each in found.splits)
        rows.append((found.content, records, "(all splits)"))
    target = f"  {found.target}" if named else ""
    width = max(len(f"{records}") for _, records, _ in rows)
    for content, records, name in rows:
        # A console would wrap the line.
        click.echo(f"{content}  {records:>{width}}  {name}{target}")
