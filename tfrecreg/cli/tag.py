"""`tfrecreg tag`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, json_option

if TYPE_CHECKING:
    from tfrecreg.operations.tag import TagResult


@click.command(name="tag")
@click.argument("reference", metavar="REF", shell_complete=complete.releases)
@click.option("--stage", metavar="S", help="Assign the release to this stage, such as prod.")
@click.option("--yank", metavar="REASON", help="Yank the release: `latest` skips it from then on.")
@click.option(
    "--commit",
    metavar="REV",
    help="The commit to tag. Default: the first one that holds the release and its bytes.",
)
@json_option
@click.pass_obj
def command(
    face: Face, reference: str, stage: str | None, yank: str | None, commit: str | None
) -> None:
    """Tag a release in git, or yank it.

    REF is a release (mnist@1.2.0). The tags are in GTO's format: mnist@v1.2.0 for the version, and
    mnist#prod#1 for a stage. They point to a commit that holds the release and DVC's pointer to its
    bytes.
    """
    from tfrecreg.operations.tag import TagRequest, tag

    request = TagRequest(reference=reference, stage=stage, yank=yank, commit=commit)
    result = tag(face.open(), request, progress=face.progress())
    if face.as_json:
        face.print_json(result)
        return
    _print(face, result)


def _print(face: Face, result: TagResult) -> None:
    from tfrecreg.cli.render.console import line
    from tfrecreg.text import safe

    if result.yank is not None:
        word = "yanked" if result.yanked_now else "already yanked:"
        head = (f"{word} {result.reference}", "bold")
        face.out.print(line(head, f": {safe(result.yank.reason, limit=1000)}"))
    at = f" at commit {result.commit[:12]}"
    for each in result.made:
        face.out.print(line((f"tagged {safe(each)}", "bold"), at))
    for each in result.there:
        face.out.print(line(f"{safe(each)} exists", at))
    face.commands(result.commands)
