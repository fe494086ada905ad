"""Answers and tables on stdout, or in a file."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfrecreg.builtin.query import answers
from tfrecreg.builtin.query.ask import Questions
from tfrecreg.builtin.query.suggestions import suggested
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.terminal.console import PlainTable, line
from tfrecreg.core.terminal.output import cannot_write, write_text
from tfrecreg.core.values.errors import StorageError
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.terminal.session import Session

_NUMBERS = ("BIGINT", "DOUBLE", "FLOAT", "INTEGER", "HUGEINT", "DECIMAL", "int", "float", "double")


def print_tables(
    session: Session, questions: Questions, output: str | None, *, as_json: bool
) -> None:
    """The tables with their columns, and questions to try."""
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
    console = session.out
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
    """The answer to a question in one of the formats."""
    schema, batches = questions.connection.batches(sql)
    names = [str(name) for name in schema.names]
    notes = list(questions.notes_on(sql))

    def beyond() -> None:
        notes.append(
            f"only the first {answers.SHOWN_ROWS:,} rows are shown: `--format csv` writes all"
        )

    if form == "table":
        pieces: Iterator[bytes] = iter([_table(session, schema, batches, beyond)])
    elif form == "csv":
        pieces = answers.as_csv(names, batches)
    elif form == "jsonl":
        pieces = answers.as_jsonl(names, batches)
    elif form == "markdown":
        pieces = answers.as_markdown(names, batches, beyond)
    elif form == "parquet":
        pieces = answers.as_parquet(schema, batches)
    else:
        head = {"targets": [each.name for each in questions.targets], "notes": notes}
        pieces = answers.as_json(names, [str(field.type) for field in schema], batches, head)
    _write(pieces, output)
    _print_notes(session, notes)


def _table(session: Session, schema: Any, batches: Iterable[Any], beyond: Any) -> bytes:
    console = session.out
    titles = [safe(str(name), limit=200) for name in schema.names]
    right = [
        title
        for title, field in zip(titles, schema, strict=True)
        if str(field.type).startswith(("int", "uint", "float", "double", "decimal"))
    ]
    table = PlainTable(*titles, right=right)
    for row in answers.some(answers.answer_rows(batches), beyond):
        table.add_row(*map(answers.cell, row))
    with console.capture() as capture:
        console.print(table)
    return capture.get().encode()


def _print_notes(session: Session, notes: Iterable[str]) -> None:
    for note in notes:
        session.err.print(line(("note: ", "bold"), note))


def _write(pieces: Iterable[bytes], output: str | None) -> None:
    """Write bytes to stdout, or to a file that appears when all are in it."""
    if output is None:
        out = sys.stdout.buffer if hasattr(sys.stdout, "buffer") else None
        sys.stdout.flush()
        for piece in pieces:
            if out is None:
                sys.stdout.write(piece.decode("utf-8", "surrogatepass"))
            else:
                out.write(piece)
        sys.stdout.flush()
        return
    if _is_stream(output):
        try:
            with Path(output).open("wb") as stream:
                for piece in pieces:
                    stream.write(piece)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(output, error.strerror or str(error)) from None
        return
    folder, name = os.path.split(os.path.realpath(output))
    if not Path(folder).is_dir():
        write_text(output, "")  # says why it cannot be written
    try:
        with LocalStorage(folder).create(name) as writer:
            for piece in pieces:
                writer.write(piece)
    except StorageError as error:
        raise cannot_write(output, error.message.rpartition(": ")[2]) from None


def _is_stream(path: str) -> bool:
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
