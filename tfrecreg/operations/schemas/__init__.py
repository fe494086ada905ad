"""Operations on schemas.

- `compare`: find the schema of a name, diff two of them, check whether readers of one version parse
  records of another
- `infer`: draft a schema from records
- `accept`: change a schema so that data which break it pass
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrecreg.lazy import lazy_exports

if TYPE_CHECKING:
    from tfrecreg.operations.schemas.accept import (
        AcceptOptions,
        Proposal,
        propose,
        write_proposal,
    )
    from tfrecreg.operations.schemas.compare import (
        CompatibilityOptions,
        CompatibilityReport,
        SchemaDiff,
        check_compatibility,
        diff_schemas,
        find_schema,
    )
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

# Who shows or compares schemas reads no records.
if not TYPE_CHECKING:  # which knows these names from above, and no others
    __getattr__ = lazy_exports(
        __name__,
        {
            ".accept": ("AcceptOptions", "Proposal", "propose", "write_proposal"),
            ".compare": (
                "CompatibilityOptions",
                "CompatibilityReport",
                "SchemaDiff",
                "check_compatibility",
                "diff_schemas",
                "find_schema",
            ),
            ".infer": ("infer_schema",),
        },
    )
