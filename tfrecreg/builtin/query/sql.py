"""Texts and names in SQL."""

from __future__ import annotations

from collections.abc import Iterable


def sql_name(name: str) -> str:
    """A name of a column or a table."""
    return '"' + name.replace('"', '""') + '"'


def sql_text(value: str) -> str:
    """A text."""
    return "'" + shown_text(value).replace("'", "''") + "'"


def shown_text(value: str) -> str:
    """A text of Python as DuckDB has it: without NULs and bytes that are not UTF-8."""
    shown = value.replace("\0", "\\x00").encode("utf-8", "surrogateescape")
    return shown.decode("utf-8", "backslashreplace")


def sql_list(values: Iterable[str]) -> str:
    """A list of expressions."""
    return f"[{', '.join(values)}]"
