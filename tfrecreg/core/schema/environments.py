"""The options that choose an environment. They have a module of their own, so that a
check without a schema does not load the code that reads schemas.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EnvironmentOptions:
    """The options of a validator that choose an environment of the schema."""

    environment: str | None = None
    """The environment of the data."""
    environments: dict[str, str] = field(default_factory=dict)
    """The environments of splits that need a different one, by split name."""
