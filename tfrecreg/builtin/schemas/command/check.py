"""`tfrecreg schema check`."""

from __future__ import annotations

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.config import FailOn

_MODES = ("backward", "forward", "full")


@session_command("check")
@click.argument("schema", shell_complete=complete.targets)
@click.option(
    "--mode",
    type=click.Choice([*_MODES, *(f"{mode}-transitive" for mode in _MODES)]),
    default="full",
    show_default=True,
    help="backward: today's reader, yesterday's records. forward: yesterday's reader, today's "
    "records. full: both. -transitive: against every release, not only the latest.",
)
@click.option(
    "--against",
    multiple=True,
    metavar="REF|FILE",
    shell_complete=complete.targets,
    help="Compare with this schema instead of releases. Repeatable.",
)
@click.option("--environment", metavar="E", help="Compare the schemas in this environment.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "never"]),
    default="error",
    show_default=True,
    help="Exit with 1 on findings of this severity or higher.",
)
def check_command(
    session: Session,
    schema: str,
    mode: str,
    against: tuple[str, ...],
    environment: str | None,
    fail_on: str,
) -> int:
    """Check that readers of one version parse records of another.

    SCHEMA is today's schema: a dataset (mnist), a release (mnist@1.0.0), or a file. Yesterday's is
    the schema of the latest release. A reader parses with the specification that `schema show
    --format tf` prints.
    """
    from tfrecreg.builtin.schemas.compare import CompatibilityOptions, check_compatibility
    from tfrecreg.core.schema.compat import parse_mode

    way, transitive = parse_mode(mode)
    options = CompatibilityOptions(
        mode=way,
        transitive=transitive,
        against=against,
        environment=environment,
        fail_on=FailOn(fail_on),
    )
    report = check_compatibility(schema, registry=session.registry, options=options)
    if not session.printed_json(report):
        from tfrecreg.builtin.schemas.printed import print_compatibility

        print_compatibility(session.out, report)
    return report.exit_code
