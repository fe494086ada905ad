"""`tfrecreg diff`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tfrecreg._version import JSON_VERSION
from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.output import write_text
from tfrecreg.core.terminal.reports import choose_format
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import json_data

if TYPE_CHECKING:
    from tfrecreg.core.workers.interface import Engine


@session_command("diff")
@click.argument("before", metavar="A", shell_complete=complete.references)
@click.argument("after", metavar="B", shell_complete=complete.references)
@click.option(
    "--records", is_flag=True, help="List every example that differs, not only the first few."
)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if A and B differ, as git diff does.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "html"]),
    help="json: the same as --json. html: a page that shows the records.",
)
@click.option(
    "--output",
    metavar="PAGE.html",
    shell_complete=complete.files,
    help="With --format html: write the page to this file instead of stdout.",
)
@jobs_option
def command(
    session: Session,
    before: str,
    after: str,
    records: bool,
    exit_code: bool,
    form: str | None,
    output: str | None,
    engine: Engine,
) -> int:
    """Compare two builds or releases, example by example.

    A and B are references (mnist for the build, mnist@1.0.0 for a release), or paths or URLs of
    folders with a manifest. Examples are matched through the indexes. Changed features and labels
    are read from the records, if the bytes of A and B are on this machine. The last lines give the
    smallest version number for the change from A to B, and the reason.
    """
    chosen = choose_format(session, form)
    if output is not None and chosen != "html":
        raise UsageError("`--output` needs `--format html`")
    context = session.context(engine)
    if chosen == "html":
        from tfrecreg.builtin.pages.make import diff_page

        html, result = diff_page(before, after, **context)
        if output is None:
            sys.stdout.write(html)
        else:
            from tfrecreg.core.terminal.findings import print_page

            write_text(output, html)
            print_page(session.out, output, html, ())
        return 1 if exit_code and not result.same else 0
    from tfrecreg.builtin.releases.diff.result import diff

    result = diff(before, after, **context)
    if chosen == "json" and records:
        from tfrecreg.core.terminal.console import print_json_list

        document = {"format_version": JSON_VERSION, **json_data(result)}
        print_json_list(document, map(json_data, result.records(engine)))
    elif chosen == "json":
        session.print_json(result)
    else:
        from tfrecreg.builtin.releases.diff.printed import print_diff

        print_diff(session.out, result, records=records, engine=engine)
    return 1 if exit_code and not result.same else 0
