"""`tfrecreg parts plan`."""

from __future__ import annotations

from typing import Any

import click

from tfrecreg.commands import complete
from tfrecreg.commands.build_settings import settings_options
from tfrecreg.commands.session import Session, session_command


@session_command("plan")
@click.argument("name", shell_complete=complete.datasets)
@click.argument("folder", metavar="DIR", shell_complete=complete.folders)
@settings_options
def command(session: Session, name: str, folder: str, settings: dict[str, Any]) -> None:
    """List the items of a build and write its plan.

    DIR is a new folder or its URL. The settings are those of `tfrecreg build NAME`, and the
    registry stays as it is.
    """
    from tfrecreg.operations.builds.parts.prepare_plan import plan_to
    from tfrecreg.operations.builds.settings import BuildRequest

    registry = session.open()
    session.warn_of_broken_plugins(settings["source"])
    request = BuildRequest(name=name, **settings)
    written = plan_to(registry, request, folder, progress=session.progress())
    if session.as_json:
        session.print_json(written)
        return
    from tfrecreg.text import count, safe

    where = safe(written.folder, limit=1000)
    items = count(sum(written.items.values()), "item")
    shards = count(written.shards, "shard")
    session.out.print(f"planned {written.dataset}: {items} in {shards}, in {where}")
    session.out.print(f"plan    {written.plan}")
    session.err.print("next:")
    session.err.print(f"  tfrecreg parts build {where} --part I/N  # on any machine, I from 1 to N")
    session.err.print(f"  tfrecreg parts publish {where}")
