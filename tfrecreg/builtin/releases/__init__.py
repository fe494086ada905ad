"""Versions of a dataset: release, compare, tag, yank, audit."""

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
    """Yield `changes`."""
    about, codes = "what changed since the previous version", CodeList("REG014")
    yield ValidatorRecord("changes", about, codes, _load, runs_with="limits")


def _load() -> type[Validator]:
    found: type[Validator] = import_module("tfrecreg.builtin.releases.changes").ChangesValidator
    return found
