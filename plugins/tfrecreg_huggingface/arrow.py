"""pyarrow, which takes half a second to import: imported by what reads columns, and only there."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["pa"]
