"""The folder `versions/` as the keeper of releases: hard links, which outlive the next build.

Releases that were yanked: a file beside the folder of each, a line of JSON a yank.

Lines are appended and never changed, so that a file of two branches is the lines of both.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.history import below, expect_intact, repair_hint
from tfrecreg.core.registry.keeper import ReleaseChange
from tfrecreg.core.registry.manifest.file import parse_manifest
from tfrecreg.core.registry.manifest.model import MANIFEST_NAME, Manifest
from tfrecreg.core.registry.registry import Dataset, Releases
from tfrecreg.core.values.documents import (
    canonical_json,
    known_format,
    refusing,
    strict_json,
    texts_of,
)
from tfrecreg.core.values.errors import ConflictError, ManifestError, MissingFileError
from tfrecreg.core.values.reference import Version


def keep_in_versions(change: ReleaseChange, build: Manifest, version: Version) -> None:
    """Keep the bytes of a build, and never those of two releases of one number."""
    dataset = change.dataset
    storage = dataset.registry.storage
    folder = layout.build_folder(dataset.name)
    copy = layout.version_folder(dataset.name, version)
    _expect_leftover(dataset, copy, build, version)
    with change.stage("versions") as staged:
        for path in (*build.entries, MANIFEST_NAME):
            # A file that is missing is found below.
            if storage.stat(f"{folder}/{path}") is not None:
                staged.link(f"{folder}/{path}", path, origin=storage)
        expect_intact(
            build,
            below(staged),
            what=f"nothing was released: the bytes of `{dataset}`",
            hint=repair_hint(dataset.name),
            progress=change.progress,
        )
        change.undo(storage.remove, copy)
        change.replace(copy, staged, build, verified=True)


def _expect_leftover(dataset: Dataset, copy: str, build: Manifest, version: Version) -> None:
    """Refuse to replace the only bytes of a release that another branch has."""
    storage = dataset.registry.storage
    if storage.stat(f"{copy}/{MANIFEST_NAME}") is None:
        return
    folder = layout.release_folder(dataset.name, version)
    for data in git.blobs_of_refs(storage.root, folder, MANIFEST_NAME):
        other = parse_manifest(data, f"{folder}/{MANIFEST_NAME} in git").release
        if other is not None and other.build != build.digest:
            raise ConflictError(
                f"`{copy}` holds the bytes of another `{dataset}@{version}`, which a "
                "branch or tag names",
                hint=f"release under another number: tfrecreg release {dataset} --version X.Y.Z",
            )


YANKS_FORMAT = 1
"""The `format_version` of a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yank:
    """One yank of a release."""

    created: str
    """UTC, ISO 8601 to the second."""
    by: str
    reason: str


def read_yanks(dataset: Dataset, version: Version) -> tuple[Yank, ...]:
    """The yanks of a release, the first one first; empty where it was never yanked."""
    path = layout.yanks_path(dataset.name, version)
    try:
        data = dataset.registry.storage.read(path)
    except MissingFileError:
        return ()
    return parse_yanks(data, path)


def parse_yanks(data: bytes, where: str) -> tuple[Yank, ...]:
    """Read the lines of such a file."""
    found = []
    for number, line in enumerate(data.splitlines(), 1):
        with refusing(
            ManifestError,
            f"`{where}` is not a list of yanks: line {number}",
            hint=f"correct it: each line is one JSON object: git log -p -- {where}",
        ):
            found.append(_yank(line, f"`{where}`, line {number}: it has format"))
    if not found:
        raise ManifestError(
            f"`{where}` is not a list of yanks: it is empty",
            hint=f"restore it: git checkout -- {where}",
        )
    return tuple(dict.fromkeys(found))


def _yank(line: bytes, has: str) -> Yank:
    plain = strict_json(line)
    if not isinstance(plain, dict):
        raise ValueError("not a JSON object")
    return Yank(**texts_of(known_format(plain, YANKS_FORMAT, has), "created", "by", "reason"))


def yanked(dataset: Dataset, releases: Releases | None = None) -> dict[Version, tuple[Yank, ...]]:
    """The yanked releases of a dataset, with authors and reasons."""
    found = {}
    versions, noted = releases or dataset.releases()
    for version in versions:
        if version not in noted:
            continue
        yanks = read_yanks(dataset, version)
        if yanks:
            found[version] = yanks
    return found


def not_yanked(dataset: Dataset) -> list[Version]:
    """The releases of a dataset that are not yanked, oldest first."""
    releases = dataset.releases()
    gone = yanked(dataset, releases)
    return [version for version in releases.versions if version not in gone]


def append_yank(dataset: Dataset, version: Version, yank: Yank) -> bytes:
    """The bytes of the file with one more yank at its end."""
    before = b""
    if read_yanks(dataset, version):
        path = layout.yanks_path(dataset.name, version)
        before = dataset.registry.storage.read(path).rstrip(b"\n") + b"\n"
    return before + canonical_json({"format_version": YANKS_FORMAT, **asdict(yank)}) + b"\n"
