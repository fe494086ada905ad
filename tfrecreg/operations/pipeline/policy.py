"""What the stages of one dataset depend on in `tfrecreg.toml`.

DVC could read the file itself, but not all of it: a key that is not there yet is an error, a date
stops it, and what `[gates.default]` gives a dataset stands under another name than what
`[gates.<name>]` does. So a stage that depends on the whole file writes what it comes to for one
dataset, and the others depend on their parts of that. A comment, another dataset's table or a
default that is overridden changes nothing there, and reruns nothing.

The day is no file that DVC could see change. So `dvc.yaml` says until when the verdict holds, which
is as long as every waiver does: `tfrecreg pipeline` on a later day changes that, and DVC runs again
what depends on it.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict
from typing import Any

import msgspec

from tfrecreg.config import Config
from tfrecreg.gating import concerns
from tfrecreg.operations.check.report import limits_of
from tfrecreg.operations.policy import expect_policy
from tfrecreg.registry import Registry, expect_dataset

__all__ = ["next_expiry", "policy_of", "write_policy"]

FORMAT_VERSION = 1

_OF_NO_CONCERN = ("owner", "licence", "description", "citation")
"""Keys of a dataset that no byte of its build depends on."""


def policy_of(
    registry: Registry, name: str, *, until: datetime.date | None = None
) -> dict[str, Any]:
    """The document: what `build`, `check` and `gate` each depend on.

    Args:
        registry: the registry.
        name: of a dataset.
        until: the last day of the waiver that expires next, as `dvc.yaml` has it: what a stage
            makes may depend on its command, and not on the clock.

    Raises:
        UsageError: there is no such dataset.
    """
    expect_dataset(registry, name)
    expect_policy(registry, name)
    config = registry.config
    gate = config.gate(name)
    table = asdict(registry.dataset_config(name))
    if table["max_skipped"] is not None:
        table["max_skipped"] = str(registry.dataset_config(name).max_skipped)
    waivers = [waiver for waiver in config.waivers if concerns(waiver, name)]
    found: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "dataset": name,
        "build": {key: value for key, value in table.items() if key not in _OF_NO_CONCERN},
        "check": {"validators": gate.validators, "limits": _limits(config, name)},
        "gate": {
            "fail_on": gate.fail_on,
            "severity": gate.severity,
            "waivers": [asdict(waiver) for waiver in waivers],
            "next_expiry": until,
        },
    }
    document: dict[str, Any] = msgspec.to_builtins(found)
    return document


def write_policy(
    registry: Registry, name: str, path: str, *, until: datetime.date | None = None
) -> dict[str, Any]:
    """Write the document, and return it.

    Args:
        registry: the registry.
        name: of a dataset.
        path: of the file, relative to the registry's root.
        until: as for :func:`policy_of`.

    Raises:
        UsageError: there is no such dataset.
        StorageError: it cannot be written.
    """
    document = policy_of(registry, name, until=until)
    with registry.storage.create(path) as writer:
        writer.write((json.dumps(document, indent=2, sort_keys=True) + "\n").encode("ascii"))
    return document


def next_expiry(
    config: Config, name: str, *, today: datetime.date | None = None
) -> datetime.date | None:
    """The last day of the waiver of a dataset that holds for the shortest time yet.

    Args:
        config: whose waivers.
        name: of the dataset.
        today: the first day that counts; None for the current one, in UTC.
    """
    day = today or datetime.datetime.now(datetime.timezone.utc).date()
    holding = [each.expires for each in config.waivers if concerns(each, name)]
    return min((each for each in holding if each >= day), default=None)


def _limits(config: Config, name: str) -> dict[str, dict[str, Any]]:
    gate = config.gate(name)
    names = {"inflation", "manifest", *gate.limits.tables}
    found = {each: limits_of(config, gate, name, each) for each in sorted(names)}
    return {each: limits for each, limits in found.items() if limits}
