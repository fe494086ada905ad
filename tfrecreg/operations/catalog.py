"""Looking at a registry: what is in it, what one thing is, and how it came to be."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from tfrecreg.errors import TfrecregError
from tfrecreg.manifest import ChangeCounts, Manifest
from tfrecreg.reference import Version
from tfrecreg.registry import Registry, Resolved, expect_dataset
from tfrecreg.registry.yanks import Yank, held, read_yanks

__all__ = ["Listed", "LogEntry", "list_datasets", "log", "manifest_json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One dataset, in one line."""

    name: str
    state: Literal["configured", "built", "released", "broken"]
    latest: str
    """The newest release that was not withdrawn; empty where there is none."""
    releases: int
    records: int | None
    """Of the newest release, else of the build; None where there is neither."""
    bytes: int | None
    """Of its shards."""
    problem: str = ""
    """Why its manifest could not be read."""


def list_datasets(registry: Registry) -> list[Listed]:
    """Every dataset, in order of its name. One that is broken is listed as such."""
    return [_listed(registry, name) for name in registry.datasets()]


def _listed(registry: Registry, name: str) -> Listed:
    versions: list[Version] = []
    latest = ""
    try:
        versions = registry.versions(name)
        latest = str(versions[-1]) if versions else ""
        if versions:
            kept = held(registry, name)
            latest = str(kept[-1]) if kept else ""
            manifest: Manifest | None = registry.release_manifest(name, (kept or versions)[-1])
        else:
            manifest = registry.build_manifest(name)
    except TfrecregError as error:
        return Listed(
            name=name,
            state="broken",
            latest=latest,
            releases=len(versions),
            records=None,
            bytes=None,
            problem=error.message,
        )
    if manifest is None:
        state: Literal["configured", "built", "released"] = "configured"
    else:
        state = "released" if versions else "built"
    return Listed(
        name=name,
        state=state,
        latest=latest,
        releases=len(versions),
        records=sum(split.records for split in manifest.splits) if manifest else None,
        bytes=sum(shard.bytes for shard in manifest.shards) if manifest else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One release in the history of a dataset."""

    version: str
    created: str
    by: str
    level: str
    reasons: tuple[str, ...]
    records: int
    bytes: int
    note: str
    counts: ChangeCounts | None = None
    """What changed in numbers; None for a first release, and where nobody could tell."""
    yanks: tuple[Yank, ...] = ()
    """How it was withdrawn; empty where it was not."""


def log(registry: Registry, name: str) -> list[LogEntry]:
    """The releases of a dataset, the newest first; none where it is built or configured only.

    Raises:
        UsageError: there is no such dataset.
        ManifestError: one of them does not parse or breaks its digest.
    """
    entries = []
    versions = registry.versions(name)
    if not versions:
        expect_dataset(registry, name)
    for version in reversed(versions):
        manifest = registry.release_manifest(name, version)
        release, provenance = manifest.release, manifest.provenance
        entries.append(
            LogEntry(
                version=str(version),
                created=provenance.created if provenance else "",
                by=provenance.by if provenance else "",
                level=release.change.level if release else "",
                reasons=tuple(release.change.reasons) if release else (),
                records=sum(split.records for split in manifest.splits),
                bytes=sum(shard.bytes for shard in manifest.shards),
                note=provenance.note if provenance else "",
                counts=release.change.counts if release else None,
                yanks=read_yanks(registry, name, version),
            )
        )
    return entries


def manifest_json(resolved: Resolved) -> dict[str, Any]:
    """The manifest as JSON-able data, with the reference, where the bytes are, and how the release
    was withdrawn.
    """
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(resolved.manifest)
    return {
        "reference": resolved.name,
        "folder": resolved.folder,
        "manifest": plain,
        "yanks": [asdict(yank) for yank in resolved.yanks],
    }
