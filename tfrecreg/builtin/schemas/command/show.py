"""`tfrecreg schema show`."""

from __future__ import annotations

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command


@session_command("show")
@click.argument("schema", shell_complete=complete.targets)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "tf", "json"]),
    default="text",
    help="text: the schema's text. tf: Python for tf.io.parse_example. json: feature by feature.",
)
def show_command(session: Session, schema: str, form: str) -> None:
    """Show a schema as text, as a tf.io feature spec or as JSON.

    SCHEMA is a dataset (mnist), a release (mnist@1.0.0), or a file.
    """
    from tfrecreg.core.registry.find_schema import find_schema
    from tfrecreg.core.schema.compiled import schema_json, tf_source
    from tfrecreg.core.schema.proto import parse_schema

    text, where = find_schema(schema, registry=session.registry)
    parsed = parse_schema(text, where)
    if session.as_json or form == "json":
        session.print_json({"schema": where, **schema_json(parsed)})
    else:
        click.echo((tf_source(parsed) if form == "tf" else text).rstrip("\n"))
