"""The options of a check, as commands and programs give them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from blake3 import blake3

from tfrecreg.core.check.scan.interface import Target
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
    """Folder of raw data, as the base of inflation."""
    source: str | None = None
    """The source of `raw`, whose items are looked for in the records: the validator `items` then
    runs."""
    source_options: Sequence[str] | Mapping[str, Any] = ()
    """Options of that source, as ``K=V`` or by name."""
    schema: str | None = None
    """Path of a schema to use instead of the target's own."""
    fail_on: FailOn | str | None = None
    """None for what the gate says, or ``error``. ``never`` measures and does not judge: findings
    have the severities of their codes, and waivers are ignored, so the result does not depend on
    the date."""
    against: str | None = None
    """A reference or files to compare with: the validator `drift` then runs."""
    same_as: str | None = None
    """A reference, or a content digest of 64 hex digits: the validator `content` then runs."""
    expect: Mapping[str, int] = field(default_factory=dict)
    """Number of records by split; splits that are not named may have any."""
    gate: str | None = None
    """Name of a gate to use, such as that of another dataset; None for the dataset's own, else the
    default one."""
    ignore_missing: bool = False
    """Without targets: whether datasets whose bytes are not on this machine are passed over."""
    cached: bool = False
    """Whether shards that did not change since an earlier check with this option, by their size,
    time and inode, are not read again."""


def schema_digest(text: str | None) -> str | None:
    """blake3 of a schema, as manifests have it."""
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
    """The folder of the target's bytes, relative to its registry, POSIX; outside of one its
    absolute path, or its URL; None for bare files.
    """
    if target.storage is None:
        return None
    if target.home is None or not target.storage.is_local:
        return target.storage.root
    return os.path.relpath(target.storage.root, target.home.root).replace(os.sep, "/")
