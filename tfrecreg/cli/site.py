"""`tfrecreg site`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, jobs_option, json_option

if TYPE_CHECKING:
    from tfrecreg.engines.interface import Engine


@click.command(name="site")
@click.argument("folder", metavar="DIR", shell_complete=complete.folders)
@jobs_option
@json_option
@click.pass_obj
def command(face: Face, folder: str, engine: Engine) -> int:
    """Write a static site of the registry.

    DIR must not exist or must be empty. It gets an index, and a page for each build and each
    release, for any web server that serves files. Builds and releases whose bytes are on this
    machine are checked.

    The exit code is 0 also if checks have findings; 3 if a check is incomplete.
    """
    from tfrecreg.pages.static_site import site
    from tfrecreg.text import safe, si_bytes

    face.warn_of_broken_plugins()
    made = site(folder, registry=face.registry, engine=engine, progress=face.progress())
    if face.as_json:
        face.print_json(
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
        from tfrecreg.cli.render.console import count, line

        for each in made.reports:
            found = count(len(each.findings), "finding")
            face.out.print(line(f"{each.target}: {each.status}, {found}"))
        where = safe(folder, limit=1000)
        face.out.print(line(f"wrote {where}, {count(made.pages, 'page')}, {si_bytes(made.bytes)}"))
    return 3 if any(each.status == "error" for each in made.reports) else 0
