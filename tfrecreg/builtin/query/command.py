"""`tfrecreg query`: prints the answer to a question, or the tables of targets."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.output import write_pieces
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.builtin.query.ask import Questions
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
    help="Format of the answer. Default: json with --json, else by the suffix of FILE, else table.",
)
@click.option(
    "--output",
    metavar="FILE",
    shell_complete=complete.files,
    help="Write the answer to FILE instead of stdout.",
)
@options_of("files:Verbs.query", "sql")
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
    TFRecord files, which need no registry. SQL is one DuckDB SELECT. Its tables are records,
    objects, splits, findings and ledger. A further table, previous, has the records of the release
    before TARGET. If you give several targets, table a has the records of the first, b the records
    of the second, and so on. Without SQL, the command shows the tables, their columns, and
    questions to try.

    The first question makes a catalog of the records, which later questions read from the cache.
    """
    from tfrecreg.builtin.query.ask import ask

    named, sql = split_arguments(targets)
    if sql is not None and not sql.strip():
        raise UsageError("the question is empty")
    meant = _SUFFIXES.get(Path(output or "").suffix.lower()) if sql is not None else None
    form = form or ("json" if session.as_json else meant or "table")
    if output and meant not in (None, form):
        raise UsageError(f"the suffix of `{output}` does not match the format `{form}`")
    if session.as_json and form != "json":
        raise UsageError(f"`--format {form}` and `--json` exclude each other")
    if form == "parquet" and output is None:
        raise UsageError("a Parquet file needs a name: `--output answer.parquet`")
    if sql is None and form not in ("table", "json"):
        raise UsageError(f"`--format {form}` needs a question: add the SQL")
    context = session.context(engine)
    with ask(named, sql=sql or "", report=report, **context) as questions:
        if sql is None:
            print_tables(session, questions, output, as_json=form == "json")
        else:
            print_answer(session, questions, sql, form, output)


def split_arguments(arguments: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """The targets, and the SQL. The last argument is SQL if it is empty, or if it has text after
    its first word and is not the path of a file. Comments may precede the first word.
    """
    *named, last = arguments
    if named and not last.strip():
        return tuple(named), last
    if named and _SQL.match(last) and ("\0" in last or not os.path.lexists(last)):
        return tuple(named), last
    return arguments, None


def print_tables(
    session: Session, questions: Questions, output: str | None, *, as_json: bool
) -> None:
    """Print the tables with their columns, and questions to try."""
    from tfrecreg.builtin.query.ask import suggested
    from tfrecreg.core.terminal.console import PlainTable, line, stdout

    tables = questions.tables()
    tries = suggested(tables)
    if as_json:
        session.print_json(
            {
                "targets": [each.name for each in questions.targets],
                "tables": [
                    {
                        "name": each.name,
                        "target": each.target or None,
                        "columns": [{"name": name, "type": kind} for name, kind in each.columns],
                    }
                    for each in tables
                ],
                "questions": tries,
                "notes": list(questions.notes),
            },
            output,
        )
        return
    console = stdout(output)
    names = " ".join(safe(each.name, limit=1000) for each in questions.targets)
    with console.capture() as capture:
        for each in tables:
            of = f" of {each.target}" if each.target and len(questions.targets) > 1 else ""
            console.print(line((safe(each.name), "bold"), of))
            rows = PlainTable("column", "type", indent=2)
            for name, kind in each.columns:
                rows.add_row(safe(name, limit=200), kind)
            console.print(rows)
            console.print()
        console.print(line(("try", "bold")))
        for sql in tries:
            console.print(line(f'  tfrecreg query {names} "{sql}"'))
    _write(iter([capture.get().encode()]), output)
    _print_notes(session, questions.notes)


def print_answer(
    session: Session, questions: Questions, sql: str, form: str, output: str | None
) -> None:
    from tfrecreg.builtin.query import ask

    schema, batches = questions.connection.batches(sql)
    names = [str(name) for name in schema.names]
    notes = list(questions.notes_on(sql))

    rows: list[Any] = []
    if form in ("table", "markdown"):
        rows = [*islice(ask.answer_rows(batches), ask.SHOWN_ROWS + 1)]
        if len(rows) > ask.SHOWN_ROWS:
            rows.pop()
            notes.append(f"only the first {len(rows):,} rows are shown: `--format csv` writes all")
    if form == "table":
        pieces: Iterator[bytes] = iter([_table(output, schema, rows)])
    elif form == "csv":
        pieces = ask.as_csv(names, batches)
    elif form == "jsonl":
        pieces = ask.as_jsonl(names, batches)
    elif form == "markdown":
        pieces = ask.as_markdown(names, rows)
    elif form == "parquet":
        pieces = ask.as_parquet(schema, batches)
    else:
        head = {"targets": [each.name for each in questions.targets], "notes": notes}
        pieces = ask.as_json(names, [str(field.type) for field in schema], batches, head)
    _write(pieces, output)
    _print_notes(session, notes)


def _table(output: str | None, schema: Any, rows: Iterable[Any]) -> bytes:
    from tfrecreg.builtin.query.ask import cell
    from tfrecreg.core.terminal.console import PlainTable, stdout

    console = stdout(output)
    titles = [safe(str(name), limit=200) for name in schema.names]
    right = [
        title
        for title, field in zip(titles, schema, strict=True)
        if str(field.type).startswith(("int", "uint", "float", "double", "decimal"))
    ]
    table = PlainTable(*titles, right=right)
    for row in rows:
        table.add_row(*map(cell, row))
    with console.capture() as capture:
        console.print(table)
    return capture.get().encode()


def _print_notes(session: Session, notes: Iterable[str]) -> None:
    from tfrecreg.core.terminal.console import line

    for note in notes:
        session.err.print(line(("note: ", "bold"), note))


def _write(pieces: Iterable[bytes], output: str | None) -> None:
    """Write bytes to stdout, or to a file that appears only when it is complete."""
    if output is not None:
        write_pieces(output, pieces)
        return
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.flush()
