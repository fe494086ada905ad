"""`tfrecreg report` and `tfrecreg site`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.workers.interface import Engine


@session_command("report")
@click.argument("targets", nargs=-1, metavar="[TARGET..]", shell_complete=complete.targets)
@click.option(
    "--output",
    metavar="PAGE.html",
    shell_complete=complete.files,
    help="Write the page to this file. Default: TARGET.html in the current folder, or report.html.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@options_of("files:Verbs.report", "output")
@jobs_option
def report_command(
    session: Session,
    targets: tuple[str, ...],
    output: str | None,
    opens: bool,
    schema: str | None,
    engine: Engine,
    **arguments: Any,
) -> int:
    """Write a page that shows a dataset.

    TARGET is a reference (mnist, mnist@1.0.0), or a path, URL, folder or glob of TFRecord files.
    Without a TARGET, the page shows every dataset of the registry. The page is one HTML file that
    opens anywhere and needs no network. It shows the verdict, findings, images, numbers and
    history.

    The exit code is 0 even if there are findings, because only `check` judges them.
    """
    from tfrecreg.builtin.pages.collect import make_page
    from tfrecreg.builtin.pages.make import write_page
    from tfrecreg.core.check.options import CheckOptions

    output = output or _default_page(targets)
    session.warn_of_broken_plugins()
    context = session.context(engine)
    page = make_page(targets, options=CheckOptions(schema=schema), **context, **arguments)
    made = write_page(page, output, context["progress"])
    if session.as_json:
        session.print_json(
            {
                "page": output,
                "bytes": len(made.html.encode()),
                "left_out": [],  # always empty: it stays because the document is an interface
                "targets": _targets(made.reports),
            }
        )
    else:
        from tfrecreg.core.terminal.findings import print_page

        print_page(session.out, output, made.html, made.reports)
    if opens:
        import webbrowser

        webbrowser.open(Path(output).absolute().as_uri())
    return 3 if any(each.status == "error" for each in made.reports) else 0


def _default_page(targets: Sequence[str]) -> str:
    """The path of a page in the current folder, named after the target. An existing file is refused
    unless tfrecreg made the file.
    """
    name = Path(targets[0]).name if len(targets) == 1 else ""
    stem = re.sub(r"[^\w.@-]+", "-", name).strip("-.")
    path = Path(f"{stem or 'report'}.html")
    if os.path.lexists(path):
        with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            if "– tfrecreg</title>" in file.read(10_000):
                return str(path)
        raise UsageError(
            f"`{path}` exists, but tfrecreg did not make it: choose another `--output`"
        )
    return str(path)


def _targets(reports: Sequence[Report]) -> list[dict[str, object]]:
    return [
        {"target": each.target, "status": each.status, "findings": len(each.findings)}
        for each in reports
    ]


@session_command("site")
@click.argument("folder", metavar="DIR", shell_complete=complete.folders)
@jobs_option
def site_command(session: Session, folder: str, engine: Engine) -> int:
    """Write a static site of the registry.

    DIR must not exist or must be empty. The command writes an index, and a page for each build and
    release. Any web server can serve them. A build or release is checked only if its bytes are on
    this machine.

    The exit code is 0 even if checks have findings, and 3 if a check is incomplete.
    """
    from tfrecreg.builtin.pages.make import site

    session.warn_of_broken_plugins()
    made = site(folder, **session.context(engine))
    if session.as_json:
        session.print_json(
            {
                "folder": made.folder,
                "pages": made.pages,
                "bytes": made.bytes,
                "targets": _targets(made.reports),
            }
        )
    else:
        from tfrecreg.core.terminal.console import line

        for each in made.reports:
            found = count(len(each.findings), "finding")
            session.out.print(line(f"{each.target}: {each.status}, {found}"))
        where = safe(folder, limit=1000)
        session.out.print(
            line(f"wrote {where}, {count(made.pages, 'page')}, {si_bytes(made.bytes)}")
        )
    return 3 if any(each.status == "error" for each in made.reports) else 0
