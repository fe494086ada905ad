"""pyarrow, which takes half a second to import: only when it is used, and only here."""

from __future__ import annotations

from typing import Any


def arrow() -> Any:
    """The module `pyarrow`."""
    import pyarrow

    return pyarrow


def parquet_format() -> Any:
    """Its module for Parquet."""
    import pyarrow.parquet

    return pyarrow.parquet
