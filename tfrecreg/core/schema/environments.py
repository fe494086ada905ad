"""The options with which a validator chooses an environment of the schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tfrecreg.core.values.config import read_limits


@dataclass(frozen=True, slots=True)
class EnvironmentOptions:
    """The options of a validator that choose an environment of the schema."""

    environment: str | None = None
    """The environment of the data."""
    environments: dict[str, str] = field(default_factory=dict)
    """The environments of splits that need a different one, by split name."""


def environment_options(
    validator: str, options: Mapping[str, Any]
) -> tuple[str | None, Mapping[str, str]]:
    """The options `environment` (for most splits) and `environments` (per split) of a validator."""
    found = read_limits(EnvironmentOptions, options, validator)
    return found.environment, found.environments
