"""Checks whether releases are unchanged, and whether the parent of each is the previous release.

Reads manifests, schemas and git's history, never the bytes of shards.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.git import FileChange
from tfrecreg.core.registry.history import RANK, Issue, Link, link_of, step
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.manifest import MANIFEST_NAME, SCHEMA_NAME, Manifest, build_digest
from tfrecreg.core.registry.registry import Dataset, Registry, read_yanks
from tfrecreg.core.values.codes import (
    REG001,
    REG002,
    REG003,
    REG004,
    REG005,
    REG006,
    REG008,
    REG012,
    SRC100,
    SRC101,
)
from tfrecreg.core.values.errors import FailureError, ManifestError, MissingFileError, UsageError
from tfrecreg.core.values.findings import Code, Location
from tfrecreg.core.values.reference import Version, parse_reference, parse_version
from tfrecreg.core.values.text import safe

SHALLOW = "a shallow clone: the commits that added releases are not in it"
"""The text of :attr:`Audit.unseen` for a shallow clone."""
_FILES = (MANIFEST_NAME, SCHEMA_NAME)
_CAUSES = (REG002, REG004, REG006)
"""Codes for a release that was changed or removed, the worst first."""


def forks(links: Mapping[Version, Link], *, across: bool = False) -> Iterator[tuple[Link, Link]]:
    """Find releases whose parent is not the previous release in version order. For each such
    release, yield its link and the link of the newest release that it skipped.

    A skipped release is ignored if it has the same content as the parent and added no names.
    """
    ordered = sorted(links)
    for position, version in enumerate(ordered):
        link = links[version]
        parent = links.get(link.parent) if link.parent is not None else None
        between = [
            links[each]
            for each in ordered[:position]
            if (each.major != version.major) is across
            and (link.parent is None or each > link.parent)
        ]
        others = [
            each
            for each in between
            if parent is None or each.content != parent.content or each.level == "minor"
        ]
        if others:
            yield link, others[-1]


def _touched(registry: Registry, folder: str) -> dict[str, list[FileChange]]:
    """For each release file below a folder, its changes in git's history, newest first."""
    found: dict[str, list[FileChange]] = {}
    for touch in git.touches(registry.storage.root, folder):
        if version_in(touch.path) is not None:
            found.setdefault(touch.path, []).append(touch)
    return found


def ever_released(registry: Registry) -> set[str]:
    """The datasets that have or had a release in git's history."""
    return {path.split("/")[1] for path in _touched(registry, layout.RELEASES)}


def version_in(path: str) -> Version | None:
    """The version of the release that a file belongs to: ``registry/<name>/<version>/<file>``."""
    parts = path.split("/")
    if len(parts) == 4 and parts[3] in _FILES:
        with suppress(UsageError):
            return parse_version(parts[2])
    return None


def _settled(registry: Registry, added: Sequence[FileChange], now: str | None) -> bool:
    """Whether `now` is the blob from one of several branches that independently added a file."""
    root = registry.storage.root
    for one in added:
        others = [each for each in added if each is not one]
        if one.blob == now and others:
            bases = [git.merge_base(root, one.commit, each.commit) for each in others]
            if not any(each.commit == base for each, base in zip(others, bases, strict=True)):
                return True
    return False


@dataclass(slots=True)
class Audit:
    """The audited releases and the problems found."""

    links: dict[Version, Link] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)
    unseen: str = ""
    """Why git's history was not read completely; empty if all of it was read, or outside git."""


def audit(dataset: Dataset) -> Audit:
    found = Audit()
    name, versions = dataset.name, dataset.versions
    for version in versions:
        found.issues.extend(_alone(dataset, version, found.links))
    found.issues.extend(_parents(name, versions, found.links))
    found.issues.extend(fork_issue(name, *pair) for pair in forks(found.links))
    pointer = tracker().pointer_issue(dataset, found.links)
    if pointer is not None:
        found.issues.append(pointer)
    root = dataset.registry.storage.root
    if git.work_tree(root) is None:
        return found
    try:
        changed = list(_changed(dataset))
        found.unseen = SHALLOW if git.is_shallow(root) else ""
        found.issues = by_cause([*found.issues, *changed])
    except FailureError as error:
        found.unseen = error.message
    return found


