"""Two schemas, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfrecreg.operations.schemas.find import find_schema
from tfrecreg.registry import RegistryLike
from tfrecreg.schema import parse_schema
from tfrecreg.schema.differ import Change, compare_schemas

__all__ = ["SchemaDiff", "diff_schemas"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDiff:
    """What differs between two schemas."""

    expected: str
    """Where the first one is."""
    found: str
    """Where the second one is."""
    changes: tuple[Change, ...]
    """Of the schema itself first, then by the names of features."""

    def to_json(self) -> dict[str, Any]:
        """The document of ``schema diff --json``."""
        return {
            "expected": self.expected,
            "found": self.found,
            "changes": [change.to_json() for change in self.changes],
        }


def diff_schemas(expected: str, found: str, *, registry: RegistryLike | None = None) -> SchemaDiff:
    """Compare two schemas.

    Args:
        expected: a dataset, a release or a file.
        found: another one.
        registry: an open registry or a path in one; None for that of the current folder.

    Raises:
        UsageError: there is no such schema.
        SchemaError: one of them does not parse.
    """
    first, second = (find_schema(name, registry=registry) for name in (expected, found))
    changes = compare_schemas(parse_schema(*first), parse_schema(*second))
    return SchemaDiff(expected=first[1], found=second[1], changes=changes)
