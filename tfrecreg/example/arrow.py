"""The one home of pyarrow, which takes half a second to import.

It comes with TFDV and with the extra `parquet`. Nothing is imported before a function here is
called.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from tfrecreg.errors import MissingExtraError


def require_parquet() -> None:
    """Make sure that pyarrow is installed. Nothing is imported.

    Raises:
        MissingExtraError: it is not.
    """
    if find_spec("pyarrow") is None:
        raise MissingExtraError("writing Parquet files", "parquet")


def load_pyarrow() -> Any:
    """Import pyarrow, which ships no types."""
    import pyarrow

    return pyarrow


def load_parquet() -> Any:
    """Import pyarrow's module for Parquet."""
    import pyarrow.parquet

    return pyarrow.parquet
