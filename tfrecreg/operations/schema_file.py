"""Reading a schema that a user names by its file."""

from __future__ import annotations

from pathlib import Path

from tfrecreg.errors import UsageError
from tfrecreg.text import safe

__all__ = ["read_schema_file"]


def read_schema_file(path: str) -> str:
    """The text of a schema; bytes that are no UTF-8 are replaced, and parsing it says where.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(
            f"the schema `{safe(path)}` cannot be read: {error.strerror}",
            hint="name a dataset, a release or a `.pbtxt` file",
        ) from None
