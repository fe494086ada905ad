"""`tfrecreg view`: a local web application that shows every record of a dataset."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of

if TYPE_CHECKING:
    from tfrecreg.core.workers.interface import Engine


@session_command("view")
@click.argument("targets", nargs=-1, metavar="[TARGET..]", shell_complete=complete.targets)
@options_of("files:Verbs.view", port={"type": click.IntRange(0, 65535), "default": 0})
@click.option("--no-open", is_flag=True, help="Print the address without opening a browser.")
@jobs_option
def command(
    session: Session,
    targets: tuple[str, ...],
    no_open: bool,
    engine: Engine,
    **arguments: Any,
) -> None:
    """See every record in the browser.

    TARGET is a reference (mnist, mnist@1.0.0), or a path, URL, folder or glob of TFRecord files.
    TFRecord files need no registry. Two targets can be compared. Without a TARGET, the viewer lists
    the datasets of the registry.

    The viewer is a server that only this machine can reach, and its address contains a token. It
    changes no dataset. Ctrl-C ends it.
    """
    from tfrecreg.builtin.view.run import open_server

    session.warn_of_broken_plugins()
    server = open_server(targets, registry=session.registry, engine=engine, **arguments)

    def ready() -> None:
        if not session.printed_json({"url": server.url}):
            print(server.url)  # noqa: T201 - a console would wrap it
        sys.stdout.flush()
        if not no_open:
            import webbrowser

            # A browser in the terminal runs until the user leaves it.
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()

    server.run(ready)
