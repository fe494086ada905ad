"""The chain of the releases of a dataset: each names the one that it was made after."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from tfrecreg.core.registry.manifest.model import Manifest
from tfrecreg.core.registry.registry import Dataset
from tfrecreg.core.values.errors import MissingFileError, UsageError
from tfrecreg.core.values.findings import Code, Location
from tfrecreg.core.values.reference import Version, parse_version

RANK: Mapping[str, int] = {"initial": 0, "patch": 1, "minor": 2, "major": 3}
"""Rank of each level, smallest change first."""


@dataclass(frozen=True, slots=True)
class Link:
    """What the chain is made of: one release."""

    version: Version
    digest: str
    """Digest of its manifest."""
    content: str
    parent: Version | None
    parent_digest: str
    """Digest of the parent's manifest as recorded in this release; empty without a parent."""
    level: Literal["initial", "patch", "minor", "major"]
    """Level of the change that it records."""
    build: str = ""
    """Digest of the manifest of its build."""
    dvc: str | None = None
    """DVC's hash of its bytes; None without DVC."""


def link_of(manifest: Manifest) -> Link:
    """The link that a release's manifest is."""
    release = manifest.release
    if release is None:
        raise ValueError("the manifest of a build is not a link")
    parent = release.parent
    return Link(
        version=parse_version(release.version),
        digest=manifest.digest,
        content=manifest.content,
        parent=parse_version(parent.version) if parent is not None else None,
        parent_digest=parent.digest if parent is not None else "",
        level=release.change.level,
        build=release.build,
        dvc=release.dvc,
    )


def step(before: Version, after: Version) -> Literal["patch", "minor", "major"]:
    """The level of change that a number claims against another."""
    if after.major != before.major:
        return "major"
    return "minor" if after.minor != before.minor else "patch"


def links_of(dataset: Dataset) -> dict[Version, Link]:
    """The releases whose manifests hold."""
    found = {}
    for version in dataset.versions:
        with suppress(UsageError, MissingFileError):
            found[version] = link_of(dataset.release_manifest(version))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One thing that is wrong with releases."""

    code: Code
    versions: frozenset[Version]
    """Versions of the releases concerned."""
    path: str
    """The file or folder that it is about, in the registry."""
    message: str
    """One line with the expected and actual values."""
    command: str = ""
    """Restores the files; empty if none is known."""
    places: tuple[Location, ...] = ()
    """All files with the same cause; empty for `path` alone."""
