"""`tfrecreg schema diff`."""

from __future__ import annotations

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command


@session_command("diff")
@click.argument("expected", metavar="A", shell_complete=complete.targets)
@click.argument("found", metavar="B", shell_complete=complete.targets)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if they differ, as git diff does.")
def diff_command(session: Session, expected: str, found: str, exit_code: bool) -> int:
    """Compare two schemas, feature by feature.

    A and B are a dataset (mnist), a release (mnist@1.0.0), or a file. The values of A are shown as
    expected, those of B as found. Comments, order and layout are ignored.
    """
    from tfrecreg.builtin.schemas.compare import diff_schemas

    result = diff_schemas(expected, found, registry=session.registry)
    if not session.printed_json(result):
        from tfrecreg.builtin.schemas.printed import print_schema_diff

        print_schema_diff(session.out, result)
    return 1 if exit_code and result.changes else 0
