"""`tfrecreg demo`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command

if TYPE_CHECKING:
    from tfrecreg.cli.demo.run import DemoStep
    from tfrecreg.core.check.reports.model import Report
    from tfrecreg.core.values.findings import Finding
    from tfrecreg.core.workers.interface import Engine


@session_command("demo")
@click.argument("folder", metavar="[DIR]", required=False, shell_complete=complete.folders)
@jobs_option
def command(session: Session, folder: str | None, engine: Engine) -> None:
    """Run the whole workflow on generated sample data.

    The digits are built, released and checked; then a copy of a shard is damaged, and the damage
    is found. DIR is an empty folder or a new one; without it, a temporary folder is made and kept.
    Nothing is downloaded.
    """
    from tfrecreg.cli.demo.run import demo_folder, run_demo

    session.warn_of_broken_plugins()
    path = demo_folder(folder)
    steps = []
    for step in run_demo(path, engine):
        steps.append(step)
        if not session.as_json:
            _print_step(session, step, str(path))
    if session.as_json:
        shown = [{"title": step.title, "command": step.command} for step in steps]
        session.print_json({"folder": str(path), "steps": shown})
        return
    _print_next(session, str(path))


def _print_step(session: Session, step: DemoStep, folder: str) -> None:
    from tfrecreg.builtin.releases.release import ReleaseResult
    from tfrecreg.builtin.releases.release_command import print_release
    from tfrecreg.core.build.conclude import BuildResult
    from tfrecreg.core.check.reports.model import Report
    from tfrecreg.core.registry.init import InitResult
    from tfrecreg.core.terminal.console import line
    from tfrecreg.core.terminal.render.catalog import print_manifest
    from tfrecreg.core.terminal.render.findings import print_report

    session.out.print(line(("# ", "dim"), (step.title, "bold")))
    if step.command:
        session.out.print(line(("$ ", "dim"), (_from(folder, step.command), "bold green")))
    if isinstance(step.result, InitResult):
        session.out.print(line(("$ ", "dim"), (f"cd {folder}", "bold green")))
    elif isinstance(step.result, BuildResult):
        manifest = step.result.manifest
        title = f"built {manifest.dataset}, in {step.result.folder}"
        print_manifest(session.out, title, step.result.folder, manifest, brief=True)
    elif isinstance(step.result, ReleaseResult):
        print_release(session, step.result)
    elif isinstance(step.result, Report):
        print_report(session.out, _seen_from(folder, step.result))
    session.out.print("")


def _from(folder: str, text: str) -> str:
    """Paths as typed inside the folder."""
    return text.replace(f"{folder}/", "")


def _seen_from(folder: str, report: Report) -> Report:
    """The report as printed when the command runs in the folder."""
    from dataclasses import replace

    def seen(finding: Finding) -> Finding:
        places = (
            replace(each, shard=_from(folder, each.shard or "")) for each in finding.locations
        )
        return replace(finding, locations=tuple(places))

    findings = tuple(seen(finding) for finding in report.findings)
    return replace(report, target=_from(folder, report.target), findings=findings)


def _print_next(session: Session, folder: str) -> None:
    from tfrecreg.core.terminal.console import line

    session.out.print(line(("What to try next", "bold")))
    name = _own_name()
    for text in (
        f"cd {folder}",
        f"{name} head digits@1.0.0 -n 1          # show a record",
        f"{name} schema show digits --format tf  # how TensorFlow parses it",
        f"{name} explain CRC002                  # explain that finding",
        f"{name} check YOUR/FILES/*.tfrecord     # your own files; needs no registry",
    ):
        session.out.print(line("  ", (text, "green")))


def _own_name() -> str:
    """The command name for a shell: its path if PATH does not contain it."""
    script = Path(sys.argv[0]).absolute()
    if shutil.which("tfrecreg") is None and script.name == "tfrecreg" and script.is_file():
        return str(script)
    return "tfrecreg"