def by_cause(issues: Iterable[Issue]) -> list[Issue]:
    """Merge the issues of each removed or changed release with those of its children."""
    causes: dict[Version, list[Issue]] = {}
    others: list[Issue] = []
    for issue in issues:
        if issue.code in _CAUSES:
            causes.setdefault(min(issue.versions), []).append(issue)
        else:
            others.append(issue)
    for version, group in causes.items():
        children = [each for each in others if each.code is REG003 and version in each.versions]
        group += (each for each in children if version != max(each.versions))
    seen = {id(each) for group in causes.values() for each in group}
    return [
        *(each for each in others if id(each) not in seen),
        *(_merged(version, group) for version, group in causes.items()),
    ]


def _merged(version: Version, group: Sequence[Issue]) -> Issue:
    first = max(group, key=lambda issue: bool(issue.command))
    places: dict[str | None, Location] = {}
    for issue in group:
        detail = issue.message if issue.message != first.message else None
        for place in issue.places or (Location(shard=issue.path, detail=detail),):
            if place.shard not in places or place.detail:
                places[place.shard] = place
    manifests = [path for path in places if path and path.endswith(f"/{version}/{MANIFEST_NAME}")]
    return replace(
        first,
        code=min((each.code for each in group if each.code in _CAUSES), key=_CAUSES.index),
        path=(*manifests, first.path)[0],
        versions=frozenset().union(*(each.versions for each in group)),
        places=tuple(places.values()),
    )


def _alone(dataset: Dataset, version: Version, links: dict[Version, Link]) -> Iterator[Issue]:
    folder = layout.release_folder(dataset.name, version)
    path = f"{folder}/{MANIFEST_NAME}"
    try:
        manifest = dataset.release_manifest(version)
        link = link_of(manifest)
        built = build_digest(dataset.registry.storage.read(path))
        if built != link.build:
            what = "it differs from the build that it names"
            digests = f"expected digest {safe(link.build[:16])}…, found {built[:16]}…"
            yield _issue(REG002, path, f"{what}: {digests}", version)
        links[version] = link
    except (UsageError, MissingFileError) as error:
        yield _issue(REG002, path, error.message, version)
    else:
        try:
            dataset.release_schema(version, manifest.schema.blake3)
        except (ManifestError, MissingFileError) as error:
            path = f"{folder}/{SCHEMA_NAME}"
            yield _issue(REG002, path, error.message, version)
        yield from parent_issues(dataset.registry, manifest, folder, version)
    try:
        read_yanks(dataset, version)
    except ManifestError as error:
        yield _issue(REG008, layout.yanks_path(dataset.name, version), error.message, version)


def parent_issues(
    registry: Registry, manifest: Manifest, folder: str, *versions: Version
) -> Iterator[Issue]:
    """Issues for parents of a derived dataset that are yanked, missing or changed."""
    path = f"{folder}/{MANIFEST_NAME}"
    for parent in manifest.parents:
        reference = parse_reference(parent.reference)
        dataset, version = registry.dataset(reference.name), reference.version
        if version is None or not dataset.versions:
            continue  # a build, or a release of another registry
        shown = f"its parent {parent.reference}"
        try:
            found = dataset.release_manifest(version).digest
            yanks = read_yanks(dataset, version)
        except MissingFileError:
            yield _issue(SRC101, path, f"{shown} is missing", *versions)
        except ManifestError:
            continue  # reported for the parent
        else:
            if found != parent.digest:
                what = f"had digest {safe(parent.digest[:16])}…, but now has {found[:16]}…"
                yield _issue(SRC101, path, f"{shown} {what}", *versions)
            for last in yanks[-1:]:
                what = f"was yanked on {safe(last.created)} by {safe(last.by)}: {safe(last.reason)}"
                yield _issue(SRC100, path, f"{shown} {what}", *versions)


