"""Opening a registry and reading its content: datasets, releases, and which were yanked.

Lines are appended and never changed, so that a file of two branches is the lines of both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

from blake3 import blake3

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import (
    MANIFEST_NAME,
    SCHEMA_NAME,
    Manifest,
    Totals,
    parse_manifest,
    quick_totals,
    totals_of,
)
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import is_url, path_text
from tfrecreg.core.values.config import (
    CONFIG_NAME,
    Config,
    DatasetConfig,
    parse_config,
    parse_dataset,
)
from tfrecreg.core.values.documents import (
    canonical_json,
    known_format,
    refusing,
    strict_json,
    texts_of,
)
from tfrecreg.core.values.errors import (
    ConfigError,
    DatasetConfigError,
    ManifestError,
    MissingFileError,
    UsageError,
)
from tfrecreg.core.values.reference import Version, is_dataset_name, parse_version
from tfrecreg.core.values.text import safe


def find_registry(start: str | os.PathLike[str] = ".") -> Path | None:
    """The nearest folder from `start` upwards that holds a `tfrecreg.toml`, as git looks for it.

    Folders that may not be looked into hold none.
    """
    here = _resolved(start)
    # os.path says False where pathlib would raise: a folder above may be closed to us.
    return next(
        (folder for folder in (here, *here.parents) if os.path.isfile(folder / CONFIG_NAME)),  # noqa: PTH113
        None,
    )


def open_registry(folder: RegistryLike | None = None) -> Registry:
    """Open the registry that `folder` is or contains; without one, that of the current folder."""
    if isinstance(folder, Registry):
        return folder
    if folder is not None and not os.path.isdir(os.path.expanduser(folder)):  # noqa: PTH111, PTH112
        raise UsageError(
            f"there is no folder `{path_text(os.fsdecode(folder))}`",
            hint="`tfrecreg init DIR` makes one",
        )
    start = "." if folder is None else folder
    root = find_registry(start)
    if root is None:
        raise UsageError(
            f"no registry here: neither `{path_text(str(_resolved(start)))}` nor a folder above it "
            f"has a `{CONFIG_NAME}`",
            hint="`tfrecreg init` makes one; `-C DIR`, in Python `registry=DIR`, names one",
        )
    return Registry(LocalStorage(root))


def _resolved(start: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(LocalStorage(os.path.expanduser(start)).root))  # noqa: PTH111


class Releases(NamedTuple):
    """Content of the folder of a dataset's releases."""

    versions: list[Version]
    """Oldest first."""
    noted: frozenset[Version]
    """Versions with a file of yanks, including versions whose release is missing."""


@dataclass(frozen=True)
class Registry:
    """A registry, read through its storage. Nothing is cached but the configuration."""

    storage: Storage

    @cached_property
    def config(self) -> Config:
        """`tfrecreg.toml`, and the files of all datasets.

        A file of a dataset that does not parse, or has an invalid value, concerns that dataset
        alone.

        Raises:
            ConfigError: `tfrecreg.toml` does not parse or has an invalid value, or a file is not
                named after a dataset.
        """
        data = self._read(CONFIG_NAME)
        config = Config() if data is None else parse_config(data)
        found: dict[str, DatasetConfig] = {}
        broken: dict[str, DatasetConfigError] = {}
        for name, path, text in self._dataset_files():
            try:
                found[name] = parse_dataset(text, path)
            except ConfigError as error:
                broken[name] = DatasetConfigError(error.message, hint=error.hint)
        return replace(config, datasets=found, broken=broken, home=self.storage.root)

    def _dataset_files(self) -> Iterator[tuple[str, str, bytes]]:
        """Name, path and content of each."""
        for entry in self.storage.list(layout.DATASETS, recursive=False):
            name, dot, suffix = entry.path.removeprefix(f"{layout.DATASETS}/").rpartition(".")
            if suffix != "toml" or not dot or not name or entry.kind in ("dir", "other"):
                continue
            if not is_dataset_name(name):
                raise ConfigError(
                    f"`{safe(entry.path)}`: `{safe(name)}` is not a dataset name: expected "
                    "`[a-z][a-z0-9_]*`",
                    hint="rename the file, or move it out of that folder",
                )
            data = self._read(entry.path)
            if data is not None:
                yield name, entry.path, data

    def dataset(self, name: str) -> Dataset:
        """The dataset of that name, whether there is one or not."""
        return Dataset(self, name)

    def datasets(self) -> list[Dataset]:
        """All datasets: configured, built or released; sorted by name.

        A folder in `data/` without a manifest, or in `registry/` without a release, is ignored.
        """
        found = {Dataset(self, name) for name in (*self.config.datasets, *self.config.broken)}
        found.update(each for each in self._folders(layout.BUILDS) if each.is_built())
        found.update(each for each in self._folders(layout.RELEASES) if each._is_released())
        return sorted(found, key=lambda each: each.name)

    def dataset_names(self) -> list[str]:
        """The names of all datasets, sorted."""
        return [each.name for each in self.datasets()]

    def _folders(self, path: str) -> Iterator[Dataset]:
        for entry in self.storage.list(path, recursive=False):
            name = entry.path.rpartition("/")[2]
            if entry.kind == "dir" and is_dataset_name(name):
                yield Dataset(self, name)

    def _read(self, path: str) -> bytes | None:
        """The bytes of a file of the registry; None if it does not exist."""
        # Looking first would be a race with a build that is swapped in.
        try:
            return self.storage.read(path)
        except MissingFileError:
            return None


