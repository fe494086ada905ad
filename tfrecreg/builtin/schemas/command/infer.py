"""`tfrecreg schema infer`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.output import expect_free_file, write_text
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.workers.interface import Engine


@session_command("infer")
@click.argument("target", shell_complete=complete.targets)
@click.option(
    "--output",
    metavar="FILE",
    shell_complete=complete.files,
    help="Write the draft to FILE, which must not exist.",
)
@jobs_option
def infer_command(session: Session, target: str, output: str | None, engine: Engine) -> int:
    """Draft a schema from records.

    TARGET is a reference, or a path, URL, folder or glob of TFRecord files. A schema inferred from
    data accepts that same data: review the draft before you rely on it. Damaged records are
    skipped, and the exit code is then 1.
    """
    from tfrecreg.core.check.infer import infer_schema
    from tfrecreg.core.check.scan.whole import PassedOver, passed_over
    from tfrecreg.core.registry.shardset.target import find_target

    if output is not None:
        expect_free_file(output)
    found = find_target(target, registry=session.registry)
    damage: list[PassedOver] = []
    draft = infer_schema(found, engine, session.progress(), damage=damage)
    if output is not None:
        write_text(output, draft, new=True)
        session.err.print(
            f"wrote {safe(output)}: review it, because it accepts everything in the data"
        )
    elif session.as_json:
        session.print_json({"target": found.name, "schema": draft, "damage": damage})
        return 1 if damage else 0
    else:
        click.echo(draft.rstrip("\n"))
    if damage:
        raise passed_over(found.name, damage)
    return 0
