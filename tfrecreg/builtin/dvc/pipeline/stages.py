"""The stages of one dataset and its artifact, as DVC reads them.

`build` keeps its output (`persist`): DVC would remove it first, and with it what can be kept. One
stage measures and the next one judges: DVC does not remember what a stage wrote that fails, so a
failing check would leave no report behind. Reports are small and are git's (`cache: false`), the
data and the page are DVC's. The page has a stage of its own: a clone that has not pulled it would
repeat whatever stage makes it.

The parameters of a stage are the keys of the configuration that change its result. DVC refuses a
key that is not in the file, so only keys that are there are named. The stage `gate` depends on
whole files, and refuses where keys were added since: see `expect_pipeline`. DVC does not rerun a
stage that lost a parameter, so a comment in the command, which it compares, names the keys too.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from tfrecreg.core.check.findings import PLOTS
from tfrecreg.core.registry import gto, layout
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.config import CONFIG_NAME, DatasetConfig, next_expiry
from tfrecreg.core.values.documents import read_toml
from tfrecreg.core.values.reference import parse_reference

_DESCRIPTIVE = frozenset({"page", "owner", "license", "description", "citation"})
"""Keys of a dataset that no byte of its build depends on."""
_OF_BUILD = tuple(each.name for each in fields(DatasetConfig) if each.name not in _DESCRIPTIVE)
_OF_CHECK = ("hosts",)
_OF_GATE = ("validators", "limits", "expect")
"""Keys of a gate that a check depends on; the others are for the verdict."""

MARK = "tfrecreg"
"""The key in an entry's `meta` with the dataset's name: it marks our entries."""

StageEntry = Mapping[str, Any]
"""A stage, or an artifact."""


def stages_of(
    registry: Registry, name: str, *, today: datetime.date | None = None
) -> dict[str, StageEntry]:
    """Stage by name, in the order in which they run.

    A dataset without a source has no build stage: the files that it was adopted from may be gone.
    """
    until = next_expiry(registry.config.waivers, name, today)
    dataset = registry.dataset(name)
    config = dataset.config
    build, report = layout.build_folder(name), layout.reports_folder(name)
    found, file = layout.report_path(name), dataset.config_file
    schema, releases = _literal(dataset.schema_path), f"{layout.RELEASES}/{name}"
    stages: dict[str, dict[str, Any]] = {}
    if config.source is not None and config.raw is not None:
        stages["build"] = {
            "cmd": f"tfrecreg build {name}",
            "deps": [*map(_literal, _raw_of(config)), schema, releases],
            "params": _params(registry, name, _OF_BUILD),
            "outs": [{build: {"persist": True}}],
        }
    stages["check"] = {
        "cmd": f"tfrecreg check {name} --fail-on never --format json --output {found} "
        f"--metrics {report}/metrics.json --plots {report}/plots",
        "deps": [build, schema, releases],
        "params": _params(registry, name, _OF_CHECK, _OF_GATE),
        "outs": [{found: {"cache": False}}],
        "metrics": [{f"{report}/metrics.json": {"cache": False}}],
        "plots": [_plot(f"{report}/plots/{plot}.csv", name, plot) for plot in PLOTS],
    }
    stages["gate"] = {
        "cmd": f"tfrecreg gate {name} --report {found}"
        + (f" --until {until.isoformat()}" if until is not None else ""),
        "deps": [found, CONFIG_NAME, file],
    }
    if config.page:
        page = f"{report}/page.html"
        stages["page"] = {
            "cmd": f"tfrecreg report {name} --output {page}",
            "deps": [build, schema, releases, CONFIG_NAME, file],
            "outs": [page],
        }
    for stage in stages.values():
        keys = [
            key for each in stage.get("params", ()) for listed in each.values() for key in listed
        ]
        if keys:
            stage["cmd"] += f"  # depends on {', '.join(keys)}"
        else:
            stage.pop("params", None)
    return {f"{kind}-{name}": {**stage, "meta": {MARK: name}} for kind, stage in stages.items()}


def _raw_of(config: DatasetConfig) -> list[str]:
    """The raw data; of a derived dataset the builds, or the releases, of its parents."""
    inputs = config.options.get("inputs", ())
    if config.raw != "." or not inputs:
        return [config.raw or ""]
    texts = inputs.split(",") if isinstance(inputs, str) else inputs
    found = [parse_reference(text) for text in texts]
    folders = {
        layout.build_folder(each.name)
        if each.selector is None
        else f"{layout.RELEASES}/{each.name}"
        for each in found
    }
    return sorted(folders)


def _params(
    registry: Registry, name: str, keys: Iterable[str], of_gate: Iterable[str] = ()
) -> list[StageEntry]:
    """The parameters of a stage: by file, the keys that are there."""
    own = registry.dataset(name).config_file
    settings = read_toml(registry.storage.read(own), own)
    gates = read_toml(registry.storage.read(CONFIG_NAME), CONFIG_NAME).get("gates", {})
    found = {
        own: [key for key in keys if key in settings],
        CONFIG_NAME: [
            f"gates.{gate}.{key}"
            for gate in ("default", name)
            for key in of_gate
            if key in gates.get(gate, {})
        ],
    }
    return [{file: listed} for file, listed in found.items() if listed]


def artifact_of(registry: Registry, name: str) -> dict[str, StageEntry]:
    """Artifact by name: how other repositories find the dataset by GTO's tags of its releases.

    Empty for a name that GTO has no tags for.
    """
    if not gto.is_name(name):
        return {}
    config = registry.dataset(name).config
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
