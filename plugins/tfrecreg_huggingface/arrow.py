"""pyarrow, which takes half a second to import: only when it is used, and only here."""

from __future__ import annotations

from typing import Any


def arrow() -> Any:
    """The module `pyarrow`."""
    import pyarrow

    return pyarrow
