"""Lists the datasets of a registry and the history of a dataset, and shows a manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tfrecreg.core.registry.absence import expect_dataset
from tfrecreg.core.registry.data import Resolved
from tfrecreg.core.registry.manifest import ChangeCounts
from tfrecreg.core.registry.registry import Dataset, Registry, Yank, read_yanks
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.reference import Version
from tfrecreg.core.values.text import json_data


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What a list of datasets shows about one dataset."""

    name: str
    state: Literal["configured", "built", "released", "broken"]
    latest: str
    releases: int
    records: int | None
    """Number of records of the newest release, or else of the build; None if neither exists."""
    bytes: int | None
    problem: str = ""


def list_datasets(registry: Registry) -> list[Listed]:
    """Every dataset, in order of name. Broken datasets are included and marked."""
    return [_listed(dataset) for dataset in registry.datasets()]


def _listed(dataset: Dataset) -> Listed:
    versions: list[Version] = []
    latest = problem = ""
    totals: tuple[int | None, int | None] = None, None
    state: Literal["configured", "built", "released", "broken"] = "configured"
    try:
        versions = dataset.versions
        latest = str(versions[-1]) if versions else ""
        if versions:
            kept = [each for each in versions if not read_yanks(dataset, each)]
            latest = str(kept[-1]) if kept else ""
            state, totals = "released", dataset.release_manifest((kept or versions)[-1]).totals
        elif (build := dataset.build_manifest()) is not None:
            state, totals = "built", build.totals
        _ = dataset.config  # raises an error if it cannot be read
    except TfrecregError as error:
        state, totals, problem = "broken", (None, None), error.message
    return Listed(
        name=dataset.name,
        state=state,
        latest=latest,
        releases=len(versions),
        records=totals[0],
        bytes=totals[1],
        problem=problem,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One release in the history of a dataset."""

    version: str
    created: str
    by: str
    level: Literal["initial", "patch", "minor", "major"]
    reasons: tuple[str, ...]
    records: int
    bytes: int
    note: str
    parent: str | None = None
    counts: ChangeCounts | None = None
    yanks: tuple[Yank, ...] = ()
    parents: tuple[str, ...] = ()


def log(registry: Registry, name: str) -> list[LogEntry]:
    """The releases of a dataset, newest first; empty if it has only a build or a configuration."""
    entries = []
    dataset = registry.dataset(name)
    versions = dataset.versions
    if not versions:
        expect_dataset(dataset)
    for version in reversed(versions):
        manifest = dataset.release_manifest(version)
        release, provenance = manifest.release, manifest.provenance
        parent = release.parent if release else None
        records, size = manifest.totals
        entries.append(
            LogEntry(
                version=str(version),
                created=provenance.created if provenance else "",
                by=provenance.by if provenance else "",
                level=release.change.level if release else "initial",
                reasons=tuple(release.change.reasons) if release else (),
                records=records,
                bytes=size,
                note=provenance.note if provenance else "",
                parent=parent.version if parent else None,
                counts=release.change.counts if release else None,
                yanks=read_yanks(dataset, version),
                parents=tuple(each.reference for each in manifest.parents),
            )
        )
    return entries


def manifest_json(resolved: Resolved) -> dict[str, Any]:
    """The manifest as JSON-able data, with the reference, the folder and the yanks."""
    document: dict[str, Any] = json_data(
        {
            "reference": resolved.name,
            "folder": resolved.folder,
            "manifest": resolved.manifest,
            "yanks": resolved.yanks,
        }
    )
    return document
