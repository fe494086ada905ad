"""Whether the releases of a dataset still are what was released, and follow each other.

Manifests, schemas and git's history are looked at, never the bytes of shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tfrecreg.codes import REG001, REG002, REG003, REG004, REG005, REG008
from tfrecreg.errors import FailureError, ManifestError, MissingFileError, UsageError
from tfrecreg.findings import Code
from tfrecreg.manifest import MANIFEST_NAME
from tfrecreg.manifest.file import build_digest
from tfrecreg.reference import Version
from tfrecreg.registry import layout
from tfrecreg.registry.chain import RANK, Link, forks, link_of, step
from tfrecreg.registry.history import History, read_history
from tfrecreg.registry.registry import Registry
from tfrecreg.registry.yanks import read_yanks
from tfrecreg.text import safe

__all__ = ["Audit", "Issue", "audit", "fork_issue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One thing that is wrong with releases."""

    code: Code
    versions: frozenset[Version]
    """Of the releases that it concerns."""
    path: str
    """The file or folder that it is about, in the registry."""
    message: str
    """One line: expected against found."""


@dataclass(slots=True)
class Audit:
    """What was looked at, and what was found."""

    links: dict[Version, Link] = field(default_factory=dict)
    """The releases whose manifests hold."""
    issues: list[Issue] = field(default_factory=list)
    unseen: str = ""
    """Why git's history was not looked at, or not all of it; empty where it was, outside git."""


def audit(registry: Registry, dataset: str) -> Audit:
    """Look at all releases of a dataset.

    Raises:
        NewerFormatError: a newer tfrecreg wrote one of them.
        StorageError: a file cannot be read.
    """
    found = Audit()
    for version in registry.versions(dataset):
        found.issues.extend(_alone(registry, dataset, version, found.links))
    found.issues.extend(_numbers(dataset, found.links))
    found.issues.extend(_parents(registry, dataset, found.links))
    found.issues.extend(fork_issue(dataset, *pair) for pair in forks(found.links))
    try:
        history = read_history(registry, dataset)
    except FailureError as error:
        found.unseen = error.message
        return found
    if history is not None:
        found.unseen = history.unseen
        found.issues.extend(_changed(history))
    return found


def _alone(
    registry: Registry, dataset: str, version: Version, links: dict[Version, Link]
) -> Iterator[Issue]:
    """What one release says of itself."""
    folder = layout.release_folder(dataset, version)
    path = f"{folder}/{MANIFEST_NAME}"
    try:
        manifest = registry.release_manifest(dataset, version)
        data = registry.storage.read(path)
        link = link_of(manifest)
        release = manifest.release
        built = build_digest(data)
        if release is not None and built != release.build:
            yield _issue(
                REG002,
                path,
                f"it says other things than the build that it names: expected digest "
                f"{safe(release.build[:16])}…, found {built[:16]}…",
                version,
            )
        links[version] = link
    except (UsageError, MissingFileError) as error:
        yield _issue(REG002, path, error.message, version)
    else:
        try:
            registry.release_schema(dataset, version, manifest.schema.blake3)
        except (ManifestError, MissingFileError) as error:
            path = f"{folder}/{layout.SCHEMA_NAME}"
            yield _issue(REG002, path, error.message, version)
    try:
        read_yanks(registry, dataset, version)
    except ManifestError as error:
        yield _issue(REG008, layout.yanks_path(dataset, version), error.message, version)


def _numbers(dataset: str, links: Mapping[Version, Link]) -> Iterator[Issue]:
    for version, link in links.items():
        if link.parent is None or link.parent >= version:
            continue  # a parent above its child is no parent: said elsewhere
        said = step(link.parent, version)
        if RANK[said] < RANK[link.level]:
            yield _issue(
                REG001,
                _manifest_path(dataset, version),
                f"the change since {link.parent} is {link.level}, the number says {said}",
                version,
            )


def _parents(registry: Registry, dataset: str, links: Mapping[Version, Link]) -> Iterator[Issue]:
    there = registry.versions(dataset)
    for version, link in links.items():
        parent = link.parent
        if parent is None:
            continue
        path = _manifest_path(dataset, version)
        if parent >= version:
            message = f"{version} says that it was made after {parent}, which does not come before"
            yield _issue(REG003, path, message, version)
        elif parent not in there:
            message = f"{version} was made after {parent}, which is not there"
            yield _issue(REG003, path, message, version, parent)
        elif parent in links and links[parent].digest != link.parent_digest:
            yield _issue(
                REG003,
                _manifest_path(dataset, parent),
                f"{version} was made after {parent} with digest {safe(link.parent_digest[:16])}…, "
                f"now it has {links[parent].digest[:16]}…",
                version,
                parent,
            )


def fork_issue(dataset: str, link: Link, other: Link, where: str = "") -> Issue:
    """That a release was not made after the one that comes before it.

    Args:
        dataset: the dataset.
        link: the release.
        other: the one before it.
        where: which branch has which of them, to be added to the message.
    """
    after = f"after {link.parent}" if link.parent is not None else "as a first release"
    return _issue(
        REG005,
        _manifest_path(dataset, link.version),
        f"{link.version} was made {after}, and {other.version} comes between them{where}",
        link.version,
        other.version,
    )


def _changed(history: History) -> Iterator[Issue]:
    """What git saw otherwise."""
    for change in history.changes:
        by = f"commit {change.changed_by[:12]}" if change.changed_by else "no commit"
        added = f"commit {change.added_by[:12]} added it"
        if change.gone:
            message = f"it is gone: {added}, {by} removed it"
            yield _issue(REG002, change.path, message, change.version)
        else:
            message = f"it is not as it was when {added}: {by} changed it since"
            yield _issue(REG004, change.path, message, change.version)


def _manifest_path(dataset: str, version: Version) -> str:
    return f"{layout.release_folder(dataset, version)}/{MANIFEST_NAME}"


def _issue(code: Code, path: str, message: str, *versions: Version) -> Issue:
    return Issue(code=code, versions=frozenset(versions), path=path, message=message)
