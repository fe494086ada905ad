"""Facts about the target in a report: its place, and what it was judged by."""

from __future__ import annotations

import os
from typing import Any

from blake3 import blake3

from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.values.config import Config, GateConfig


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
