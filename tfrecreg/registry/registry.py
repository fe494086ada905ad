"""Opening a registry and reading what is in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

from blake3 import blake3

from tfrecreg.config import CONFIG_NAME, Config, DatasetConfig, parse_config, parse_dataset
from tfrecreg.errors import ConfigError, ManifestError, MissingFileError, UsageError
from tfrecreg.manifest import MANIFEST_NAME, Manifest, parse_manifest
from tfrecreg.manifest.totals import Totals, quick_totals, totals_of
from tfrecreg.reference import Version, is_dataset_name, parse_version
from tfrecreg.registry import layout
from tfrecreg.storage import LocalStorage, Storage
from tfrecreg.storage.paths import path_text
from tfrecreg.text import safe


def find_registry(start: str | os.PathLike[str] = ".") -> Path | None:
    """The nearest folder from `start` upwards that holds a `tfrecreg.toml`, as git looks for it.

    Folders that may not be looked into hold none.

    Raises:
        StorageError: there is no current folder to start from.
    """
    here = _resolved(start)
    # os.path says False where pathlib would raise: a folder above may be closed to us.
    return next(
        (folder for folder in (here, *here.parents) if os.path.isfile(folder / CONFIG_NAME)),  # noqa: PTH113
        None,
    )


def open_registry(folder: RegistryLike | None = None) -> Registry:
    """Open the registry that `folder` is or lies in; without one, that of the current folder.

    Args:
        folder: a path; a registry that is open already is returned as it is.

    Raises:
        UsageError: there is no registry.
    """
    if isinstance(folder, Registry):
        return folder
    if folder is not None and not os.path.isdir(folder):  # noqa: PTH112 - as above
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
            hint="`tfrecreg init` makes one, `-C DIR` names one",
        )
    return Registry(LocalStorage(root))


def _resolved(start: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(LocalStorage(start).root))


class Releases(NamedTuple):
    """What is in the folder of a dataset's releases."""

    versions: list[Version]
    """Oldest first."""
    noted: frozenset[Version]
    """Those with a file of yanks beside them; it may be that of a release that is gone."""


