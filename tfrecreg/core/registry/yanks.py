"""Releases that were yanked: a file beside the folder of each, a line of JSON a yank.

Lines are appended and never changed, so that a file of two branches is the lines of both.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.registry import Dataset, Releases
from tfrecreg.core.values.documents import (
    canonical_json,
    known_format,
    refusing,
    strict_json,
    texts_of,
)
from tfrecreg.core.values.errors import ManifestError, MissingFileError
from tfrecreg.core.values.reference import Version

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
