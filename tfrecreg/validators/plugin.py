"""The bundled validators, announced in the same way as those of any plugin."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module

from tfrecreg.codes import CodeList
from tfrecreg.plugins.records import ValidatorRecord
from tfrecreg.plugins.specs import hookimpl
from tfrecreg.scan.interface import Validator

_VALIDATORS = (
    ("crc", "framing, checksums and compression", ("CRC*",), "crc"),
    ("manifest", "the set of files, byte by byte", ("SHD00*",), "manifest.validator"),
    ("schema", "every record against the schema", ("SCH00*", "SCH010"), "schema.validator"),
    ("inflation", "size against the raw data", ("INF*",), "inflation.validator"),
    ("source", "images against their origin", ("SRC01[6-9]",), "source"),
    (
        "duplicates",
        "the same content again, in one split or two",
        ("DUP*",),
        "duplicates.validator",
    ),
    ("images", "encoded images", ("IMG*",), "images"),
    ("annotations", "labels, boxes, classes", ("ANN*",), "annotations.validator"),
    ("statistics", "whole splits against the schema, by TFDV", ("SCH1*",), "statistics"),
    ("drift", "versions and splits against each other, by TFDV", ("DRF*",), "drift"),
    ("content", "records against another version or a digest", ("SHD01*",), "content"),
    # REG009 and REG013 are the gate's
    ("registry", "releases, their numbers and history", ("REG00[1-8]", "REG01[0-2]"), "registry"),
)
"""Name, summary, codes, and module; a class is named after its validator."""
_ON_REQUEST = ("statistics", "drift", "content")


@hookimpl
def tfrecreg_validators() -> Iterator[ValidatorRecord]:
    """Yield every bundled validator; their modules load when a check uses them."""
    for name, summary, codes, module in _VALIDATORS:
        load = partial(_load, module, f"{name.capitalize()}Validator")
        on_request = name in _ON_REQUEST
        yield ValidatorRecord(name, summary, CodeList(*codes), load, on_request=on_request)


def _load(module: str, name: str) -> type[Validator]:
    found: type[Validator] = getattr(import_module(f"tfrecreg.validators.{module}"), name)
    return found
