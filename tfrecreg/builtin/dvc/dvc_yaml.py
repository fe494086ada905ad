"""Writes the stages and the artifact of a dataset to `dvc.yaml`, and leaves other entries alone.

`build` keeps its output (`persist`), because DVC would otherwise remove the output before a build
that could reuse it. `check` writes the report and `gate` judges it. If one stage did both, a
failure would make DVC discard the report. Reports are small, so git keeps them (`cache: false`).
DVC keeps the data and the page. The page has its own stage, because a clone that has not pulled the
page would repeat the stage that makes it.

The parameters of a stage are the keys of the configuration that change its result. DVC refuses
missing keys, so a stage lists only existing keys. The stage `gate` depends on whole files. It fails
if keys were added later: see `expect_pipeline`. DVC does not rerun a stage that lost a parameter,
but it reruns a stage if its command changes. So a comment in the command lists the keys.

The file is edited with ruamel.yaml, as DVC does: comments are kept, and lines get DVC's layout.
"""

from __future__ import annotations

import datetime
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from tfrecreg.builtin.dvc.dvc import PIPELINE_NAME
from tfrecreg.core.check.findings import PLOTS
from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.values.config import CONFIG_NAME, DatasetConfig, next_expiry
from tfrecreg.core.values.documents import read_toml
from tfrecreg.core.values.errors import MissingExtraError, UsageError
from tfrecreg.core.values.reference import parse_reference

_DESCRIPTIVE = frozenset({"page", "owner", "license", "description", "citation"})
"""Keys of a dataset that do not affect the bytes of its build."""
_OF_BUILD = tuple(each.name for each in fields(DatasetConfig) if each.name not in _DESCRIPTIVE)
_OF_CHECK = ("hosts",)
_OF_GATE = ("validators", "limits", "expect")
"""Keys of a gate that affect a check. The other keys affect only the verdict."""

MARK = "tfrecreg"
"""The key in `meta` that marks the entries of tfrecreg. Its value is the dataset's name."""

StageEntry = Mapping[str, Any]
"""A stage, or an artifact."""


def stages_of(
    registry: Registry, name: str, *, today: datetime.date | None = None
) -> dict[str, StageEntry]:
    """Stages by name, in order of execution.

    A dataset without a source has no build stage, because the adopted files may be gone.
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
    """Paths of the raw data or, if the dataset is derived, of its parents' builds or releases."""
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
    """The parameters of a stage: for each file, the keys that exist in it."""
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
    """Artifacts by name. With them and GTO's tags, other repositories find the dataset.

    Empty for a name that GTO cannot tag.
    """
    if not git.is_name(name):
        return {}
    config = registry.dataset(name).config
    artifact: dict[str, Any] = {"path": layout.build_folder(name), "type": "dataset"}
    if config.description:
        artifact["desc"] = _literal(config.description)
    artifact["labels"] = ["tfrecord", *([config.source] if config.source is not None else [])]
    return {name: {**artifact, "meta": {MARK: name}}}


def _literal(text: str) -> str:
    """The text, escaped so that DVC does not replace variables in it."""
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


