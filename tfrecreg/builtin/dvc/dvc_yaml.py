"""The stages of a dataset and its artifact, and a `dvc.yaml` in which others may have theirs.

`build` keeps its output (`persist`): DVC would remove it first, and with it what can be kept. One
stage measures and the next one judges: DVC does not remember what a stage wrote that fails, so a
failing check would leave no report behind. Reports are small and are git's (`cache: false`), the
data and the page are DVC's. The page has a stage of its own: a clone that has not pulled it would
repeat whatever stage makes it.

The parameters of a stage are the keys of the configuration that change its result. DVC refuses a
key that is not in the file, so only keys that are there are named. The stage `gate` depends on
whole files, and refuses where keys were added since: see `expect_pipeline`. DVC does not rerun a
stage that lost a parameter, so a comment in the command, which it compares, names the keys too.

The file is edited as DVC edits it, by the round trip of ruamel.yaml: comments stay, and lines have
the layout that DVC gives them.
"""

from __future__ import annotations

import datetime
import io
import posixpath
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
from tfrecreg.core.values.text import safe

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
    if not git.is_name(name):
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


Section = Literal["stages", "artifacts"]
"""A key of the file, below which are entries by their names."""
_SECTIONS: tuple[Section, ...] = ("stages", "artifacts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """The file with our entries of a section as they should be."""

    text: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Entries of datasets that are no longer configured."""


def edited(
    text: str | None, wanted: Mapping[str, StageEntry], *, prune: bool, section: Section = "stages"
) -> Edited:
    """The file's text with entries of a section added, updated and removed.

    An existing artifact under one of the names is kept if it has the expected path.
    """
    text = text or ""
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
    if not (updated or added or removed):
        return Edited(text=text)
    changed = {name: wanted[name] for name in updated + added}
    result = _written(text, data, section, changed, removed)
    return Edited(text=result, added=added, updated=updated, removed=removed)


def owners(text: str | None, section: Section) -> set[str]:
    """The datasets that have entries of ours in a section."""
    entries = _parsed(text or "").get(section) or {}
    return {name for name in map(_owner, entries.values()) if name is not None}


def expect_params(text: str, wanted: Mapping[str, StageEntry]) -> None:
    """Refuse stages of ours that do not name the parameters which they should."""
    there = _parsed(text).get("stages") or {}
    for name, entry in wanted.items():
        found: Any = there.get(name)
        if _owner(found) is not None and found.get("params", []) != entry.get("params", []):
            raise UsageError(
                f"`{PIPELINE_NAME}` lacks settings that `{safe(name)}` depends on: DVC may not "
                "have rerun it after they changed",
                hint="tfrecreg pipeline, then dvc repro",
            )


def _to_write(
    section: Section, entries: Mapping[str, Any], wanted: Mapping[str, StageEntry]
) -> dict[str, StageEntry]:
    """The wanted entries, without those that another dataset wrote."""
    ours: dict[str, StageEntry] = {}
    for name, entry in wanted.items():
        there = entries.get(name)
        if name not in entries or _owner(there) is not None:
            ours[name] = entry
        elif section == "stages":
            raise UsageError(
                f"`{PIPELINE_NAME}` has a stage `{safe(name)}` that tfrecreg did not write",
                hint="rename that stage, and what depends on it",
            )
        elif (path := _artifact_path(there)) != _artifact_path(entry):
            raise UsageError(
                f"`{PIPELINE_NAME}` has an artifact `{safe(name)}` that tfrecreg did not write: "
                f"expected the path `{_artifact_path(entry)}`, found `{safe(path)}`",
                hint=f"rename that artifact: tags `{safe(name)}@v…` are those of the dataset",
            )
    return ours


def _artifact_path(artifact: Any) -> str:
    path = artifact.get("path") if isinstance(artifact, Mapping) else None
    return posixpath.normpath(str(path))


def _owner(entry: Any) -> str | None:
    """The dataset of an entry of ours; None for a foreign entry."""
    meta = entry.get("meta") if isinstance(entry, Mapping) else None
    name = meta.get(MARK) if isinstance(meta, Mapping) else None
    return name if isinstance(name, str) else None


def _parsed(text: str) -> Any:
    """The file as data with comments."""
    yaml = _yaml()
    from ruamel.yaml.error import YAMLError

    try:
        found = yaml.load(text.replace("\r\n", "\n"))
    except (YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        raise UsageError(
            f"`{PIPELINE_NAME}` is not YAML{line}", hint="`dvc status` names the mistake"
        ) from None
    found = {} if found is None else found
    for section in _SECTIONS:
        if not isinstance(found, dict) or not isinstance(found.get(section) or {}, dict):
            raise UsageError(
                f"`{PIPELINE_NAME}` should be a mapping, and so should its `{section}`",
                hint="`dvc status` names the mistake",
            )
    return found


def _yaml() -> Any:
    """What reads and writes YAML for DVC."""
    try:
        from ruamel.yaml import YAML
    except ImportError:
        raise MissingExtraError(f"reading and writing `{PIPELINE_NAME}`", "dvc") from None
    yaml = YAML()
    yaml.width = 1_000_000  # a command stays in its line
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
    """The file with changes in a section."""
    entries = data.setdefault(section, {})
    if entries is None:
        entries = data[section] = {}
    for name in removed:
        _move_comment(data, section, name)
        del entries[name]
    for name, entry in changed.items():
        # Comments between two entries are more often about the second.
        last = name if name in entries else next(reversed(entries), None)
        if last is not None:
            _move_comment(data, section, last)
        entries[name] = entry
    if not entries:
        del data[section]  # DVC refuses a section without entries
    stream = io.StringIO()
    if not hasattr(data, "ca"):  # the file held nothing but comments
        stream.write(text)
    if data:
        _yaml().dump(data, stream)
    result = stream.getvalue()
    return result.replace("\n", "\r\n") if "\r\n" in text else result


def _move_comment(data: Any, section: str, name: str) -> None:
    """Move the lines of comment behind an entry in front of what follows."""
    from ruamel.yaml.error import CommentMark
    from ruamel.yaml.tokens import CommentToken

    lines = _take_comment(data[section][name])
    if not lines:
        return
    token = CommentToken(lines, CommentMark(0))
    for holder, key in ((data[section], name), (data, section)):
        names = list(holder)
        following = names[names.index(key) + 1 :]
        if following:
            slot = holder.ca.items.setdefault(following[0], [None, None, None, None])
            slot[1] = [token, *(slot[1] or ())]
            return
    data.ca.comment = data.ca.comment or [None, None]  # without one, no end is written
    data.ca.end = [token, *(data.ca.end or ())]


def _take_comment(node: Any) -> str:
    """Remove the lines of comment behind a node, which ruamel.yaml keeps with its last value."""
    while hasattr(node, "ca") and node:
        is_mapping = isinstance(node, Mapping)
        key = next(reversed(node)) if is_mapping else len(node) - 1
        slot, place = node.ca.items.get(key), 2 if is_mapping else 0
        if slot is not None and slot[place] is not None and "\n" in slot[place].value:
            same_line, end, lines = slot[place].value.partition("\n")
            slot[place].value = same_line + end
            return str(lines)
        node = node[key]
    return ""
