"""Folders in buckets that no build and no release refers to.

A folder is named by the plan of its build, and one beside it has the receipts. Releases of this
registry are known from its folders and from git; unpushed releases of other clones, and builds
that are being made, are not. So a folder goes only when nothing was added to it for a while.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tfrecreg.errors import ManifestError, NewerFormatError, UsageError
from tfrecreg.manifest.model import MANIFEST_NAME
from tfrecreg.operations.builds.bucket import RECEIPTS_SUFFIX, store_of
from tfrecreg.registry import layout
from tfrecreg.registry.locations import location_of, parse_location
from tfrecreg.registry.registry import Registry
from tfrecreg.storage.daemon_threads import at_once
from tfrecreg.storage.interface import Entry, Readable
from tfrecreg.storage.locations import LOCATION_NAME, store_at
from tfrecreg.text import safe
from tfrecreg.tracking import git

_PLAN = re.compile(rf"([0-9a-f]{{64}})({re.escape(RECEIPTS_SUFFIX)})?")
"""The folder of a build or of its receipts."""
_SECOND = 1_000_000_000
_DAY = 86_400 * _SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFolder:
    """A build in a bucket that nothing refers to."""

    url: str
    files: tuple[Entry, ...]
    """Everything below `url` and in its receipts, by path relative to the parent of `url`."""

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(entry.size for entry in self.files)


def unreferenced_folders(registry: Registry) -> Iterator[BucketFolder]:
    """The folders of builds that no build or release of this registry, in any ref, refers to.

    They are looked for where datasets put their builds today, and beside every known location.

    Raises:
        UsageError: a git remote has branches or tags that were not fetched.
        ManifestError, NewerFormatError: a location cannot be read, so references are unknown.
        FailureError: git refused, so references are unknown.
    """
    _expect_fetched(registry)
    known = set(_locations(registry))
    stores = (store_of(dataset) for dataset in registry.datasets())
    roots = {url.rpartition("/")[0] for url in known} | {each.root for each in stores if each}
    for root in sorted(roots):
        parent = store_at(root)
        for plan, folders in sorted(_plans(parent).items()):
            url = f"{root}/{plan}"
            if url not in known:
                files = tuple(_files(parent, folders))
                if files:
                    yield BucketFolder(url=url, files=files)


def is_old(folder: BucketFolder, days: int) -> bool:
    """Whether nothing was added for so many days. A store without times has no old folders.

    Args:
        days: at least 0.
    """
    times = [entry.mtime_ns for entry in folder.files]
    # Times below one second have bits of the ETag only: the store has no times.
    return min(times) >= _SECOND and time.time_ns() - max(times) >= days * _DAY


def remove_folder(folder: BucketFolder) -> bool:
    """Remove a folder and its receipts, unless a file was added since; whether it was removed.

    A removal that was cut short leaves no manifest, so that the rest is not taken for a build.
    """
    root, _, plan = folder.url.rpartition("/")
    parent = store_at(root)
    found = tuple(_files(parent, (plan, plan + RECEIPTS_SUFFIX)))
    if found != folder.files:
        return False
    for _, some in groupby(sorted(found, key=_order), key=_order):
        for _ in at_once(parent.remove, (entry.path for entry in some)):
            pass
    return True


def _expect_fetched(registry: Registry) -> None:
    """Refuse to go on while releases that others pushed are not fetched."""
    remotes = git.unfetched(registry.storage.root)
    if remotes:
        raise UsageError(
            f"the git remote `{safe(remotes[0])}` has branches or tags that are not here, and "
            "their releases may refer to folders in buckets",
            hint=f"git fetch --tags {safe(remotes[0])} '+refs/heads/*:refs/remotes/"
            f"{safe(remotes[0])}/*'",
        )


def _order(entry: Entry) -> tuple[bool, bool]:
    """The manifest first, then receipts, then all else."""
    folder, _, name = entry.path.rpartition("/")
    return name != MANIFEST_NAME, not folder.endswith(RECEIPTS_SUFFIX)


def _plans(parent: Readable) -> dict[str, list[str]]:
    """Names of the folders of each plan."""
    found: dict[str, list[str]] = defaultdict(list)
    for entry in parent.list(recursive=False):
        match = _PLAN.fullmatch(entry.path)
        if match and entry.kind == "dir":
            found[match[1]].append(entry.path)
    return found


def _files(parent: Readable, folders: Sequence[str]) -> Iterator[Entry]:
    for folder in sorted(folders):
        for entry in parent.list(folder):
            if entry.kind == "file":
                yield entry


def _locations(registry: Registry) -> Iterator[str]:
    """The URL of every build and release, here and in any ref."""
    for dataset in registry.datasets():
        folders = [layout.build_folder(dataset.name)]
        folders += [layout.release_folder(dataset.name, version) for version in dataset.versions]
        yield from filter(None, (location_of(registry, folder) for folder in folders))
    for data in git.blobs_of_refs(registry.storage.root, layout.RELEASES, LOCATION_NAME):
        try:
            yield parse_location(data, f"{layout.RELEASES}/…/{LOCATION_NAME} in git")
        except (ManifestError, NewerFormatError) as error:
            error.hint = "gc removes nothing while references cannot be determined"
            raise
