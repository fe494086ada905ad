"""Schemas as operations.

- `find`: from a name to the schema that it stands for
- `infer`: a draft from records
- `diff`: two schemas, feature by feature
- `compatibility`: whether readers of one version parse records of another
- `accept`: the change of a schema that takes data in
"""

from __future__ import annotations

from tfrecreg.operations.schemas.accept import AcceptOptions, Proposal, propose, write_proposal
from tfrecreg.operations.schemas.compatibility import (
    CompatibilityOptions,
    CompatibilityReport,
    check_compatibility,
)
from tfrecreg.operations.schemas.diff import SchemaDiff, diff_schemas
from tfrecreg.operations.schemas.find import find_schema
from tfrecreg.operations.schemas.infer import infer_schema

__all__ = [
    "AcceptOptions",
    "CompatibilityOptions",
    "CompatibilityReport",
    "Proposal",
    "SchemaDiff",
    "check_compatibility",
    "diff_schemas",
    "find_schema",
    "infer_schema",
    "propose",
    "write_proposal",
]
