"""`tfrecreg diff`."""

from __future__ import annotations

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, json_option


@click.command(name="diff")
@click.argument("before", metavar="A", shell_complete=complete.references)
@click.argument("after", metavar="B", shell_complete=complete.references)
@click.option(
    "--records", is_flag=True, help="List every example that differs, not only the first."
)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if they differ, as git diff does.")
@json_option
@click.pass_obj
def command(face: Face, before: str, after: str, records: bool, exit_code: bool) -> int:
    """Compare two builds or releases, example by example.

    A and B are references: mnist for the build, mnist@1.0.0 for a release. Examples are matched
    through the indexes. Changed features and labels are read from the records, if the bytes of both
    are on this machine. The last lines give the smallest version number for the change from A to B,
    and the reason.
    """
    from tfrecreg.operations.diff import diff

    result = diff(before, after, registry=face.registry, progress=face.progress())
    if face.as_json and records:
        from tfrecreg.cli.render.console import print_json_list

        document = {"format_version": 1, **result.to_json()}
        print_json_list(document, "records", (each.to_json() for each in result.records()))
    elif face.as_json:
        face.print_json(result.to_json())
    else:
        from tfrecreg.cli.render.diff import print_diff

        print_diff(face.out, result, records=records)
    return 1 if exit_code and not result.same else 0
