"""Releases that were yanked: a file beside the folder of each, a line of JSON a yank.

Lines are appended and never changed, so that a file of two branches is the lines of both.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tfrecreg.errors import ManifestError, MissingFileError, NewerFormatError
from tfrecreg.manifest.canonical import canonical_json, strict_json
from tfrecreg.reference import Version
from tfrecreg.registry import layout
from tfrecreg.registry.registry import Dataset, Releases
from tfrecreg.text import safe

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
    """The yanks of a release, the first one first; empty where it was never yanked.

    Raises:
        ManifestError: the file says something else.
        NewerFormatError: a newer tfrecreg wrote it.
    """
    path = layout.yanks_path(dataset.name, version)
    try:
        data = dataset.registry.storage.read(path)
    except MissingFileError:
        return ()
    return parse_yanks(data, path)


def parse_yanks(data: bytes, where: str) -> tuple[Yank, ...]:
    """Read the lines of such a file.

    Args:
        data: its bytes.
        where: what messages call it.

    Raises:
        ManifestError: a line is not what it should be.
        NewerFormatError: a newer tfrecreg wrote it.
    """
    found = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            found.append(_yank(line))
        except NewerFormatError as error:
            told = f"`{where}`, line {number}: {error.message}"
            raise NewerFormatError(told, hint=error.hint) from None
        except ValueError as error:
            raise ManifestError(
                f"`{where}` is not a list of yanks: line {number}: {safe(str(error))}",
                hint=f"correct it: each line is one JSON object: git log -p -- {where}",
            ) from None
    if not found:
        raise ManifestError(
            f"`{where}` is not a list of yanks: it is empty",
            hint=f"restore it: git checkout -- {where}",
        )
    return tuple(dict.fromkeys(found))


def _yank(line: bytes) -> Yank:
    plain = strict_json(line)
    if not isinstance(plain, dict):
        raise ValueError("not a JSON object")
    version = plain.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError("it has no `format_version`")
    if version > YANKS_FORMAT:
        raise NewerFormatError(
            f"it has format {version}, this tfrecreg supports {YANKS_FORMAT}",
            hint="pip install --upgrade tfrecreg",
        )
    values: dict[str, str] = {}
    for name in ("created", "by", "reason"):
        value = plain.get(name)
        if not isinstance(value, str):
            raise ValueError(f"it has no `{name}`")
        values[name] = value
    return Yank(**values)


def yanked(dataset: Dataset, releases: Releases | None = None) -> dict[Version, tuple[Yank, ...]]:
    """The yanked releases of a dataset, and who yanked them and why.

    Args:
        dataset: the dataset.
        releases: its releases, where they are known.

    Raises:
        ManifestError: one of the files says something else.
        NewerFormatError: a newer tfrecreg wrote one.
    """
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
    """The releases of a dataset that are not yanked, oldest first.

    Raises:
        ManifestError: a file of yanks cannot be read.
        NewerFormatError: a newer tfrecreg wrote one.
    """
    releases = dataset.releases()
    gone = yanked(dataset, releases)
    return [version for version in releases.versions if version not in gone]


def append_yank(dataset: Dataset, version: Version, yank: Yank) -> bytes:
    """The bytes of the file with one more yank at its end.

    Raises:
        ManifestError: the file that is there cannot be read.
    """
    before = b""
    if read_yanks(dataset, version):
        path = layout.yanks_path(dataset.name, version)
        before = dataset.registry.storage.read(path).rstrip(b"\n") + b"\n"
    return before + canonical_json({"format_version": YANKS_FORMAT, **asdict(yank)}) + b"\n"
