"""`tfrecreg site`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.core.workers.interface import Engine


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
    from tfrecreg.builtin.pages.static_site import site

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
