"""The contracts of a target's splits: which environment each is of, as the options say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tfrecreg.config import read_limits
from tfrecreg.schema.contract import Contract, FeatureRule, compile_contract
from tfrecreg.schema.model import Schema

__all__ = ["Contracts", "EnvironmentOptions", "compile_contracts", "environment_options"]


@dataclass(frozen=True, slots=True)
class Contracts:
    """What records have to be: in most splits, and in those of an environment of their own."""

    default: Contract
    by_split: Mapping[str, Contract] = field(default_factory=dict)

    def of(self, split: str) -> Contract:
        """That of one split."""
        return self.by_split.get(split, self.default)

    def rule(self, split: str, feature: str) -> FeatureRule:
        """What one split asks of a feature that it knows."""
        return next(rule for rule in self.of(split).features if rule.name == feature)


def compile_contracts(schema: Schema, options: Mapping[str, Any]) -> Contracts:
    """The contracts that `schema` makes under the options of the validator `schema`.

    Args:
        schema: the schema.
        options: `environment`, the name of an environment, and `environments`, such names by split.

    Raises:
        SchemaError: the schema does not name that environment.
        ConfigError: an option that there is not, or of the wrong type.
    """
    environment, by_split = environment_options("schema", options)
    return Contracts(
        compile_contract(schema, environment),
        {split: compile_contract(schema, each) for split, each in by_split.items()},
    )


@dataclass(frozen=True, slots=True)
class EnvironmentOptions:
    """Which of the schema's environments the data belong to."""

    environment: str | None = None
    """The environment of the data."""
    environments: dict[str, str] = field(default_factory=dict)
    """Environment by split, for splits that differ."""


def environment_options(
    validator: str, options: Mapping[str, Any]
) -> tuple[str | None, Mapping[str, str]]:
    """`environment` and `environments` of a validator's options: of most splits, and by split.

    Raises:
        ConfigError: an unknown option, or a value of another type.
    """
    found = read_limits(EnvironmentOptions, options, validator)
    return found.environment, found.environments
