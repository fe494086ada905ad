"""`tfrecreg schema`: each subcommand is a module here."""

from __future__ import annotations

import click

from tfrecreg.core.terminal.session import LazyGroup

_LINES = {
    "infer": "Draft a schema from records",
    "show": "Show a schema as text, as a tf.io feature spec or as JSON",
    "diff": "Compare two schemas, feature by feature",
    "check": "Check that readers of one version parse records of another",
    "accept": "Propose a schema change that accepts the data",
}


@click.group(
    name="schema",
    cls=LazyGroup,
    package="tfrecreg.builtin.schemas.command",
    lines=_LINES,
    no_args_is_help=True,
)
def command() -> None:
    """Work with schemas.

    A schema declares the features of all records and the values they may have.
    """
