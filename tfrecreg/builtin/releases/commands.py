"""The commands `tfrecreg release`, `tag`, `yank` and `audit`, and what they and `build` print."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.output import open_format
from tfrecreg.core.terminal.reports import (
    ReportCommand,
    choose_format,
    exit_code,
    format_options,
    show,
)
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from tfrecreg.builtin.releases.release import ReleaseResult
    from tfrecreg.builtin.releases.tag import TagResult
    from tfrecreg.core.build.conclude import BuildResult, Growth
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.workers.interface import Engine


@session_command("release")
@click.argument("name", shell_complete=complete.datasets)
@options_of(
    "making:Making.release",
    version="X.Y.Z|auto",
    bump={"default": None, "show_default": False},
    note={"metavar": "TEXT", "default": ""},
)
@jobs_option
def release_command(
    session: Session,
    name: str,
    version: str | None,
    bump: Literal["auto", "patch", "minor", "major"] | None,
    engine: Engine,
    **arguments: Any,
) -> None:
    """Freeze a build under a version number.

    The build is data/NAME. The gate must pass, and the number must not understate the change: PATCH
    for the same examples, MINOR if examples were only added, MAJOR for anything else. A release
    never changes.
    """
    from tfrecreg.builtin.releases.release import ReleaseRequest, release

    if version is not None and bump is not None:
        raise UsageError("`--version` and `--bump` exclude each other")
    request = ReleaseRequest(name=name, version=version, bump=bump or "auto", **arguments)
    registry = session.open()
    session.warn_of_broken_plugins()
    result = release(registry, request, engine=engine, progress=session.progress())
    if session.as_json:
        session.print_json(
            {
                "reference": f"{name}@{result.version}",
                "created": result.created,
                "change": result.change.level,
                "reasons": result.change.reasons,
                "content": result.manifest.content,
                "digest": result.manifest.digest,
                **accepted(result.report),
            }
        )
        return
    print_release(session, result)


def accepted(report: Report | None) -> dict[str, Any]:
    """A part of a JSON document: the findings that were reported although the gate passed."""
    document = report.to_json() if report is not None else {}
    return {key: document.get(key, []) for key in ("findings", "waived", "lowered")}


def print_release(session: Session, result: ReleaseResult) -> None:
    """Print the release, which may have existed before, and the commands to run next."""
    from tfrecreg.core.terminal.console import line
    from tfrecreg.core.terminal.findings import print_accepted

    name = f"{result.manifest.dataset}@{result.version}"
    if not result.created:
        session.out.print(f"{name} already exists with this content: nothing to do")
        return
    if result.report is not None:
        print_accepted(session.err, result.report)
    session.out.print(line((f"released {name}", "bold"), f" ({result.change.level})"))
    for reason in result.change.reasons:
        session.out.print(line(f"  {safe(reason)}"))
    session.commands(result.commands)


@session_command("tag")
@click.argument("reference", metavar="REF", shell_complete=complete.releases)
@options_of("upkeep:Publishing.tag", stage="S", commit="REV")
def tag_command(session: Session, reference: str, stage: str | None, commit: str | None) -> None:
    """Tag a release in git.

    REF is a release (mnist@1.2.0). The tags are in GTO's format: mnist@v1.2.0 for the version, and
    mnist#prod#1 for a stage. They point to a commit that holds the release and DVC's pointer to its
    bytes.
    """
    from tfrecreg.builtin.releases.tag import tag

    progress = session.progress()
    result = tag(session.open(), reference, stage=stage, commit=commit, progress=progress)
    if not session.printed_json(result):
        print_tags(session, result)


def print_tags(session: Session, result: TagResult) -> None:
    """Print each tag with its commit, and the commands that publish the tags."""
    from tfrecreg.core.terminal.console import line

    at = f" at commit {result.commit[:12]}"
    for each in result.made:
        session.out.print(line((f"tagged {safe(each)}", "bold"), at))
    for each in result.there:
        session.out.print(line(f"{safe(each)} exists", at))
    session.commands(result.commands)


@session_command("yank")
@click.argument("reference", metavar="REF", shell_complete=complete.releases)
@options_of("upkeep:Publishing.yank", reason="TEXT")
def yank_command(session: Session, reference: str, reason: str) -> None:
    """Mark a release as wrong, so that `latest` skips it.

    REF is a release (mnist@1.2.0). It stays available under its full version: `show` gives the
    reason, and `check` warns. If a GTO tag registers the version, the command adds a tag that
    deregisters the version.
    """
    from tfrecreg.builtin.releases.tag import yank
    from tfrecreg.core.terminal.console import line

    result = yank(session.open(), reference, reason, progress=session.progress())
    if session.printed_json(result):
        return

    word = "yanked" if result.yanked_now else "already yanked:"
    head = (f"{word} {result.reference}", "bold")
    session.out.print(line(head, f": {safe(result.yank.reason, limit=1000)}"))
    print_tags(session, result)


@session_command("audit", cls=ReportCommand)
@click.argument("targets", nargs=-1, metavar="[NAME..]", shell_complete=complete.datasets)
@options_of("upkeep:Keeping.audit", base="REV")
@format_options
def audit_command(
    session: Session,
    targets: tuple[str, ...],
    base: str | None,
    fail_on: str | None,
    form: str | None,
    output: str | None,
    saved: str | None,
) -> int:
    """Check the releases of datasets without reading their bytes.

    Checks manifests, version numbers, parents and git history, and whether today's schemas parse.
    NAME is a dataset. Without NAME, all datasets of the registry are checked.
    """
    from tfrecreg.builtin.releases.audit import audit_releases

    chosen = open_format(choose_format(session, form), session.plugins)
    session.warn_of_broken_plugins()
    report = audit_releases(session.open(), targets, base=base, fail_on=fail_on)
    show(session, [report], chosen, output, saved=saved)
    return exit_code([report])


def print_built(session: Session, result: BuildResult, released: ReleaseResult | None) -> None:
    """Print the new build, and its release if there is one."""
    from tfrecreg.core.terminal.catalog import print_manifest
    from tfrecreg.core.terminal.findings import print_accepted

    manifest = result.manifest
    if session.as_json:
        document: dict[str, Any] = {
            "dataset": manifest.dataset,
            "folder": result.folder,
            "content": manifest.content,
            "digest": manifest.digest,
            "splits": {split.name: split.records for split in manifest.splits},
            "shards": len(manifest.shards),
            "bytes": sum(shard.bytes for shard in manifest.shards),
            "resumed_shards": result.resumed,
            "unchanged": result.unchanged,
            "settings": result.settings.to_json(),
            "growth": growth_json(result.growth),
            **accepted(result.report),
            "parts": None,
            "release": None,
        }
        if released is not None:
            document["release"] = {
                "version": str(released.version),
                "created": released.created,
                **accepted(released.report),
            }
        session.print_json(document)
        return
    again = " again, the same as before" if result.unchanged else ""
    if result.resumed:
        kept = "shard" if result.resumed == 1 else "shards"
        session.err.print(
            f"reused {result.resumed} finished {kept} of an earlier run: --anew rebuilds every "
            "shard"
        )
    if result.growth is not None:
        print_growth(session.err, result.growth)
    if released is None or released.report is None:
        print_accepted(session.err, result.report)  # otherwise the gate prints them
    title = f"built {manifest.dataset}{again}, in {result.folder}"
    details = result.details
    print_manifest(session.out, title, result.folder, manifest, brief=True, details=details)
    if released is not None:
        print_release(session, released)


def print_growth(console: Console, growth: Growth, *, would: bool = False) -> None:
    """Print in one line which shards a build keeps, rewrites and adds."""
    from tfrecreg.core.terminal.console import line

    parts = [
        f"{count(number, 'shard')} {what} ({si_bytes(size)})"
        for number, what, size in (
            (growth.kept, "unchanged", growth.kept_bytes),
            (growth.rewritten, "rewritten", growth.rewritten_bytes),
            (growth.new, "new", growth.new_bytes),
        )
        if number
    ]
    sent = growth.written_bytes
    cost = "" if would or not sent else f"; a push sends {si_bytes(sent)} and the indexes"
    console.print(line(f"grown from {growth.base}: {', '.join(parts)}{cost}"))


def growth_json(growth: Growth | None) -> dict[str, Any] | None:
    """The release that a build grew from, for a JSON document."""
    return None if growth is None else {**asdict(growth), "written_bytes": growth.written_bytes}
