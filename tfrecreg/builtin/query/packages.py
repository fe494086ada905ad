"""pyarrow and DuckDB, of the extra `query`, imported when a question needs them."""

from __future__ import annotations

from typing import Any

from tfrecreg.core.values.errors import MissingExtraError


def arrow_module() -> Any:
    """The module pyarrow."""
    import pyarrow

    return pyarrow


def parquet() -> Any:
    """The module of pyarrow for Parquet."""
    import pyarrow.parquet

    return pyarrow.parquet


def duckdb_module() -> Any:
    """The module duckdb."""
    import duckdb

    return duckdb


def expect_packages() -> None:
    """Refuse to go on without them."""
    try:
        parquet()
        duckdb_module()
    except ImportError as error:
        raise MissingExtraError("asking in SQL", "query") from error
