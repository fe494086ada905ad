"""`tfrecreg push`, `pull`, `gc` and `pipeline`, and their output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from tfrecreg.builtin.dvc.pipeline import PipelineResult


@session_command("push")
@click.argument("references", nargs=-1, metavar="[REF..]", shell_complete=complete.references)
@options_of("upkeep:Publishing.push")
def push_command(
    session: Session, references: tuple[str, ...], remote: str | None, verify: bool, repair: bool
) -> None:
    """Push the bytes of releases to a DVC remote.

    REF is a release (mnist@1.0.0) or a dataset (mnist). A dataset stands for all its releases.
    Without a REF, every release in DVC is pushed. Objects that the remote already has with the
    right size are not sent again. Missing objects are taken from DVC's cache, from data/ or from
    versions/. Each object is hashed before it is sent.
    """
    from tfrecreg.builtin.dvc.transfer import push
    from tfrecreg.core.terminal.console import line

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
    sent = count(result.objects, "object") if result.objects else "nothing new"
    parts = [f"{sent} sent"]
    if result.replaced:
        parts.append(f"{result.replaced:,} of them replaced damaged ones")
    if verify or repair:
        seen = result.verified
        read = f"{count(seen.read, 'object')} read ({si_bytes(seen.bytes)})"
        parts.append(f"{count(seen.checksums, 'checksum')} compared, {read}")
    session.out.print(line(f"the remote has {', '.join(result.releases)}: {', '.join(parts)}"))


@session_command("pull")
@click.argument("references", nargs=-1, metavar="[REF..]", shell_complete=complete.references)
@options_of("upkeep:Publishing.pull")
def pull_command(session: Session, references: tuple[str, ...], remote: str | None) -> None:
    """Fetch the bytes of releases to this machine.

    REF is a release (mnist@1.0.0) or a dataset (mnist). A dataset stands for its latest release.
    The bytes go to versions/NAME/VERSION, unless they are already present. Each file is hashed and
    compared with the release, whether it comes from DVC's cache or from the remote. Damaged objects
    in DVC's cache are fetched again.

    Without a REF, fetches the latest release of each dataset. Also fetches each build that data/
    lacks, if DVC's pointer or `dvc.lock` names the hash of a release.
    """
    from tfrecreg.builtin.dvc.transfer import pull, pull_needed
    from tfrecreg.core.terminal.console import line

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
        what = "already here"
        if result.files:
            what = f"{count(result.files, 'file')}, {si_bytes(result.bytes)}, all verified"
        session.out.print(line(f"{result.name} is in {result.folder}: {what}"))


@session_command("gc")
@options_of("upkeep:Keeping.gc")
def gc_command(session: Session, apply: bool, remote: str | None) -> None:
    """List or remove files that are no longer needed.

    Lists files that killed commands left behind, unused indexes and catalogs of shards, and copies
    of releases that the DVC remote also has. Builds in DVC's cache are listed unless a pointer or a
    release in any branch or tag names them. Objects that tfrecreg did not create are kept.

    A copy of a release is removed only if the remote has all its objects. --apply verifies their
    bytes before it removes the copy.
    """
    from tfrecreg.builtin.dvc.garbage import gc
    from tfrecreg.core.terminal.console import PlainTable, line

    doomed = gc(session.open(), apply=apply, remote=remote, progress=session.progress())
    if session.printed_json({"removed": apply, "items": doomed}):
        return
    if not doomed:
        session.out.print("nothing to remove")
        return
    table = PlainTable("what", "size", "why", "path", right=("size",))
    for each in doomed:
        table.add_row(each.kind, si_bytes(each.bytes), each.why, safe(each.path, limit=1000))
    session.out.print(table)
    size, things = si_bytes(sum(each.bytes for each in doomed)), count(len(doomed), "thing")
    told = "removed" if apply else "nothing was removed yet: `tfrecreg gc --apply` removes"
    session.out.print(line(f"{told} {things}, {size}"))


@session_command("pipeline")
@click.argument("names", nargs=-1, metavar="[NAME..]", shell_complete=complete.datasets)
@options_of(
    "upkeep:Keeping.pipeline", check={"help": "Write nothing; exit with 1 if `dvc.yaml` is stale."}
)
def pipeline_command(session: Session, names: tuple[str, ...], check: bool, artifacts: bool) -> int:
    """Write or update the stages of datasets in dvc.yaml.

    Each dataset has the stages `build`, `check` and `gate`. If the configuration of a dataset has
    `page = true`, the dataset also has a stage `page`. Without a NAME, the stages of all configured
    datasets are written. Other stages are left unchanged. `dvc repro` runs the stages whose inputs
    changed.

    Each dataset also has an artifact with its name. This artifact and the tags of `tfrecreg tag`
    let other repositories fetch a release by number, with `dvc artifacts get`.
    """
    from tfrecreg.builtin.dvc.pipeline import pipeline

    registry = session.open()
    session.warn_of_broken_plugins()
    result = pipeline(registry, names, look=check, only_artifacts=artifacts)
    if not session.printed_json(result):
        print_pipeline(session.out, result, look=check)
        if not check:
            if not result.is_dvc:
                session.err.print(
                    "this is not a DVC repository yet: tfrecreg init --dvc makes it one"
                )
            session.commands(result.commands)
        elif not result.current:
            session.commands((f"tfrecreg pipeline{' --artifacts' if artifacts else ''}",))
    return 1 if check and not result.current else 0


def print_pipeline(console: Console, result: PipelineResult, *, look: bool) -> None:
    """Print the changes to `dvc.yaml`."""
    from tfrecreg.core.terminal.console import line

    state = "is up to date" if result.current else "is out of date" if look else "was written"
    datasets = count(len(result.datasets), "dataset")
    console.print(line(("dvc.yaml", "bold"), f" {state}, with {datasets}"))
    would = "to be " if look else ""
    listed = [
        (f"{what}{would}{verb}", names)
        for what, changes in (("", result.stages), ("artifacts ", result.artifacts))
        for verb, names in (
            ("added", changes.added),
            ("updated", changes.updated),
            ("removed", changes.removed),
        )
    ]
    listed.append(("missing" if look else "made", result.made))
    listed.append(("no stages, tracked by data/NAME.dvc", result.tracked))
    for title, names in listed:
        if names:
            console.print(line((f"  {title}: ", "cyan"), ", ".join(safe(each) for each in names)))
