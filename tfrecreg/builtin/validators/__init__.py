"""Announces the bundled validators through the same hook as plugins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.core.plugins.specs import hookimpl
from tfrecreg.core.values.codes import CodeList

if TYPE_CHECKING:
    from tfrecreg.core.check.scan.interface import Validator


@hookimpl
def tfrecreg_validators() -> Iterator[ValidatorRecord]:
    """Yield every bundled validator. Its module is imported when a check uses it."""
    yield _record("crc", "framing, checksums and compression", "CRC*", reads_back=True)
    yield _record("manifest", "all files, byte by byte", "SHD00*", "SHD01[23]", reads_back=True)
    yield _record(
        "schema",
        "every record against the schema",
        *("SCH00*", "SCH010"),
        reads_back=True,
        needs_schema=True,
    )
    yield _record("inflation", "size against the raw data", "INF*")
    about = "images against their raw files, and the ledger"
    yield _record("source", about, "SRC01[679]", "SRC047", "SRC091")
    yield _record("duplicates", "duplicates in a split and across splits", "DUP*")
    yield _record("images", "encoded images", "IMG*")
    yield _record("annotations", "labels, boxes, classes", "ANN*")
    about = "whole splits against the schema, by TFDV"
    yield _record("statistics", about, "SCH1*", runs_with="asked")
    about = "versions and splits against each other"
    yield _record("drift", about, "DRF*", runs_with="baseline")
    about = "records against another version or a digest"
    yield _record("content", about, "SHD01[01]", runs_with="expected")
    about = "the items of raw data, and the records that hold them"
    yield _record("items", about, "SRC017", "SRC09[01]", runs_with="items")
    about = "releases, their numbers and history"  # REG009 and REG013 are the gate's
    yield _record("registry", about, "REG00[1-8]", "REG01[0-2]", "SRC10[01]")


def _record(name: str, summary: str, *codes: str, **when: Any) -> ValidatorRecord:
    return ValidatorRecord(name, summary, CodeList(*codes), partial(_load, name), **when)


_MODULES = {
    "schema": "tfrecreg.builtin.schemas.validator",
    "inflation": "tfrecreg.builtin.validators.inflation.validator",
    "statistics": "tfrecreg.builtin.statistics.validators",
    "drift": "tfrecreg.builtin.statistics.validators",
    "content": "tfrecreg.core.check.content",
    "registry": "tfrecreg.builtin.releases.audit_validator",
}
"""The modules of validators for which this package has no module of the same name."""


def _load(name: str) -> type[Validator]:
    """The class of a validator, such as `ClassCountValidator` for the name ``class_count``."""
    module = import_module(_MODULES.get(name, f"{__name__}.{name}"))
    found: type[Validator] = getattr(module, f"{name.title().replace('_', '')}Validator")
    return found
