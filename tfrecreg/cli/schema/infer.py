"""`tfrecreg schema infer`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfrecreg.cli.common import Face, jobs_option, json_option

if TYPE_CHECKING:
    from tfrecreg.engines import Engine


@click.command(name="infer")
@click.argument("target")
@click.option("--output", metavar="FILE", help="Write the draft to FILE, which must not exist.")
@jobs_option
@json_option
@click.pass_obj
def command(face: Face, target: str, output: str | None, engine: Engine) -> None:
    """Draft a schema from records.

    TARGET is a reference, or a path, folder or glob of TFRecord files. A schema that was inferred
    from data accepts those very data: read the draft before you rely on it.
    """
    from tfrecreg.errors import UsageError
    from tfrecreg.operations.check import find_target
    from tfrecreg.operations.schemas import infer_schema
    from tfrecreg.text import safe

    if output is not None and Path(output).exists():
        raise UsageError(f"`{safe(output)}` exists", hint="compare it with the draft on stdout")
    found = find_target(target, registry=face.registry)
    draft = infer_schema(found, engine, face.progress())
    if output is not None:
        try:
            Path(output).write_text(draft, encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"`{safe(output)}` cannot be written: {error.strerror}",
                hint="make its folder, or leave out --output: the draft then goes to stdout",
            ) from None
        face.err.print(f"wrote {safe(output)}: review it, it accepts whatever is in the data")
        return
    if face.as_json:
        face.print_json({"target": found.name, "schema": draft})
    else:
        click.echo(draft.rstrip("\n"))
