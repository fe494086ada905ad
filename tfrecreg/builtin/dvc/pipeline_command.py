"""`tfrecreg pipeline`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command

if TYPE_CHECKING:
    from tfrecreg.builtin.dvc.pipeline.run import PipelineResult


@session_command("pipeline")
@click.argument("names", nargs=-1, metavar="[NAME..]", shell_complete=complete.datasets)
@click.option("--check", "look", is_flag=True, help="Write nothing; exit with 1 if it is stale.")
@click.option(
    "--artifacts",
    "only_artifacts",
    is_flag=True,
    help="Write only the artifacts, for datasets built without a pipeline.",
)
def pipeline_command(
    session: Session, names: tuple[str, ...], look: bool, only_artifacts: bool
) -> int:
    """Write or update the stages of datasets in dvc.yaml.

    Each dataset has three stages: build, check and gate. Without a NAME, the stages of all
    configured datasets are written. Other stages are left unchanged. `dvc repro` runs the stages
    whose inputs changed.

    Each dataset also has an artifact of its name. With it and the tags of `tfrecreg tag`, `dvc
    artifacts get` fetches a release by its number in other repositories.
    """
    from tfrecreg.builtin.dvc.pipeline.run import pipeline

    registry = session.open()
    session.warn_of_broken_plugins()
    result = pipeline(registry, names, look=look, only_artifacts=only_artifacts)
    if not session.printed_json(result):
        _print_all(session, result, look, only_artifacts)
    return 1 if look and not result.current else 0


def _print_all(session: Session, result: PipelineResult, look: bool, only_artifacts: bool) -> None:
    from tfrecreg.builtin.dvc.printed import print_pipeline

    print_pipeline(session.out, result, look=look)
    if look:
        if not result.current:
            session.err.print(
                f"next:\n  tfrecreg pipeline{' --artifacts' if only_artifacts else ''}"
            )
        return
    if not result.is_dvc:
        session.err.print("this is not a DVC repository yet: tfrecreg init --dvc makes it one")
    session.commands(result.commands)