Section = Literal["stages", "artifacts"]
"""A key of the file that contains entries by name."""
_SECTIONS: tuple[Section, ...] = ("stages", "artifacts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The names of the changed entries in a section of `dvc.yaml`. False if nothing changed."""

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Names of entries whose datasets are no longer configured."""

    def __bool__(self) -> bool:
        return bool(self.added or self.updated or self.removed)


def edited(
    text: str, wanted: Mapping[str, StageEntry], *, prune: bool, section: Section = "stages"
) -> tuple[str, Changes]:
    """Update the entries of a section. Returns the new text of the file, and the changes.

    An artifact that someone else wrote under one of the names is kept if it has the right path.
    """
    data = _parsed(text)
    entries = data.get(section) or {}
    wanted = _to_write(section, entries, wanted)
    updated = tuple(name for name in wanted if name in entries and entries[name] != wanted[name])
    added = tuple(name for name in wanted if name not in entries)
    removed = tuple(
        name
        for name, entry in entries.items()
        if name not in wanted and prune and _owner(entry) is not None
    )
    done = Changes(added=added, updated=updated, removed=removed)
    if not done:
        return text, done
    changed = {name: wanted[name] for name in updated + added}
    return _written(text, data, section, changed, removed), done


def owners(text: str | None, section: Section) -> set[str]:
    """The datasets for which tfrecreg wrote entries in a section."""
    entries = _parsed(text or "").get(section) or {}
    return {name for name in map(_owner, entries.values()) if name is not None}


def expect_params(text: str, wanted: Mapping[str, StageEntry]) -> None:
    """Refuse stages of tfrecreg that do not list all their parameters."""
    there = _parsed(text).get("stages") or {}
    for name, entry in wanted.items():
        found: Any = there.get(name)
        if _owner(found) is not None and found.get("params", []) != entry.get("params", []):
            raise UsageError(
                f"`{PIPELINE_NAME}` lacks settings that `{name}` depends on: DVC may not "
                "have rerun it after they changed",
                hint="tfrecreg pipeline, then dvc repro",
            )


def _to_write(
    section: Section, entries: Mapping[str, Any], wanted: Mapping[str, StageEntry]
) -> dict[str, StageEntry]:
    """The entries to write. An artifact is left out if someone else wrote one with the same name
    and path.
    """
    ours: dict[str, StageEntry] = {}
    for name, entry in wanted.items():
        there = entries.get(name)
        if name not in entries or _owner(there) is not None:
            ours[name] = entry
        elif section == "stages" or _path(there) != entry["path"]:
            raise UsageError(
                f"`{PIPELINE_NAME}` has `{name}` in `{section}`, which tfrecreg did not write"
            )
    return ours


def _path(entry: Any) -> object:
    return entry.get("path") if isinstance(entry, Mapping) else None


def _owner(entry: Any) -> str | None:
    """The dataset of an entry that tfrecreg wrote; None if someone else wrote it."""
    meta = entry.get("meta") if isinstance(entry, Mapping) else None
    name = meta.get(MARK) if isinstance(meta, Mapping) else None
    return name if isinstance(name, str) else None


def _parsed(text: str) -> Any:
    """The parsed file, with its comments."""
    yaml = _yaml()
    from ruamel.yaml.error import YAMLError

    try:
        found = yaml.load(text.replace("\r\n", "\n"))
    except (YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        raise UsageError(f"`{PIPELINE_NAME}` is not YAML{line}") from None
    found = {} if found is None else found
    for section in _SECTIONS:
        if not isinstance(found, dict) or not isinstance(found.get(section) or {}, dict):
            raise UsageError(
                f"`{PIPELINE_NAME}` should be a mapping, and so should its `{section}`"
            )
    return found


def _yaml() -> Any:
    """The reader and writer of YAML for DVC."""
    try:
        from ruamel.yaml import YAML
    except ImportError:
        raise MissingExtraError(f"reading and writing `{PIPELINE_NAME}`", "dvc") from None
    yaml = YAML()
    yaml.width = 1_000_000  # a command stays on one line
    yaml.preserve_quotes = True
    yaml.default_flow_style = False
    return yaml


def _written(
    text: str,
    data: Any,
    section: Section,
    changed: Mapping[str, StageEntry],
    removed: Sequence[str],
) -> str:
    """The text of the file with a changed section."""
    entries = data.setdefault(section, {})
    if entries is None:
        entries = data[section] = {}
    for name in removed:
        del entries[name]
    for name, entry in changed.items():
        there = entries.get(name)
        if not isinstance(there, dict):
            entries[name] = entry
            continue
        # ruamel.yaml keeps the comments of unchanged values.
        for key in [key for key in there if key not in entry]:
            del there[key]
        for key, value in entry.items():
            if there.get(key) != value:
                there[key] = value
    if not entries:
        del data[section]  # DVC refuses a section without entries
    stream = io.StringIO()
    if not hasattr(data, "ca"):  # the file contained only comments
        stream.write(text)
    if data:
        _yaml().dump(data, stream)
    return stream.getvalue()
