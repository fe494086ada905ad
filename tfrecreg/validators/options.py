"""The options of a validator: a table of `tfrecreg.toml` into a dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from tfrecreg.config import CONFIG_NAME
from tfrecreg.tables import Place, read_table

__all__ = ["read_options"]

T = TypeVar("T")


def read_options(kind: type[T], options: Mapping[str, Any], *, of: str) -> T:
    """What stands in `limits.<validator>` of a gate.

    Args:
        kind: a frozen dataclass whose annotations say what each option may be.
        options: the table.
        of: the validator.

    Raises:
        ConfigError: an option that there is not, or of another type.
    """
    return read_table(kind, dict(options), Place(CONFIG_NAME) / "limits" / of)
