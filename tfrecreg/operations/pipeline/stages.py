"""The stages of one dataset and its artifact, as DVC reads them.

`build` keeps its output (`persist`): DVC would remove it first, and with it what can be kept. What
is measured is measured by one stage and judged by the next: what a stage wrote that fails is not
remembered, so a failing check would leave no report behind. Reports are small and are git's
(`cache: false`), the data are DVC's.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from typing import Any

from tfrecreg.config import CONFIG_NAME
from tfrecreg.operations.check.metrics import PLOTS
from tfrecreg.operations.pipeline.policy import next_expiry
from tfrecreg.registry import Registry, layout
from tfrecreg.tracking import gto

__all__ = ["MARK", "Entry", "artifact_of", "render", "stages_of"]

MARK = "tfrecreg"
"""The key in an entry's `meta` that says which dataset it is of: those entries are ours."""

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/.-]*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""What older YAML takes for something else than text."""

Entry = Mapping[str, Any]
"""A stage, or an artifact."""


def stages_of(
    registry: Registry, name: str, *, today: datetime.date | None = None
) -> dict[str, Entry]:
    """Name to stage, in the order in which they run.

    A dataset without a source has no stage that builds it: what it was adopted from may be gone.

    Args:
        registry: the registry.
        name: of a dataset that its configuration has.
        today: the day to find the next expiry of a waiver from; None for the current one, in UTC.
    """
    until = next_expiry(registry.config, name, today=today)
    config = registry.dataset_config(name)
    build, report = layout.build_folder(name), layout.reports_folder(name)
    policy, found = layout.policy_path(name), layout.report_path(name)
    schema, releases = _literal(registry.schema_path(name)), f"{layout.RELEASES}/{name}"
    stages: dict[str, dict[str, Any]] = {}
    stages["policy"] = {
        "cmd": f"tfrecreg pipeline {name} --policy {policy}"
        + (f" --until {until.isoformat()}" if until is not None else ""),
        "deps": [CONFIG_NAME],
        "outs": [{policy: {"cache": False}}],
    }
    if config.source is not None and config.raw is not None:
        stages["build"] = {
            "cmd": f"tfrecreg build {name}",
            "deps": [_literal(config.raw), schema, releases],
            "params": [{policy: ["build"]}],
            "outs": [{build: {"persist": True}}],
        }
    stages["check"] = {
        "cmd": f"tfrecreg check {name} --fail-on never --format json --output {found} "
        f"--metrics {report}/metrics.json --plots {report}/plots",
        "deps": [build, schema, releases],
        "params": [{policy: ["check"]}],
        "outs": [{found: {"cache": False}}],
        "metrics": [{f"{report}/metrics.json": {"cache": False}}],
        "plots": [_plot(f"{report}/plots/{plot}.csv", name, plot) for plot in PLOTS],
    }
    stages["gate"] = {
        "cmd": f"tfrecreg gate {name} --report {found}",
        "deps": [found],
        "params": [{policy: ["gate"]}],
    }
    mark = {"meta": {MARK: name}}
    return {f"{kind}-{name}": {**stage, **mark} for kind, stage in stages.items()}


def artifact_of(registry: Registry, name: str) -> dict[str, Entry]:
    """Name to artifact: how other repositories find the dataset by GTO's tags of its releases.

    Empty for a name that GTO has no tags for.

    Args:
        registry: the registry.
        name: of a dataset that its configuration has.
    """
    if not gto.is_name(name):
        return {}
    config = registry.dataset_config(name)
    artifact: dict[str, Any] = {"path": layout.build_folder(name), "type": "dataset"}
    if config.description:
        artifact["desc"] = _literal(config.description)
    artifact["labels"] = ["tfrecord", *([config.source] if config.source is not None else [])]
    return {name: {**artifact, "meta": {MARK: name}}}


def _literal(text: str) -> str:
    """Text in which DVC finds no variable."""
    return text.replace("${", "\\${")


def _plot(path: str, name: str, plot: str) -> dict[str, Any]:
    what, number = PLOTS[plot]
    return {
        path: {
            "cache": False,
            "template": "bar_horizontal",
            "x": number,
            "y": what,
            "title": f"{name}: {number} by {what}",
        }
    }


def render(name: str, entry: Entry, indent: int) -> str:
    """An entry as lines of YAML in block style, its name `indent` columns from the left."""
    lines = [f"{_scalar(name)}:", *(f"  {line}" for line in _mapping(entry))]
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _mapping(value: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, item in value.items():
        if isinstance(item, Mapping):
            lines += [f"{_scalar(key)}:", *(f"  {line}" for line in _mapping(item))]
        elif isinstance(item, list):
            lines.append(f"{_scalar(key)}:")
            for each in item:
                inner = _mapping(each) if isinstance(each, Mapping) else [_text(each)]
                lines += [f"- {inner[0]}", *(f"  {line}" for line in inner[1:])]
        else:
            lines.append(f"{_scalar(key)}: {_text(item)}")
    return lines


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _scalar(str(value))


def _scalar(text: str) -> str:
    """Text as it is where YAML takes it for that text, else in quotes."""
    if " " in text and re.fullmatch(r"[a-z][A-Za-z0-9_/. -]*[A-Za-z0-9]", text):
        return text  # a command
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return json.dumps(text, ensure_ascii=False)
