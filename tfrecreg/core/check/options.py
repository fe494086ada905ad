"""The options of a check, from commands and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from blake3 import blake3

from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.storage.raw import place_in
from tfrecreg.core.values.config import Config, FailOn, GateConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """Options of a check, with the defaults of the command line."""

    only: tuple[str, ...] = ()
    """Names of the validators to run; empty for all."""
    skip: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Names of validators to run in addition to those that run anyway."""
    raw: str | None = None
    """Folder of the raw data. Inflation is relative to its size."""
    source: str | None = None
    """The source that reads `raw`. The validator `items` looks for its items in the records."""
    source_options: Sequence[str] | Mapping[str, Any] = ()
    """Options of that source, as ``K=V`` or by name."""
    schema: str | None = None
    """Path of a schema to use instead of the target's own."""
    fail_on: FailOn | str | None = None
    """None for the gate's setting (by default ``error``). With ``never``, there is no verdict.
    Findings have the severities of their codes, and waivers are ignored, so the result does not
    depend on the date.
    """
    against: str | None = None
    """A reference or files to compare with. If it is given, the validator `drift` runs."""
    same_as: str | None = None
    """A reference, or a content digest of 64 hex digits. If given, the validator `content` runs."""
    expect: Mapping[str, int] = field(default_factory=dict)
    """Expected number of records by split. Other splits may have any number."""
    ignore_missing: bool = False
    """Whether to skip datasets whose bytes are not on this machine, if no targets are given."""
    cached: bool = False
    """Whether to reuse results of earlier checks with this option for unchanged shards."""


def schema_digest(text: str | None) -> str | None:
    """The blake3 digest of a schema, in the form that manifests use."""
    if text is None:
        return None
    return blake3(text.encode("utf-8", "surrogatepass")).hexdigest()


def limits_of(config: Config, gate: GateConfig, dataset: str, validator: str) -> dict[str, Any]:
    """The gate's limits for a validator, merged with the dataset's own."""
    limits = gate.options_of(validator)
    hosts = config.dataset(dataset).hosts
    if validator == "manifest" and hosts is not None:
        return {"hosts": hosts, **limits}
    return limits


def folder_of(target: Target) -> str | None:
    """The folder of the target's bytes, as a POSIX path relative to its registry. Without a
    registry, it is an absolute path or a URL. None for bare files.
    """
    if target.storage is None:
        return None
    if target.home is None:
        return target.storage.root
    return place_in(target.home.root, target.storage.root, relative=True)