@dataclass(frozen=True)
class Dataset:
    """A dataset of a registry: its configuration, its schema, its build and its releases.

    There need not be one of that name: then all of these are empty or missing. Everything but the
    configuration is read again with each call.
    """

    registry: Registry = field(repr=False, hash=False)
    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def config(self) -> DatasetConfig:
        """Its configuration; all defaults where it has none.

        Raises:
            ConfigError: its file or that of the registry is damaged.
        """
        return self.registry.config.dataset(self.name)

    @property
    def config_file(self) -> str:
        """The file of its configuration, which need not exist."""
        return layout.dataset_path(self.name)

    @property
    def raw_folder(self) -> str | None:
        """The folder of the raw data that it is configured with, or its URL; None where there is
        none.
        """
        raw = self.config.raw
        return raw if raw is None or is_url(raw) else str(Path(self.registry.storage.root, raw))

    def is_built(self) -> bool:
        """Whether there is a build: a folder with a manifest, good or bad."""
        path = f"{layout.build_folder(self.name)}/{MANIFEST_NAME}"
        return self.registry.storage.stat(path) is not None

    def _is_released(self) -> bool:
        """Whether there is a release."""
        folder = self._release_folder()
        return any(_is_release(folder, name) for name, _ in _beside(folder))

    @property
    def versions(self) -> list[Version]:
        """The versions of every release, oldest first.

        A folder is a release if its name is a version and any of a release's files is in it: one
        that lost its manifest is damaged, not gone.
        """
        return self.releases().versions

    def releases(self) -> Releases:
        """The versions of every release, and those that have a file of yanks."""
        versions, noted = [], []
        folder = self._release_folder()
        for name, version in _beside(folder):
            if name.endswith(layout.YANKS_SUFFIX):
                noted.append(version)
            elif _is_release(folder, name):
                versions.append(version)
        return Releases(sorted(versions), frozenset(noted))

    def _release_folder(self) -> Storage:
        return self.registry.storage.below(f"{layout.RELEASES}/{self.name}")

    def release_manifest(self, version: Version) -> Manifest:
        """The manifest of one release.

        Raises:
            ManifestError: it does not parse, breaks its digest, or is another release's.
            MissingFileError: it is not there.
            NewerFormatError: a newer tfrecreg wrote it.
        """
        path = f"{layout.release_folder(self.name, version)}/{MANIFEST_NAME}"
        manifest = parse_manifest(self.registry.storage.read(path), path)
        found = manifest.release.version if manifest.release is not None else None
        if (manifest.dataset, found) != (self.name, str(version)):
            raise _misplaced(path, manifest, f"{self.name}@{version}")
        return manifest

    def release_totals(self, version: Version) -> Totals:
        """The totals of one release, for lists: read in a fraction of the time of its manifest.

        Raises:
            ManifestError, MissingFileError, NewerFormatError: as :meth:`release_manifest`.
        """
        path = f"{layout.release_folder(self.name, version)}/{MANIFEST_NAME}"
        totals = quick_totals(self.registry.storage.read(path), self.name, str(version))
        if totals is None:
            totals = totals_of(self.release_manifest(version))
        return totals

    def build_manifest(self) -> Manifest | None:
        """The manifest of the build; None without a build.

        Raises:
            ManifestError: it does not parse, breaks its digest, or is another build's.
            NewerFormatError: a newer tfrecreg wrote it.
        """
        path = f"{layout.build_folder(self.name)}/{MANIFEST_NAME}"
        data = self.registry._read(path)
        if data is None:
            return None
        manifest = parse_manifest(data, path)
        if manifest.dataset != self.name or manifest.release is not None:
            raise _misplaced(path, manifest, self.name)
        return manifest

    @property
    def schema_path(self) -> str:
        """The path of the working schema in the registry."""
        return self.config.schema or layout.schema_path(self.name)

    def schema_text(self) -> str | None:
        """The working schema's text; None without one."""
        data = self.registry._read(self.schema_path)
        if data is None:
            return None
        # git may have converted line ends, which are no change of a schema.
        return data.decode("utf-8", "replace").replace("\r\n", "\n")

    def release_schema(self, version: Version, digest: str) -> str:
        """The schema that was frozen with a release.

        Args:
            version: of the release.
            digest: blake3 of the schema's bytes, as the release's manifest has it.

        Raises:
            ManifestError: it is not the schema that the manifest names.
            MissingFileError: it is not there.
        """
        path = f"{layout.release_folder(self.name, version)}/{SCHEMA_NAME}"
        data = self.registry.storage.read(path)
        found = blake3(data).hexdigest()
        if found != digest:
            raise ManifestError(
                f"`{path}` was changed after it was released: its digest should be "
                f"`{safe(digest[:16])}…`, it is `{found[:16]}…`",
                hint=f"restore it: git checkout -- {path}",
            )
        return data.decode("utf-8", "replace")


RegistryLike: TypeAlias = Registry | str | os.PathLike[str]
"""An open registry, or a path in one."""


def _beside(folder: Storage) -> Iterator[tuple[str, Version]]:
    """Names of folders and of files with yanks, and the version that each is named by."""
    for entry in folder.list(recursive=False):
        name = entry.path
        if entry.kind != "dir" and not name.endswith(layout.YANKS_SUFFIX):
            continue
        try:
            yield name, parse_version(name.removesuffix(layout.YANKS_SUFFIX))
        except UsageError:
            continue  # other files are not releases


def _is_release(folder: Storage, name: str) -> bool:
    files = (MANIFEST_NAME, SCHEMA_NAME)
    return any(folder.stat(f"{name}/{file}") is not None for file in files)


def _misplaced(path: str, manifest: Manifest, expected: str) -> ManifestError:
    found = manifest.dataset
    if manifest.release is not None:
        found += f"@{manifest.release.version}"
    return ManifestError(
        f"`{path}` should be the manifest of `{expected}`, it is that of `{safe(found)}`",
        hint="a folder was copied or renamed: put it back, or make that build or release again",
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
