"""`tfrecreg schema diff`."""

from __future__ import annotations

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, json_option


@click.command(name="diff")
@click.argument("expected", metavar="A", shell_complete=complete.targets)
@click.argument("found", metavar="B", shell_complete=complete.targets)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if they differ, as git diff does.")
@json_option
@click.pass_obj
def command(face: Face, expected: str, found: str, exit_code: bool) -> int:
    """Compare two schemas, feature by feature.

    A and B are a dataset (mnist), a release (mnist@1.0.0), or a file. The values of A are shown as
    expected, those of B as found. Comments, order and layout are ignored.
    """
    from tfrecreg.operations.schemas.compare import diff_schemas

    result = diff_schemas(expected, found, registry=face.registry)
    if face.as_json:
        face.print_json(result)
    else:
        from tfrecreg.cli.render.schemas import print_schema_diff

        print_schema_diff(face.out, result)
    return 1 if exit_code and result.changes else 0
