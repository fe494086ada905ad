"""The operation `pipeline`: writes the stages and the artifact of a dataset to `dvc.yaml`. Other
entries are left alone. Also writes the files that these stages need.

`build` keeps its output (`persist`), because DVC would otherwise remove the output before a build
that could reuse it. `check` writes the report and `gate` judges it. If one stage did both, a
failure would make DVC discard the report. Reports are small, so git keeps them (`cache: false`).
DVC keeps the data and the page. The page has its own stage. If another stage also made the page,
DVC would rerun that stage in every clone that lacks the page.

The parameters of a stage are the keys of the configuration that change its result. DVC refuses
missing keys, so a stage lists only existing keys. The stage `gate` depends on whole files. It fails
if keys were added later: see `expect_pipeline`. DVC does not rerun a stage that lost a parameter,
but it reruns a stage if its command changes. So a comment in the command lists the keys.

The file is edited with ruamel.yaml, as DVC does: comments are kept, and lines get DVC's layout.
"""

from __future__ import annotations

import datetime
import io
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from tfrecreg.builtin.dvc import dvc
from tfrecreg.builtin.dvc.dvc import PIPELINE_NAME
from tfrecreg.core.check.findings import PLOTS
from tfrecreg.core.plugins.manager import plugins_of
from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.absence import expect_dataset, expect_same_schema, schema_hint
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import without_secrets
from tfrecreg.core.storage.raw import path_of
from tfrecreg.core.values.config import CONFIG_NAME, DatasetConfig, next_expiry
from tfrecreg.core.values.documents import read_toml
from tfrecreg.core.values.errors import MissingExtraError, UsageError
from tfrecreg.core.values.reference import parse_reference
from tfrecreg.core.values.text import ShortRepr, json_data

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
    entries: Any = data.get(section) or {}
    wanted = _to_write(section, entries, wanted)
    updated = tuple(name for name in wanted if name in entries and entries[name] != wanted[name])
    added = tuple(name for name in wanted if name not in entries)
    removed = tuple(
        name
        for name, entry in entries.items()
        if name not in wanted and prune and _owner(entry) is not None
    )
    changes = Changes(added=added, updated=updated, removed=removed)
    if not changes:
        return text, changes
    entries = data.setdefault(section, {})
    if entries is None:
        entries = data[section] = {}
    for name in removed:
        del entries[name]
    for name in updated + added:
        there, entry = entries.get(name), wanted[name]
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
        stream.write(text if text.endswith("\n") or not text else f"{text}\n")
    if data:
        _yaml().dump(data, stream)
    return stream.getvalue(), changes


def _owners(text: str, section: Section) -> set[str]:
    """The datasets for which tfrecreg wrote entries in a section."""
    entries = _parsed(text).get(section) or {}
    return {name for name in map(_owner, entries.values()) if name is not None}


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
                f"the entry `{name}` in `{section}` of `{PIPELINE_NAME}` was not written by "
                "tfrecreg"
            )
    return ours


def _path(entry: Any) -> object:
    path = entry.get("path") if isinstance(entry, Mapping) else None
    return posixpath.normpath(path) if isinstance(path, str) else path


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


