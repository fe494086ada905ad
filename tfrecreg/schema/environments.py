"""The contracts of a target's splits: which environment each is of, as the options say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tfrecreg.errors import ConfigError
from tfrecreg.schema.contract import Contract, FeatureRule, compile_contract
from tfrecreg.schema.model import Schema
from tfrecreg.text import safe

__all__ = ["Contracts", "compile_contracts", "environment_options"]


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


def environment_options(
    validator: str, options: Mapping[str, Any]
) -> tuple[str | None, Mapping[str, str]]:
    """`environment` and `environments` of a validator's options: of most splits, and by split.

    Raises:
        ConfigError: an option that there is not, or of the wrong type.
    """
    unknown = sorted(set(options) - {"environment", "environments"})
    if unknown:
        raise ConfigError(
            f"the validator `{validator}` has no option `{safe(unknown[0])}`",
            hint="its options are `environment`, the name of one of the schema's environments, and "
            "`environments`, such names by split",
        )
    environment = options.get("environment")
    if environment is not None and not isinstance(environment, str):
        raise ConfigError(
            f"`environment` of the validator `{validator}` is {safe(repr(environment))}, "
            "expected a string",
            hint="it is the name of one of the schema's environments",
        )
    by_split = options.get("environments", {})
    if not isinstance(by_split, Mapping) or not all(
        isinstance(each, str) for pair in by_split.items() for each in pair
    ):
        raise ConfigError(
            f"`environments` of the validator `{validator}` is {safe(repr(by_split))}, "
            "expected a table of strings",
            hint='it names environments by split: environments = { test = "SERVING" }',
        )
    return environment, by_split
