"""The `images` validator: encoded pictures against what records declare, and whether they decode.

- `options`: what may be asked of it
- `declared`: what a record says of its picture
- `visitor`: looks at the pictures of one shard
- `validator`: the findings
"""

from __future__ import annotations

from tfrecreg.validators.images.validator import ImagesValidator

__all__ = ["ImagesValidator"]
