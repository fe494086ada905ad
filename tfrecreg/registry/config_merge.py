"""`tfrecreg.toml` of two branches that each added datasets, as one file.

Tables are added at the end of the file, so to git any two additions are a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfrecreg.config import CONFIG_NAME
from tfrecreg.errors import ConfigError
from tfrecreg.toml_files import read_toml

__all__ = ["merged_config"]


def merged_config(base: str, ours: str, theirs: str) -> str | None:
    """The text with what both sides added; None where that is not all that they did.

    One side has to have added datasets, gates or other tables at the end of the file, and nothing
    else; what the other one did stays as it is. Nothing may stand on both sides.

    Args:
        base: the file that both began with.
        ours: the file of one side.
        theirs: of the other.
    """
    for mine, other in ((ours, theirs), (theirs, ours)):
        more = other.removeprefix(base)
        if more == other and base:
            continue  # it is not the file that it began with, and more
        text = mine if mine.endswith("\n") else f"{mine}\n"
        text += more if more.startswith(("\n", "\r\n")) else f"\n{more}"
        try:
            known, added = read_toml(mine, CONFIG_NAME), read_toml(other, CONFIG_NAME)
            wanted = _together(read_toml(base, CONFIG_NAME), known, added, 0)
            if wanted is not None and read_toml(text, CONFIG_NAME) == wanted:
                return text
        except ConfigError:
            continue
    return None


def _together(
    base: Mapping[str, Any], mine: Mapping[str, Any], other: Mapping[str, Any], depth: int
) -> dict[str, Any] | None:
    """`mine` with what `other` has and `base` has not; None where anything else differs."""
    result = dict(mine)
    if base.keys() - other.keys():
        return None
    for key, value in other.items():
        if key in base and base[key] == value:
            continue
        if key not in base and key not in mine:
            result[key] = value
            continue
        before, there = base.get(key, {}), mine.get(key)
        if depth or not all(isinstance(each, dict) for each in (before, there, value)):
            return None
        inner = _together(before, there or {}, value, depth + 1)
        if inner is None:
            return None
        result[key] = inner
    return result
