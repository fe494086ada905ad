"""`tfrecreg head`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from rich.console import Console

    from tfrecreg.builtin.look.head import ShownRecord
    from tfrecreg.core.check.infer import PassedOver
    from tfrecreg.core.check.scan.interface import Target


@session_command("head")
@click.argument("target", shell_complete=complete.targets)
@options_of("files:Verbs.head", records={"flags": ("-n", "--records")}, shard="NAME")
@click.option(
    "--save",
    metavar="DIR",
    shell_complete=complete.folders,
    help="Write the images of these records to files in DIR.",
)
@click.option(
    "--open",
    "opens",
    is_flag=True,
    help="Open a page with the images of these records in the browser.",
)
def command(
    session: Session,
    target: str,
    save: str | None,
    opens: bool,
    **arguments: Any,
) -> int:
    """Show the first records.

    TARGET is a reference (mnist, mnist@1.0.0, mnist@latest), or a path, URL, folder or glob of
    TFRecord files, which need no registry. If damaged records are skipped, the exit code is 1.
    """
    from tfrecreg.builtin.look.head import Choice, head, save_images
    from tfrecreg.core.check.infer import passed_over
    from tfrecreg.core.registry.find import find_target

    choice = Choice(**arguments)
    damage: list[PassedOver] = []
    found = find_target(target, registry=session.registry)
    for note in found.notes if found.kind == "files" else ():
        session.progress().note(note)
    shown = head(found, choice, damage=damage, progress=session.progress())
    if save is not None:
        shown = save_images(shown, save)
    if session.as_json:
        listed = list(shown)  # this finds the damage
        asked = {} if choice.where is None else {"where": choice.where}
        session.print_json({"target": target, **asked, "records": listed, "damage": damage})
        return 1 if damage else 0

    places: list[tuple[str, int]] = []
    saved = 0
    for each in shown:
        print_record(session.out, each)
        if opens or not places:
            places.append((each.shard, each.record))
        saved += len(each.saved)
    if opens and places:
        _open(session, found, places)
    if save is not None and not saved:
        session.err.print("these records have no images: nothing was saved")
    if damage:
        raise passed_over(found.name, damage)
    if not places and choice.records != 0:
        lacks = "records" if choice.where is None else "record that meets the condition"
        session.err.print(f"{found.name} has no {lacks}")
    return 0


def _open(session: Session, target: Target, places: Sequence[tuple[str, int]]) -> None:
    """Write a page about these records to a temporary file, and open it in the browser."""
    import tempfile
    import webbrowser
    from pathlib import Path

    from tfrecreg.builtin.pages.make import show_records

    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="tfrecreg-", suffix=".html", delete=False
    ) as file:
        file.write(show_records(target, places))
    webbrowser.open(Path(file.name).as_uri())
    session.err.print(f"page: {file.name}")


_STYLES = {"place": "bold", "other": "yellow", "row": "cyan"}


def print_record(console: Console, record: ShownRecord) -> None:
    """Print a record with its location and one line per feature."""
    from tfrecreg.core.terminal.console import line

    for kind, label, rest in record.lines():
        hang = len(label) + 2 if kind == "row" else None
        console.print(line((label, _STYLES[kind]), rest, hang=hang))
    for path in record.saved:
        console.print(line(("  saved: ", "green"), safe(path, limit=1 << 16)))
