"""The operation `pipeline`: writes `dvc.yaml` and the files that its stages need."""

from __future__ import annotations

import datetime
import posixpath
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tfrecreg.builtin.dvc import dvc
from tfrecreg.builtin.dvc.dvc import PIPELINE_NAME
from tfrecreg.builtin.dvc.dvc_yaml import (
    Changes,
    StageEntry,
    artifact_of,
    edited,
    expect_params,
    owners,
    stages_of,
)
from tfrecreg.core.plugins.manager import plugins_of
from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.absence import expect_dataset, expect_same_schema, schema_hint
from tfrecreg.core.registry.registry import Registry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import without_secrets
from tfrecreg.core.storage.raw import path_of
from tfrecreg.core.values.errors import MissingExtraError, UsageError
from tfrecreg.core.values.text import ShortRepr, json_data

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
    text = storage.read(PIPELINE_NAME).decode("utf-8", "surrogateescape") if there else None
    tracked: set[str] = set()
    with_artifact = set(chosen)
    if not (names or only_artifacts):
        staged = owners(text, "stages")
        tracked = {each for each in chosen if each not in staged and _pointer(registry, each)}
        with_artifact -= tracked - owners(text, "artifacts")
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
    done, in_stages = text or "", Changes()
    if not only_artifacts:
        done, in_stages = edited(done, stages, prune=prune)
    done, in_artifacts = edited(done, artifacts, prune=prune, section="artifacts")
    changed = done != (text or "")
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
    with suppress(MissingExtraError):  # without a reader of YAML, no pipeline runs either
        expect_params(text, stages_of(registry, name))


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
            f"`build-{name}` would write it",
            hint=f"dvc remove {pointer}, which keeps the data, then tfrecreg pipeline {name}; "
            f"for its artifact alone: tfrecreg pipeline {name} --artifacts",
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
