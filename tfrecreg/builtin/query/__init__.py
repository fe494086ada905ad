"""Answers questions in SQL: DuckDB queries a catalog of the records."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.plugins.specs import hookimpl
from tfrecreg.core.values.codes import CodeList

if TYPE_CHECKING:
    from tfrecreg.core.check.scan.interface import Validator


@hookimpl
def tfrecreg_validators() -> Iterator[ValidatorRecord]:
    """Yield `questions`, whose module is imported only if a gate has expectations."""
    yield ValidatorRecord(
        "questions",
        "SQL answers, compared with `expect` of a gate",
        CodeList("QRY*"),
        _load,
        runs_with="limits",
        extra="query",
    )


def _load() -> type[Validator]:
    from tfrecreg.builtin.query.catalog import expect_packages

    expect_packages()
    found: type[Validator] = import_module("tfrecreg.builtin.query.questions").QuestionsValidator
    return found
