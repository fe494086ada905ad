"""`tfrecreg gate`."""

from __future__ import annotations

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, json_option
from tfrecreg.cli.report_command import ReportCommand
from tfrecreg.cli.reports import choose_format, exit_code, format_options, show

__all__ = ["command"]


@click.command(name="gate", cls=ReportCommand)
@click.argument("target", shell_complete=complete.references)
@click.option(
    "--report",
    shell_complete=complete.files,
    metavar="FILE",
    required=True,
    help="The JSON that `check TARGET --fail-on never --format json` wrote.",
)
@format_options
@json_option
@click.pass_obj
def command(face: Face, target: str, report: str, form: str | None, output: str | None) -> int:
    """Judge what a check measured, under today's gate and waivers.

    TARGET is a build or a release. A report about another state of it, or one that did not look at
    all that the gate asks for, is refused with exit code 2.
    """
    from tfrecreg.operations.gate import gate

    chosen = choose_format(face, form)
    registry = face.open()
    face.warn_of_broken_plugins()
    judged = gate(registry, target, report, progress=face.progress())
    show(face, [judged], chosen, output)
    return exit_code([judged])
