"""`tfrecreg pipeline`."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, json_option

if TYPE_CHECKING:
    from tfrecreg.operations.pipeline import PipelineResult

__all__ = ["command"]


@click.command(name="pipeline")
@click.argument("names", nargs=-1, metavar="[NAME..]", shell_complete=complete.datasets)
@click.option("--check", "look", is_flag=True, help="Write nothing; exit 1 if it is out of date.")
@click.option(
    "--artifacts",
    "only_artifacts",
    is_flag=True,
    help="Write the artifacts alone, for datasets that are built without a pipeline.",
)
@click.option(
    "--policy",
    shell_complete=complete.files,
    metavar="FILE",
    help="Write what the stages of NAME depend on in tfrecreg.toml to FILE: a stage runs this.",
)
@click.option(
    "--until",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="With --policy: the day on which a waiver of NAME expires next, as dvc.yaml has it.",
)
@json_option
@click.pass_obj
def command(
    face: Face,
    names: tuple[str, ...],
    look: bool,
    only_artifacts: bool,
    policy: str | None,
    until: datetime.datetime | None,
) -> int:
    """Write the stages of datasets into dvc.yaml, or bring them up to date.

    Without a NAME, all datasets of tfrecreg.toml have their stages: policy, build, check and gate.
    Stages that others wrote are left alone. `dvc repro` runs what has changed.

    Each dataset has an artifact of its name as well: with it and the tags that `tfrecreg tag`
    makes, `dvc artifacts get` in another repository gets a release by its number.
    """
    from tfrecreg.operations.pipeline import pipeline

    if policy is not None:
        _write_policy(face, names, policy, until.date() if until is not None else None)
        return 0
    registry = face.open()
    face.warn_of_broken_plugins()
    result = pipeline(registry, names, look=look, only_artifacts=only_artifacts)
    if face.as_json:
        face.print_json(result.to_json())
    else:
        _print(face, result, look, only_artifacts)
    return 1 if look and not result.current else 0


def _write_policy(
    face: Face, names: tuple[str, ...], path: str, until: datetime.date | None
) -> None:
    from tfrecreg.errors import UsageError
    from tfrecreg.operations.pipeline import next_expiry, write_policy

    if len(names) != 1:
        raise UsageError(
            f"`--policy` is for one dataset, found {len(names)}",
            hint="tfrecreg pipeline NAME --policy FILE",
        )
    registry = face.open()
    face.warn_of_broken_plugins()
    document = write_policy(registry, names[0], path, until=until)
    if next_expiry(registry.config, names[0]) != until:
        face.err.print(f"dvc.yaml has another expiry of a waiver: tfrecreg pipeline {names[0]}")
    if face.as_json:
        face.print_json(document)


def _print(face: Face, result: PipelineResult, look: bool, only_artifacts: bool) -> None:
    from tfrecreg.cli.render.outcomes import print_pipeline

    print_pipeline(face.out, result, look=look)
    if look:
        if not result.current:
            face.err.print(f"next:\n  tfrecreg pipeline{' --artifacts' if only_artifacts else ''}")
        return
    if not result.is_dvc:
        face.err.print("this is no DVC repository yet: tfrecreg init makes it one")
    face.commands(result.commands)
