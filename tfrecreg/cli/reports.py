"""How `check` and `gate` hand out their reports: in any format, to stdout or to a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tfrecreg.cli.common import FORMAT_VERSION, Face

if TYPE_CHECKING:
    from tfrecreg.operations.check import Report

__all__ = ["choose_format", "exit_code", "format_options", "show", "write_text"]

F = TypeVar("F", bound=Callable[..., Any])

_FORMATS = ("text", "json", "junit", "sarif", "github", "markdown")
_PRECEDENCE = (3, 1, 0)
"""The worst of several reports decides, and an incomplete one is worse than a failed one."""


def format_options(function: F) -> F:
    """``--format`` and ``--output``. The command gets `form` and `output`."""
    decorate: Callable[[F], F] = click.option(
        "--format",
        "form",
        type=click.Choice(_FORMATS),
        help="json is as --json has it; junit and sarif are for CI and code scanning; github "
        "prints annotations and adds to the summary of the job; markdown is for a pull request.",
    )
    to: Callable[[F], F] = click.option(
        "--output", metavar="FILE", help="Write the report to FILE instead of stdout."
    )
    return decorate(to(function))


def exit_code(reports: Sequence[Report]) -> int:
    """Of the command that made them."""
    codes = {report.exit_code for report in reports}
    return next(code for code in _PRECEDENCE if code in codes)


def choose_format(face: Face, form: str | None) -> str:
    """What `--json` and `--format` say together.

    Raises:
        UsageError: two different things.
    """
    if face.as_json and form not in (None, "json"):
        from tfrecreg.errors import UsageError

        raise UsageError(
            f"`--json` and `--format {form}` exclude each other", hint="leave out `--json`"
        )
    return form or ("json" if face.as_json else "text")


def show(face: Face, reports: Sequence[Report], form: str, output: str | None) -> None:
    """Print the reports, or write them to a file.

    Raises:
        UsageError: a file that cannot be written.
    """
    if form == "json":
        _show_json(face, reports, output)
    elif form == "text":
        _show_text(face, reports, output)
    else:
        _show_document(face, reports, form, output)


def write_text(path: str, text: str, *, in_new_folder: bool = False) -> None:
    """Write a file that a person or another program asked for.

    Args:
        path: of the file.
        text: its content.
        in_new_folder: whether the folders above it are made where they are missing.

    Raises:
        UsageError: it cannot be written.
    """
    from tfrecreg.errors import UsageError
    from tfrecreg.text import safe

    try:
        if in_new_folder:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"`{safe(path)}` cannot be written: {error.strerror}",
            hint="name a file in a folder that is there and that you may write to",
        ) from None


def _show_json(face: Face, reports: Sequence[Report], output: str | None) -> None:
    document = _document(reports)
    if output is None:
        face.print_json(document)
        return
    import json

    document = {"format_version": FORMAT_VERSION, **document}
    write_text(output, json.dumps(document, indent=2, ensure_ascii=True) + "\n")


def _show_text(face: Face, reports: Sequence[Report], output: str | None) -> None:
    from tfrecreg.report.check import print_report

    console = face.out
    if output is None:
        for report in reports:
            print_report(console, report)
        return
    with console.capture() as capture:
        for report in reports:
            print_report(console, report)
    write_text(output, capture.get())


def _show_document(face: Face, reports: Sequence[Report], form: str, output: str | None) -> None:
    from tfrecreg.report.formats import FORMATS, write_summary

    prefix = _prefix(face, reports)
    text = FORMATS[form](reports, prefix)
    if output is not None:
        write_text(output, text)
    else:
        import sys

        # Each format escapes for itself: a console would wrap and colour.
        sys.stdout.write(text)
    if form == "github":
        write_summary(reports, prefix, os.environ)


def _prefix(face: Face, reports: Sequence[Report]) -> str:
    """The path that leads from here to the registry of the reports; empty where they need none."""
    if all(report.folder is None for report in reports):
        return ""
    return os.path.relpath(face.open().storage.root)


def _document(reports: Sequence[Report]) -> dict[str, Any]:
    if len(reports) == 1:
        return reports[0].to_json()
    status = max((report.status for report in reports), key=["pass", "fail", "error"].index)
    return {"status": status, "reports": [report.to_json() for report in reports]}
