"""What a report is about, and what was asked: who judges it later has to know."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from blake3 import blake3

from tfrecreg.config import Config, GateConfig
from tfrecreg.scan import Target

__all__ = ["Basis", "folder_of", "limits_of", "schema_digest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The target as it was when it was checked, and the options that say what was looked at."""

    manifest: str | None = None
    """Digest of the target's manifest; None for bare files."""
    schema: str | None = None
    """blake3 of the schema's text; None where there was none."""
    raw: str | None = None
    """The folder of raw data that was named; None for the manifest's word."""
    against: str | None = None
    """What it was compared with."""
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By validator that ran, the options it was given; those that were given any."""

    def to_json(self) -> dict[str, Any]:
        """As the report's JSON has it."""
        return {
            "manifest": self.manifest,
            "schema": self.schema,
            "raw": self.raw,
            "against": self.against,
            "only": list(self.only),
            "skip": list(self.skip),
            "limits": {name: dict(limits) for name, limits in sorted(self.limits.items())},
        }


def schema_digest(text: str | None) -> str | None:
    """blake3 of a schema, as manifests have it."""
    if text is None:
        return None
    return blake3(text.encode("utf-8", "surrogatepass")).hexdigest()


def limits_of(config: Config, gate: GateConfig, dataset: str, validator: str) -> dict[str, Any]:
    """What the gate asks of a validator, and what the dataset's own table says of it."""
    limits = gate.options_of(validator)
    table = config.datasets.get(dataset)
    if validator == "manifest" and table is not None and table.hosts is not None:
        return {"hosts": table.hosts, **limits}
    return limits


def folder_of(target: Target) -> str | None:
    """The folder of the target's bytes in its registry, POSIX; None for bare files."""
    if target.storage is None or target.home is None:
        return None
    return os.path.relpath(target.storage.root, target.home.root).replace(os.sep, "/")
