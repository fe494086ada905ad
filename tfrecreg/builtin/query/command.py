"""`tfrecreg query`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.workers.interface import Engine

FORMATS = ("table", "csv", "json", "jsonl", "parquet", "markdown")
_SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".md": "markdown",
}
_SQL = re.compile(r"(?:[\s(]|--.*\n|/\*(?s:.*?)\*/)*[A-Za-z]+[\s(*]", re.ASCII)


@session_command("query")
@click.argument(
    "targets", metavar="TARGET.. [SQL]", nargs=-1, required=True, shell_complete=complete.targets
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the answer. Default: that of FILE's suffix, or table; with --json: json.",
)
@click.option(
    "--output",
    metavar="FILE",
    shell_complete=complete.files,
    help="Write the answer to FILE instead of stdout.",
)
@click.option(
    "--report",
    metavar="FILE",
    shell_complete=complete.files,
    help="A check's JSON report, for the table findings.",
)
@jobs_option
def command(
    session: Session,
    targets: tuple[str, ...],
    form: str | None,
    output: str | None,
    report: str | None,
    engine: Engine,
) -> None:
    """Query records in SQL.

    TARGET is a reference (mnist, mnist@1.0.0, mnist@latest), or a path, URL, folder or glob of
    TFRecord files, which need no registry. SQL is one SELECT of DuckDB over the tables records,
    objects, splits, findings and ledger, and over previous, the records of the release before
    TARGET; the records of several targets are the tables a, b and so on. Without SQL, the tables
    are shown with their columns and questions to try.

    The first question makes a catalog of the records, which later questions read from the cache.
    """
    from tfrecreg.builtin.query.ask import ask
    from tfrecreg.builtin.query.printed import print_answer, print_tables

    named, sql = split_arguments(targets)
    if sql is not None and not sql.strip():
        raise UsageError("the question is empty", hint='"SELECT count(*) FROM records" is one')
    meant = _SUFFIXES.get(Path(output or "").suffix.lower()) if sql is not None else None
    form = form or ("json" if session.as_json else meant or "table")
    if output and meant not in (None, form):
        raise UsageError(
            f"`{safe(output)}` has the name of another format than `{form}`",
            hint=f"`--format {meant}`, or another name",
        )
    if session.as_json and form != "json":
        raise UsageError(
            f"`--format {form}` and `--json` exclude each other", hint="give one of them"
        )
    if form == "parquet" and output is None:
        raise UsageError(
            "a Parquet file is not for a terminal", hint="name it with `--output answer.parquet`"
        )
    if sql is None and form not in ("table", "json"):
        raise UsageError(
            f"`--format {form}` is for the answer to a question",
            hint='ask one: "SELECT count(*) FROM records"',
        )
    progress = session.progress()
    with ask(
        named,
        sql=sql or "",
        registry=session.registry,
        report=report,
        engine=engine,
        progress=progress,
    ) as questions:
        if sql is None:
            print_tables(session, questions, output, as_json=form == "json")
        else:
            print_answer(session, questions, sql, form, output)


def split_arguments(arguments: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """The targets, and the SQL: a last argument that begins with a word, goes on after it and names
    no file; or is empty, or begins with a comment.
    """
    *named, last = arguments
    if named and not last.strip():
        return tuple(named), last
    if named and _SQL.match(last) and not _exists(last):
        return tuple(named), last
    return arguments, None


def _exists(path: str) -> Any:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False