_KEEP = ".gitkeep"
"""Name of the file that makes git keep empty folders, such as those of releases and reports."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PipelineResult(ShortRepr):
    """The changes to `dvc.yaml`. They were applied, unless this was only a check."""

    datasets: tuple[str, ...]
    tracked: tuple[str, ...]
    """Datasets without stages: DVC tracks their builds with files `data/NAME.dvc`."""
    stages: Changes
    artifacts: Changes
    made: tuple[str, ...]
    """Files that stages need and that were missing."""
    is_dvc: bool
    """Whether the registry is in a DVC repository."""
    commands: tuple[str, ...]
    """The git commands to run next; empty outside git or if nothing was written."""

    @property
    def current(self) -> bool:
        """Whether there was nothing to do."""
        return not (self.stages or self.artifacts or self.made)

    def to_json(self) -> dict[str, Any]:
        """The document of ``pipeline --json``."""
        return {
            "current": self.current,
            "datasets": self.datasets,
            "tracked": self.tracked,
            **json_data(self.stages),
            "artifacts": self.artifacts,
            "made": self.made,
        }


def pipeline(
    registry: Registry,
    names: Sequence[str] = (),
    *,
    look: bool = False,
    only_artifacts: bool = False,
    today: datetime.date | None = None,
) -> PipelineResult:
    """Write stages and artifacts of datasets to `dvc.yaml`. With `look`, report the changes and
    write nothing.
    """
    chosen = _chosen(registry, names)
    storage = registry.storage
    there = storage.stat(PIPELINE_NAME) is not None
    text = storage.read(PIPELINE_NAME).decode("utf-8", "surrogateescape") if there else ""
    tracked: set[str] = set()
    with_artifact = set(chosen)
    if not (names or only_artifacts):
        staged = _owners(text, "stages")
        tracked = {each for each in chosen if each not in staged and _pointer(registry, each)}
        with_artifact -= tracked - _owners(text, "artifacts")
        if not look and len(tracked) == len(chosen):
            tracked.clear()  # its error says how to get stages
    stages: dict[str, StageEntry] = {}
    artifacts: dict[str, StageEntry] = {}
    missing: dict[str, bytes] = {}
    for each in chosen:
        if each in with_artifact:
            artifacts |= artifact_of(registry, each)
        if not (only_artifacts or each in tracked):
            _expect_no_pointer(registry, each)
            stages |= stages_of(registry, each, today=today)
            missing |= _missing(registry, each)
    prune = not names
    done, in_stages = text, Changes()
    if not only_artifacts:
        done, in_stages = edited(done, stages, prune=prune)
    done, in_artifacts = edited(done, artifacts, prune=prune, section="artifacts")
    changed = done != text
    if not look:
        for path, data in missing.items():
            storage.put_if_absent(path, data)
        if changed:
            with storage.create(PIPELINE_NAME) as writer:
                writer.write(done.encode("utf-8", "surrogateescape"))
    commands: tuple[str, ...] = ()
    if (changed or missing) and not look and git.work_tree(storage.root) is not None:
        added = f"git add {' '.join([PIPELINE_NAME, *missing])}"
        commands = (added, "git commit -m 'Update the pipeline'")
    return PipelineResult(
        datasets=tuple(each for each in chosen if each not in tracked),
        tracked=tuple(sorted(tracked)),
        stages=in_stages,
        artifacts=in_artifacts,
        made=tuple(missing),
        is_dvc=dvc.initialised(storage.root),
        commands=commands,
    )


def expect_pipeline(registry: Registry, name: str) -> None:
    """Refuse a `dvc.yaml` if a stage of the dataset does not list a setting that it depends on."""
    storage = registry.storage
    if name not in registry.config.datasets or storage.stat(PIPELINE_NAME) is None:
        return
    text = storage.read(PIPELINE_NAME).decode("utf-8", "surrogateescape")
    wanted = stages_of(registry, name)
    try:
        stages = _parsed(text).get("stages") or {}
    except MissingExtraError:
        return  # without a reader of YAML, no pipeline runs either
    for stage, entry in wanted.items():
        found: Any = stages.get(stage)
        if _owner(found) is not None and found.get("params", []) != entry.get("params", []):
            raise UsageError(
                f"`{PIPELINE_NAME}` lacks settings that `{stage}` depends on: DVC does not "
                "rerun the stage if such a setting changes",
                hint="tfrecreg pipeline, then dvc repro",
            )


def _chosen(registry: Registry, names: Sequence[str]) -> tuple[str, ...]:
    configured = registry.config.datasets
    # Without names, the stages of all other datasets are removed.
    for name in names or registry.config.broken:
        registry.config.dataset(name)
    for name in names:
        expect_dataset(registry.dataset(name))
        if name not in configured:
            raise UsageError(
                f"there is no `{layout.dataset_path(name)}`, so no stage can rebuild `{name}`"
            )
    # DVC does not watch raw data behind URLs.
    local = [name for name, config in sorted(configured.items()) if path_of(config.raw or "")]
    for name in names or (() if local else configured):
        raw = registry.dataset(name).config.raw or ""
        if path_of(raw) is None:
            raise UsageError(
                f"a pipeline is not supported for `{name}`: its raw data are "
                f"`{without_secrets(raw)}`, which DVC does not watch"
            )
    if not configured:
        raise UsageError("no dataset is configured yet")
    return tuple(dict.fromkeys(names or local))


def _expect_no_pointer(registry: Registry, name: str) -> None:
    """Raise a UsageError if a pointer file of DVC already tracks the output of a stage."""
    pointer = _pointer(registry, name)
    if pointer is not None:
        raise UsageError(
            f"DVC already tracks `{layout.build_folder(name)}` with `{pointer}`, but the stage "
            f"`build-{name}` would write the same folder",
            hint=f"run `dvc remove {pointer}`, which keeps the data, and then "
            f"`tfrecreg pipeline {name}`; "
            f"or write only the artifact with `tfrecreg pipeline {name} --artifacts`",
        )


def _pointer(registry: Registry, name: str) -> str | None:
    """The pointer file with which DVC tracks the output of a stage; None if there is none."""
    pointer = dvc.pointer(layout.build_folder(name))
    config = registry.dataset(name).config
    is_made = config.source is not None and config.raw is not None
    return pointer if is_made and registry.storage.stat(pointer) is not None else None


def _missing(registry: Registry, name: str) -> dict[str, bytes]:
    """Files that stages need but that do not exist, such as placeholders in empty folders."""
    found: dict[str, bytes] = {}
    for folder in (f"{layout.RELEASES}/{name}", layout.reports_folder(name)):
        if registry.storage.stat(folder) is None:
            found[f"{folder}/{_KEEP}"] = b""
    schema = registry.dataset(name).schema_path
    if registry.storage.stat(schema) is None:
        config = registry.dataset(name).config
        if config.source is None or config.raw is None:
            raise UsageError(
                f"`{name}` has no schema `{schema}`, and no source that provides one",
                hint=schema_hint(registry.dataset(name)),
            )
        known = plugins_of(registry.config)
        options, _ = known.source_options(config.source, config.options)
        raw = LocalStorage(posixpath.join(registry.storage.root, config.raw))
        text = known.open_source(config.source, raw, options).schema()
        expect_same_schema(registry.dataset(name), text)
        found[schema] = text.encode("utf-8")
    return found