@dataclass(frozen=True)
class Registry:
    """A registry, read through its storage. Nothing is cached but the configuration."""

    storage: Storage

    @cached_property
    def config(self) -> Config:
        """`tfrecreg.toml`, and the files of all datasets.

        Raises:
            ConfigError: a file does not parse or says something that it may not, is not named after
                a dataset, or is about a dataset that has a table in `tfrecreg.toml`.
        """
        data = self._read(CONFIG_NAME)
        config = Config() if data is None else parse_config(data)
        return replace(config, datasets={**config.datasets, **dict(self._dataset_files(config))})

    def _dataset_files(self, config: Config) -> Iterator[tuple[str, DatasetConfig]]:
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
            if name in config.tables:
                raise ConfigError(
                    f"`{name}` is configured twice: in `{entry.path}`, and in `{CONFIG_NAME}` by "
                    f"`[datasets.{name}]`",
                    hint="remove one of them; if both are equal, `tfrecreg init` does",
                )
            data = self._read(entry.path)
            if data is not None:
                yield name, parse_dataset(data, entry.path)

    def dataset_config(self, dataset: str) -> DatasetConfig:
        """What the configuration says of `dataset`; all defaults where it says nothing."""
        return self.config.datasets.get(dataset, DatasetConfig())

    def dataset_file(self, dataset: str) -> str:
        """The file that says it, or would: `tfrecreg.toml` where that has a table, else its own."""
        is_table = dataset in self.config.tables
        return CONFIG_NAME if is_table else layout.dataset_path(dataset)

    def described_in(self, dataset: str) -> str:
        """Where that is, for messages."""
        if dataset in self.config.tables:
            return f"`[datasets.{dataset}]` in `{CONFIG_NAME}`"
        return f"`{layout.dataset_path(dataset)}`"

    def datasets(self) -> list[str]:
        """The names of all datasets: configured, built or released; sorted.

        A folder in `data/` without a manifest, or in `registry/` without a release, is a
        stranger's.
        """
        found = set(self.config.datasets)
        found.update(name for name in self._folders(layout.BUILDS) if self.is_built(name))
        found.update(name for name in self._folders(layout.RELEASES) if self._is_released(name))
        return sorted(found)

    def _folders(self, path: str) -> Iterator[str]:
        for entry in self.storage.list(path, recursive=False):
            name = entry.path.rpartition("/")[2]
            if entry.kind == "dir" and is_dataset_name(name):
                yield name

    def is_built(self, dataset: str) -> bool:
        """Whether there is a build of `dataset`: a folder with a manifest, good or bad."""
        return self.storage.stat(f"{layout.build_folder(dataset)}/{MANIFEST_NAME}") is not None

    def versions(self, dataset: str) -> list[Version]:
        """The versions of every release of `dataset`, oldest first.

        A folder is a release if its name is a version and any of a release's files is in it: one
        that lost its manifest is damaged, not gone.
        """
        return self.releases(dataset).versions

    def releases(self, dataset: str) -> Releases:
        """The versions of every release of `dataset`, and which were yanked, it seems."""
        versions, noted = [], []
        folder = self._releases_of(dataset)
        for name, version in _beside(folder):
            if name.endswith(layout.YANKS_SUFFIX):
                noted.append(version)
            elif _is_release(folder, name):
                versions.append(version)
        return Releases(sorted(versions), frozenset(noted))

    def _is_released(self, dataset: str) -> bool:
        folder = self._releases_of(dataset)
        return any(_is_release(folder, name) for name, _ in _beside(folder))

    def _releases_of(self, dataset: str) -> Storage:
        return self.storage.below(f"{layout.RELEASES}/{dataset}")

    def release_manifest(self, dataset: str, version: Version) -> Manifest:
        """The manifest of one release.

        Raises:
            ManifestError: it does not parse, breaks its digest, or is another release's.
            MissingFileError: it is not there.
            NewerFormatError: a newer tfrecreg wrote it.
        """
        path = f"{layout.release_folder(dataset, version)}/{MANIFEST_NAME}"
        manifest = parse_manifest(self.storage.read(path), path)
        found = manifest.release.version if manifest.release is not None else None
        if (manifest.dataset, found) != (dataset, str(version)):
            raise _misplaced(path, manifest, f"{dataset}@{version}")
        return manifest

    def release_totals(self, dataset: str, version: Version) -> Totals:
        """What a list says of one release, read in a fraction of the time.

        Raises:
            ManifestError, MissingFileError, NewerFormatError: as :meth:`release_manifest`.
        """
        path = f"{layout.release_folder(dataset, version)}/{MANIFEST_NAME}"
        totals = quick_totals(self.storage.read(path), dataset, str(version))
        if totals is None:
            totals = totals_of(self.release_manifest(dataset, version))
        return totals

    def build_manifest(self, dataset: str) -> Manifest | None:
        """The manifest of the build, None where there is no build.

        Raises:
            ManifestError: it does not parse, breaks its digest, or is another build's.
            NewerFormatError: a newer tfrecreg wrote it.
        """
        path = f"{layout.build_folder(dataset)}/{MANIFEST_NAME}"
        data = self._read(path)
        if data is None:
            return None
        manifest = parse_manifest(data, path)
        if manifest.dataset != dataset or manifest.release is not None:
            raise _misplaced(path, manifest, dataset)
        return manifest

    def schema_path(self, dataset: str) -> str:
        """Where the working schema of `dataset` is."""
        return self.dataset_config(dataset).schema or layout.schema_path(dataset)

    def schema_text(self, dataset: str) -> str | None:
        """The working schema's text, None where there is none."""
        data = self._read(self.schema_path(dataset))
        return None if data is None else data.decode("utf-8", "replace")

    def release_schema(self, dataset: str, version: Version, digest: str) -> str:
        """The schema that was frozen with a release.

        Args:
            dataset: of the release.
            version: of the release.
            digest: blake3 of the schema's bytes, as the release's manifest has it.

        Raises:
            ManifestError: it is not the schema that the manifest names.
            MissingFileError: it is not there.
        """
        path = f"{layout.release_folder(dataset, version)}/{layout.SCHEMA_NAME}"
        data = self.storage.read(path)
        found = blake3(data).hexdigest()
        if found != digest:
            raise ManifestError(
                f"`{path}` was changed after it was released: its digest should be "
                f"`{safe(digest[:16])}…`, it is `{found[:16]}…`",
                hint=f"restore it: git checkout -- {path}",
            )
        return data.decode("utf-8", "replace")

    def _read(self, path: str) -> bytes | None:
        # Looking first would be a race with a build that is swapped in.
        try:
            return self.storage.read(path)
        except MissingFileError:
            return None


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
            continue  # a stranger's is no release


def _is_release(folder: Storage, name: str) -> bool:
    files = (MANIFEST_NAME, layout.SCHEMA_NAME)
    return any(folder.stat(f"{name}/{file}") is not None for file in files)


def _misplaced(path: str, manifest: Manifest, expected: str) -> ManifestError:
    found = manifest.dataset
    if manifest.release is not None:
        found += f"@{manifest.release.version}"
    return ManifestError(
        f"`{path}` should be the manifest of `{expected}`, it is that of `{safe(found)}`",
        hint="a folder was copied or renamed: put it back, or make that build or release again",
    )
