"""`tfrecreg report` and `tfrecreg site`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.output import write_text
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
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
@click.option(
    "--against",
    metavar="REF",
    shell_complete=complete.references,
    help="Also show the changes since this version.",
)
@click.option(
    "--statistics",
    is_flag=True,
    help="Also show statistics; if TFDV is installed, its anomalies, and with --against drift.",
)
@click.option(
    "--budget",
    metavar="SIZE",
    default="8MB",
    show_default=True,
    help="Size of the page. Images and records that do not fit are left out.",
)
@click.option(
    "--schema", metavar="FILE", shell_complete=complete.files, help="Check against this schema."
)
@jobs_option
def report_command(
    session: Session,
    targets: tuple[str, ...],
    output: str | None,
    opens: bool,
    against: str | None,
    statistics: bool,
    budget: str,
    schema: str | None,
    engine: Engine,
) -> int:
    """Write a page that shows a dataset.

    TARGET is a reference (mnist, mnist@1.0.0), or a path, URL, folder or glob of TFRecord files.
    Without one, the page shows every dataset of the registry. The page is one HTML file that opens
    anywhere and needs no network: verdict, findings, images, numbers and history.

    The exit code is 0 even if there are findings: `check` is the command that judges.
    """
    from tfrecreg.builtin.pages.make import report
    from tfrecreg.core.check.options import CheckOptions

    output = output or _default_page(targets)
    session.warn_of_broken_plugins()
    made = report(
        targets,
        registry=session.registry,
        options=CheckOptions(schema=schema),
        against=against,
        statistics=statistics,
        budget=_size(budget),
        engine=engine,
        progress=session.progress(),
    )
    write_text(output, made.html)
    if session.as_json:
        session.print_json(
            {
                "page": output,
                "bytes": len(made.html.encode()),
                "left_out": list(made.left_out),
                "targets": [
                    {"target": each.target, "status": each.status, "findings": len(each.findings)}
                    for each in made.reports
                ],
            }
        )
    else:
        from tfrecreg.core.terminal.findings import print_page

        print_page(session.out, output, made.html, made.reports, made.left_out)
    if opens:
        import webbrowser

        webbrowser.open(Path(output).absolute().as_uri())
    return 3 if any(each.status == "error" for each in made.reports) else 0


def _default_page(targets: Sequence[str]) -> str:
    """A file in the current folder, named after the target. Only an earlier page is replaced."""
    name = Path(targets[0]).name if len(targets) == 1 else ""
    stem = re.sub(r"[^\w.@-]+", "-", name).strip("-.")
    path = Path(f"{stem or 'report'}.html")
    if os.path.lexists(path):
        with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            if "– tfrecreg</title>" in file.read(10_000):
                return str(path)
        raise UsageError(
            f"`{safe(str(path))}` exists, and tfrecreg did not make it",
            hint="name the page: --output PAGE.html",
        )
    return str(path)


def _size(text: str) -> int:
    from tfrecreg.core.values.typed_values import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise UsageError(
            f"`--budget`: {error}, found `{safe(text)}`", hint="as in `--budget 20MB`"
        ) from None


@session_command("site")
@click.argument("folder", metavar="DIR", shell_complete=complete.folders)
@jobs_option
def site_command(session: Session, folder: str, engine: Engine) -> int:
    """Write a static site of the registry.

    DIR must not exist or must be empty. It gets an index, and a page for each build and each
    release, for any web server that serves files. Builds and releases whose bytes are on this
    machine are checked.

    The exit code is 0 even if checks have findings, and 3 if a check is incomplete.
    """
    from tfrecreg.builtin.pages.make import site

    session.warn_of_broken_plugins()
    made = site(folder, registry=session.registry, engine=engine, progress=session.progress())
    if session.as_json:
        session.print_json(
            {
                "folder": made.folder,
                "pages": made.pages,
                "bytes": made.bytes,
                "targets": [
                    {"target": each.target, "status": each.status, "findings": len(each.findings)}
                    for each in made.reports
                ],
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
