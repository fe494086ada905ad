"""`tfrecreg push`, `pull`, `gc` and `pipeline`, and what they print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from rich.console import Console

if TYPE_CHECKING:
    from tfrecreg.builtin.dvc.garbage import Unneeded
    from tfrecreg.builtin.dvc.pipeline import Changes, PipelineResult
    from tfrecreg.builtin.dvc.transfer import PullResult, PushResult


@session_command("push")
@click.argument("references", nargs=-1, metavar="[REF..]", shell_complete=complete.references)
@click.option("-r", "--remote", metavar="NAME", help="DVC remote. Default: DVC's own default.")
@click.option(
    "--verify",
    is_flag=True,
    help="Also verify the bytes in the remote, by its checksums or by reading them.",
)
@click.option(
    "--repair", is_flag=True, help="Like --verify, and replace damaged objects in the remote."
)
def push_command(
    session: Session, references: tuple[str, ...], remote: str | None, verify: bool, repair: bool
) -> None:
    """Push the bytes of releases to a DVC remote.

    REF is a release (mnist@1.0.0), or a dataset for all its releases. Without one, every release
    in DVC is pushed. Objects that the remote has in the right size are not sent again. Missing
    objects come from DVC's cache, data/ or versions/, and are hashed before they are sent.
    """
    from tfrecreg.builtin.dvc.transfer import push

    result = push(
        session.open(),
        references,
        remote=remote,
        verify=verify,
        repair=repair,
        progress=session.progress(),
    )
    if session.printed_json(result):
        return

    print_push(session.out, result, verified=verify or repair)


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

    if not results:
        session.out.print("nothing to pull: DVC has no release, or only yanked ones")
    for result in results:
        print_pull(session.out, result)


@session_command("gc")
@click.option("--apply", is_flag=True, help="Remove the listed files. Default: only list them.")
@click.option(
    "-r",
    "--remote",
    metavar="NAME",
    help="Remote that must hold a release before its local copy may be removed.",
)
def gc_command(session: Session, apply: bool, remote: str | None) -> None:
    """List or remove files that are no longer needed.

    Lists files left by killed commands, catalogs of shards that nothing needs, copies of releases
    that the DVC remote also has, and builds in DVC's cache without a pointer or a release in any
    branch or tag. Objects that tfrecreg did not create stay.

    A copy of a release is removed only if the remote has all its objects, whose bytes --apply
    verifies first.
    """
    from tfrecreg.builtin.dvc.garbage import gc

    doomed = gc(session.open(), apply=apply, remote=remote, progress=session.progress())
    if session.printed_json({"removed": apply, "items": doomed}):
        return

    print_gc(session.out, doomed, applied=apply)


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
    from tfrecreg.builtin.dvc.pipeline import pipeline

    registry = session.open()
    session.warn_of_broken_plugins()
    result = pipeline(registry, names, look=look, only_artifacts=only_artifacts)
    if not session.printed_json(result):
        _print_all(session, result, look, only_artifacts)
    return 1 if look and not result.current else 0


def _print_all(session: Session, result: PipelineResult, look: bool, only_artifacts: bool) -> None:

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


def print_push(console: Console, result: PushResult, *, verified: bool = False) -> None:
    """The releases that the remote has now."""
    from tfrecreg.core.terminal.console import line

    sent = count(result.objects, "object") if result.objects else "nothing new"
    parts = [f"{sent} sent"]
    if result.replaced:
        parts.append(f"{result.replaced:,} of them replaced damaged ones")
    if verified:
        seen = result.verified
        read = f"{count(seen.read, 'object')} read ({si_bytes(seen.bytes)})"
        parts.append(f"{count(seen.checksums, 'checksum')} compared, {read}")
    console.print(line(f"the remote has {', '.join(result.releases)}: {', '.join(parts)}"))


def print_pull(console: Console, result: PullResult) -> None:
    """The folder with the bytes of a release."""
    from tfrecreg.core.terminal.console import line

    if result.files:
        what = f"{count(result.files, 'file')}, {si_bytes(result.bytes)}, all verified"
    else:
        what = "already here"
    console.print(line(f"{result.name} is in {result.folder}: {what}"))


def print_gc(console: Console, doomed: Sequence[Unneeded], *, applied: bool) -> None:
    """The objects that were removed or may be removed."""
    from tfrecreg.core.terminal.console import PlainTable, line

    if not doomed:
        console.print(line("nothing to remove"))
        return
    table = PlainTable("what", "size", "why", "path", right=("size",))
    for each in doomed:
        table.add_row(each.kind, si_bytes(each.bytes), each.why, safe(each.path, limit=1000))
    console.print(table)
    size = si_bytes(sum(each.bytes for each in doomed))
    things = count(len(doomed), "thing")
    told = "removed" if applied else "nothing was removed yet; `tfrecreg gc --apply` removes"
    console.print(line(f"{told} {things}, {size}"))


def print_pipeline(console: Console, result: PipelineResult, *, look: bool) -> None:
    """The changes of `dvc.yaml`."""
    from tfrecreg.core.terminal.console import line

    datasets = count(len(result.datasets), "dataset")
    if result.current:
        console.print(line(("dvc.yaml", "bold"), f" is up to date, with {datasets}"))
        _print_tracked(console, result)
        return
    state = "is out of date" if look else "was written"
    console.print(line(("dvc.yaml", "bold"), f" {state}, with {datasets}"))
    would = "to be " if look else ""
    for title, names in (
        *_titled(would, result.stages),
        *_titled(f"artifacts {would}", result.artifacts),
        ("missing" if look else "made", result.made),
    ):
        if names:
            console.print(line((f"  {title}: ", "cyan"), ", ".join(safe(each) for each in names)))
    _print_tracked(console, result)


def _print_tracked(console: Console, result: PipelineResult) -> None:
    from tfrecreg.core.terminal.console import line

    if result.tracked:
        title = "  no stages, tracked by data/NAME.dvc: "
        console.print(line((title, "cyan"), ", ".join(safe(each) for each in result.tracked)))


def _titled(before: str, changes: Changes) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        (f"{before}added", changes.added),
        (f"{before}updated", changes.updated),
        (f"{before}removed", changes.removed),
    )
