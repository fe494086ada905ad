"""The validator `schema`: every record against the schema.

`validator` says whether it applies, and is all that a check without a schema loads; `records` holds
the records of a shard against the compiled schema, and judges whole splits.
"""

from __future__ import annotations

__all__: list[str] = []
