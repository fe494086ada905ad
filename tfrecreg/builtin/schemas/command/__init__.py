"""`tfrecreg schema`: each subcommand is a module here."""

from __future__ import annotations

import click

from tfrecreg.core.terminal.session import LazyGroup

_PLACES = {
    "infer": (
        "tfrecreg.builtin.schemas.command.infer:infer_command",
        "Draft a schema from records",
    ),
    "show": (
        "tfrecreg.builtin.schemas.command.show:show_command",
        "Show a schema as text, as a tf.io feature spec or as JSON",
    ),
    "diff": (
        "tfrecreg.builtin.schemas.command.diff:diff_command",
        "Compare two schemas, feature by feature",
    ),
    "check": (
        "tfrecreg.builtin.schemas.command.check:check_command",
        "Check that readers of one version parse records of another",
    ),
    "accept": (
        "tfrecreg.builtin.schemas.command.accept:accept_command",
        "Propose a schema change that accepts the data",
    ),
}


@click.group(
    name="schema",
    cls=LazyGroup,
    places=_PLACES,
    no_args_is_help=True,
)
def command() -> None:
    """Work with schemas.

    A schema declares the features of all records and the values they may have.
    """
