"""What git's history says of the files of releases: each comes with one commit, and stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfrecreg.errors import MissingFileError, UsageError
from tfrecreg.manifest import MANIFEST_NAME
from tfrecreg.reference import Version, parse_version
from tfrecreg.registry import layout
from tfrecreg.registry.registry import Registry
from tfrecreg.tracking import git
from tfrecreg.tracking.git import Touch

__all__ = ["ChangedFile", "History", "ever_released", "read_history", "version_in"]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file of a release that is not as the commit that added it has it."""

    version: Version
    path: str
    """In the registry."""
    added_by: str
    """The first commit that has it, as hex."""
    changed_by: str
    """The last commit that changed it since, as hex; empty where none did: it was changed in the
    work tree, or by a merge."""
    gone: bool
    """Whether it is not there any more."""


@dataclass(frozen=True, slots=True)
class History:
    """What git says of the releases of a dataset."""

    changes: tuple[ChangedFile, ...]
    """In order of path."""
    unseen: str
    """Why this is not the whole history; empty where it is."""


def read_history(registry: Registry, dataset: str) -> History | None:
    """Hold the files of all releases of a dataset against git's history; None outside git.

    What is in no commit yet has no history.

    Raises:
        FailureError: git refused, or is not there.
    """
    root = registry.storage.root
    if git.work_tree(root) is None:
        return None
    by_path: dict[str, list[Touch]] = {}
    for touch in git.touches(root, f"{layout.RELEASES}/{dataset}"):
        if version_in(touch.path) is not None:
            by_path.setdefault(touch.path, []).append(touch)
    unseen = "a shallow clone: the commits that added releases are not in it"
    return History(
        changes=tuple(_changes(registry, by_path)),
        unseen=unseen if git.is_shallow(root) else "",
    )


def ever_released(registry: Registry) -> set[str]:
    """The datasets of which git has seen a release, still there or not; none outside git.

    Raises:
        FailureError: git refused, or is not there.
    """
    root = registry.storage.root
    if git.work_tree(root) is None:
        return set()
    paths = {touch.path for touch in git.touches(root, layout.RELEASES)}
    return {path.split("/")[1] for path in paths if version_in(path) is not None}


def version_in(path: str) -> Version | None:
    """The version of the release that a file belongs to: ``registry/<name>/<version>/<file>``."""
    parts = path.split("/")
    if len(parts) != 4 or parts[3] not in (MANIFEST_NAME, layout.SCHEMA_NAME):
        return None
    try:
        return parse_version(parts[2])
    except UsageError:
        return None


def _settled(registry: Registry, added: Sequence[Touch], now: str | None) -> bool:
    """Whether branches that knew nothing of each other added it, and one of theirs it is."""
    root = registry.storage.root
    for one in added:
        others = [each for each in added if each is not one]
        if one.blob == now and others:
            bases = [git.merge_base(root, one.commit, each.commit) for each in others]
            if not any(each.commit == base for each, base in zip(others, bases, strict=True)):
                return True
    return False


def _changes(registry: Registry, by_path: Mapping[str, list[Touch]]) -> Iterator[ChangedFile]:
    for path in sorted(by_path):
        touches, version = by_path[path], version_in(path)
        added = [touch for touch in touches if touch.added]
        if not added or version is None:
            continue
        first = added[-1]
        try:
            now: str | None = git.blob_id(registry.storage.read(path), first.blob)
        except MissingFileError:
            now = None
        if now == first.blob or _settled(registry, added, now):
            continue
        later = touches[: touches.index(first)]
        changed_by = later[0].commit if later else ""
        yield ChangedFile(version, path, first.commit, changed_by, now is None)
