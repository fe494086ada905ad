"""`tfrecreg stats`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.output import write_text
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.errors import UsageError

if TYPE_CHECKING:
    from tfrecreg.core.workers.interface import Engine


@session_command("stats")
@click.argument("target", shell_complete=complete.targets)
@options_of("files:Verbs.stats", split="S")
@click.option(
    "--pbtxt",
    is_flag=True,
    help="Print TFDV's message as text, which tfdv.load_stats_text reads.",
)
@click.option(
    "--output",
    metavar="FILE",
    shell_complete=complete.files,
    help="Write to FILE instead of stdout.",
)
@jobs_option
def command(
    session: Session,
    target: str,
    pbtxt: bool,
    output: str | None,
    engine: Engine,
    **arguments: Any,
) -> None:
    """Show the statistics of the features.

    TARGET is a reference (mnist, mnist@1.0.0, mnist@latest), or a path, URL, folder or glob of
    TFRecord files, which need no registry. Statistics are computed per split. The statistics of a
    build or a release are cached.
    """
    from tfrecreg.builtin.statistics.make import stats

    if pbtxt and session.as_json:
        raise UsageError("`--pbtxt` and `--json` exclude each other")
    found = stats(target, **session.context(engine), **arguments)
    if session.as_json:
        session.print_json(found, output)
        return
    text = found.pbtxt() if pbtxt else f"{found}\n"
    if output is not None:
        write_text(output, text)
    else:
        click.echo(text, nl=False)
