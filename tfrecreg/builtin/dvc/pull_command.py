"""`tfrecreg pull`."""

from __future__ import annotations

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command


@session_command("pull")
@click.argument("references", nargs=-1, metavar="[REF..]", shell_complete=complete.references)
@click.option("-r", "--remote", metavar="NAME", help="DVC remote. Default: DVC's own default.")
def pull_command(session: Session, references: tuple[str, ...], remote: str | None) -> None:
    """Fetch the bytes of releases to this machine.

    REF is a release (mnist@1.0.0), or a dataset for its latest release. The bytes go to
    versions/NAME/VERSION, unless they are already present. Each file is hashed and compared with
    the release, whether it comes from DVC's cache or from the remote. Damaged
    objects in DVC's cache are fetched again.

    Without a REF, fetches the latest release of each dataset, and each build that is missing in
    data/ if DVC's pointer to it names a release.
    """
    from tfrecreg.builtin.dvc.transfer import pull, pull_needed

    registry, progress = session.open(), session.progress()
    if references:
        results = [pull(registry, each, remote=remote, progress=progress) for each in references]
    else:
        results = pull_needed(registry, remote=remote, progress=progress)
    if session.printed_json({"releases": results}):
        return
    from tfrecreg.builtin.dvc.printed import print_pull

    if not results:
        session.out.print("nothing to pull: DVC has no release, or only yanked ones")
    for result in results:
        print_pull(session.out, result)
