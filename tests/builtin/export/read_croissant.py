"""Prints what mlcroissant says of a description: problems, and records that are in it.

Run by an interpreter that has `mlcroissant`, which need not have tfrecreg.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import mlcroissant as mlc


def plain(value: Any) -> str | int:
    """A text or an integer of any type."""
    if isinstance(value, bytes):
        return value.decode()
    return value if isinstance(value, str) else int(value)


dataset = mlc.Dataset(sys.argv[1])
issues = dataset.metadata.ctx.issues
print(
    json.dumps(
        {
            "errors": sorted(issues.errors),
            "warnings": sorted(issues.warnings),
            "name": dataset.metadata.name,
            "version": str(dataset.metadata.version),
            "license": [str(each) for each in dataset.metadata.license or []],
            "sha256": {each.name: each.sha256 for each in dataset.metadata.file_objects},
            "record_sets": [each.id for each in dataset.metadata.record_sets],
            "records": {
                name: [
                    {key: plain(value) for key, value in record.items()}
                    for record in dataset.records(name)
                ]
                for name in sys.argv[2:]
            },
        }
    )
)