def _parents(
    dataset: str, there: Sequence[Version], links: Mapping[Version, Link]
) -> Iterator[Issue]:
    """Issues: a version number understates a change, or a parent is wrong or missing."""
    for version, link in links.items():
        parent, path = link.parent, _manifest_path(dataset, version)
        if parent is None:
            continue
        if parent >= version:
            message = f"the parent of {version} should be an earlier release, but is {parent}"
            yield _issue(REG003, path, message, version)
            continue
        said = step(parent, version)
        if RANK[said] < RANK[link.level]:
            message = (
                f"the change since {parent} is {link.level}, but the version number says {said}"
            )
            yield _issue(REG001, path, message, version)
        if parent not in there:
            message = f"{version} was made after {parent}, which is missing"
            yield _issue(REG003, path, message, version, parent)
        elif parent in links and links[parent].digest != link.parent_digest:
            message = (
                f"{version} was made after {parent} with digest {safe(link.parent_digest[:16])}…, "
                f"but {parent} now has {links[parent].digest[:16]}…"
            )
            yield _issue(REG003, _manifest_path(dataset, parent), message, version, parent)


def fork_issue(dataset: str, link: Link, other: Link, where: str = "") -> Issue:
    """An issue about a release whose parent is not the previous release."""
    place = "before it" if link.parent is None else "between them"
    return _issue(
        REG005,
        _manifest_path(dataset, link.version),
        f"{link.version} was made {_after(link)}, and {other.version} comes {place}{where}",
        link.version,
        other.version,
    )


def left_out_issue(dataset: str, link: Link, other: Link, there: Version, where: str) -> Issue:
    """An issue: a release was made without the newest release of another MAJOR number that it
    skipped.
    """
    has = f", which {where} has"
    of_link, of_other = (has + ",", "") if there == link.version else ("", has)
    return _issue(
        REG012,
        _manifest_path(dataset, link.version),
        f"{link.version}{of_link} was made {_after(link)}, without {other.version}{of_other}",
        link.version,
        other.version,
    )


def _after(link: Link) -> str:
    return f"after {link.parent}" if link.parent is not None else "as a first release"


def _changed(dataset: Dataset) -> Iterator[Issue]:
    """Yield issues about releases with files that changed after a commit had added them."""
    registry = dataset.registry
    commits: dict[Version, dict[str, list[str]]] = {}
    issues: dict[Version, list[Issue]] = {}
    for path, touches in sorted(_touched(registry, f"{layout.RELEASES}/{dataset}").items()):
        # The first commit with a file counts as adding it, even where a shallow clone ends.
        added = [touch for touch in touches if touch.added]
        first = added[-1]
        try:
            now: str | None = git.blob_id(registry.storage.read(path), first.blob)
        except MissingFileError:
            now = None
        if now == first.blob or _settled(registry, added, now):
            continue
        # If there is no later commit, the change is in the work tree, or a merge took another file.
        later = touches[: touches.index(first)]
        version, commit = parse_version(path.split("/")[2]), first.commit[:12]
        code, done, found = REG004, "changed", "differs"
        if now is None:
            code, done, found = REG002, "removed", "is missing"
        added_by = f"`{dataset}@{version}`, which commit {commit} added"
        message = f"{added_by}, {found}"
        if later:
            message = f"commit {later[0].commit[:12]} {done} {added_by}"
        commits.setdefault(version, {}).setdefault(commit, []).append(path)
        issues.setdefault(version, []).append(_issue(code, path, message, version))
    for version, group in issues.items():
        folder = layout.release_folder(dataset.name, version)
        left = any(registry.storage.list(folder))
        restore = [
            f"git checkout {commit} -- {' '.join(map(shlex.quote, paths)) if left else folder}"
            for commit, paths in commits[version].items()
        ]
        yield _merged(version, [replace(group[0], command=" && ".join(restore)), *group[1:]])


def _manifest_path(dataset: str, version: Version) -> str:
    return f"{layout.release_folder(dataset, version)}/{MANIFEST_NAME}"


def _issue(code: Code, path: str, message: str, *versions: Version) -> Issue:
    return Issue(code=code, versions=frozenset(versions), path=path, message=message)
