"""Open a registry and read its content: datasets, releases and yanks.

The yanks of a release are in a file next to it, one line of JSON per yank. Lines are appended and
never changed, so a merge of two branches keeps the yanks of both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from blake3 import blake3

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import MANIFEST_NAME, SCHEMA_NAME, Manifest, parse_manifest
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import path_text
from tfrecreg.core.storage.raw import absolute_place
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


def find_registry(start: str | os.PathLike[str] = ".") -> Path | None:
    """The nearest readable folder with a `tfrecreg.toml`, from `start` upwards, or None."""
    here = _resolved(start)
    # os.path returns False where pathlib raises, for instance for a folder without read permission.
    return next(
        (folder for folder in (here, *here.parents) if os.path.isfile(folder / CONFIG_NAME)),  # noqa: PTH113
        None,
    )


def open_registry(folder: RegistryLike | None = None) -> Registry:
    """Open the registry that contains `folder`, by default the current folder."""
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
            hint="`tfrecreg init` makes one; `-C DIR` (in Python `registry=DIR`) selects one",
        )
    return Registry(LocalStorage(root))


def _resolved(start: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(LocalStorage(os.path.expanduser(start)).root))  # noqa: PTH111


@dataclass(frozen=True)
class Registry:
    """A registry, which is read through a storage. Only the configuration is cached."""

    storage: Storage

    @cached_property
    def config(self) -> Config:
        """`tfrecreg.toml` and all dataset files. An invalid dataset file breaks that dataset."""
        data = self._read(CONFIG_NAME)
        config = Config() if data is None else parse_config(data)
        found: dict[str, DatasetConfig] = {}
        broken: dict[str, DatasetConfigError] = {}
        for entry in self.storage.list(layout.DATASETS, recursive=False):
            name, _, suffix = entry.path.removeprefix(f"{layout.DATASETS}/").rpartition(".")
            # Editors and macOS put hidden files next to a file.
            if suffix != "toml" or name[:1] in ("", ".") or entry.kind in ("dir", "other"):
                continue
            if not is_dataset_name(name):
                raise ConfigError(
                    f"`{entry.path}`: `{name}` is not a dataset name: expected `[a-z][a-z0-9_]*`",
                )
            text = self._read(entry.path)
            try:
                if text is not None:
                    found[name] = parse_dataset(text, entry.path)
            except ConfigError as error:
                broken[name] = DatasetConfigError(error.message, hint=error.hint)
        return replace(config, datasets=found, broken=broken, home=self.storage.root)

    def dataset(self, name: str) -> Dataset:
        return Dataset(self, name)

    def datasets(self) -> list[Dataset]:
        """All datasets that are configured, built or released, sorted by name."""
        found = {Dataset(self, name) for name in (*self.config.datasets, *self.config.broken)}
        found.update(each for each in self._folders(layout.BUILDS) if each.is_built())
        found.update(each for each in self._folders(layout.RELEASES) if each.versions)
        return sorted(found, key=lambda each: each.name)

    def dataset_names(self) -> list[str]:
        return [each.name for each in self.datasets()]

    def _folders(self, path: str) -> Iterator[Dataset]:
        for entry in self.storage.list(path, recursive=False):
            name = entry.path.rpartition("/")[2]
            found = self.storage.stat(entry.path) if entry.kind == "link" else entry
            if found is not None and found.kind == "dir" and is_dataset_name(name):
                yield Dataset(self, name)

    def _read(self, path: str) -> bytes | None:
        # If this asked first whether the file exists, a build could replace the file in between.
        try:
            return self.storage.read(path)
        except MissingFileError:
            return None


@dataclass(frozen=True)
class Dataset:
    """A dataset of a registry: its configuration, its schema, its build and its releases. A
    dataset may lack any or all of these parts. Only the configuration is cached.
    """

    registry: Registry = field(repr=False, hash=False)
    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def config(self) -> DatasetConfig:
        return self.registry.config.dataset(self.name)

    @property
    def config_file(self) -> str:
        return layout.dataset_path(self.name)

    @property
    def raw_folder(self) -> str | None:
        """The folder or URL of the raw data that the configuration names; None if it names none."""
        raw = self.config.raw
        return raw if raw is None else absolute_place(raw, self.registry.storage.root)

    def is_built(self) -> bool:
        """Whether there is a build: a folder with a manifest, valid or not."""
        path = f"{layout.build_folder(self.name)}/{MANIFEST_NAME}"
        return self.registry.storage.stat(path) is not None

    @property
    def versions(self) -> list[Version]:
        """The versions of all releases, oldest first. A folder with a manifest or a schema is a
        release. So a release that lost only its manifest counts as damaged, not as removed.
        """
        found = []
        folder = self.registry.storage.below(f"{layout.RELEASES}/{self.name}")
        for name in (each.path for each in folder.list(recursive=False) if each.kind == "dir"):
            with suppress(UsageError):  # other folders are not releases
                version = parse_version(name)
                if any(folder.stat(f"{name}/{each}") for each in (MANIFEST_NAME, SCHEMA_NAME)):
                    found.append(version)
        return sorted(found)

    def release_manifest(self, version: Version) -> Manifest:
        path = f"{layout.release_folder(self.name, version)}/{MANIFEST_NAME}"
        manifest = parse_manifest(self.registry.storage.read(path), path)
        found = manifest.release.version if manifest.release is not None else None
        if (manifest.dataset, found) != (self.name, str(version)):
            raise _misplaced(path, manifest, f"{self.name}@{version}")
        return manifest

    def build_manifest(self) -> Manifest | None:
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
        return self.config.schema or layout.schema_path(self.name)

    def schema_text(self) -> str | None:
        data = self.registry._read(self.schema_path)
        if data is None:
            return None
        # git may have converted line ends, which does not change the schema.
        return data.decode("utf-8", "replace").replace("\r\n", "\n")

    def release_schema(self, version: Version, digest: str) -> str:
        """The schema in the folder of a release; refuses a schema whose blake3 is not `digest`."""
        path = f"{layout.release_folder(self.name, version)}/{SCHEMA_NAME}"
        data = self.registry.storage.read(path)
        found = blake3(data).hexdigest()
        if found != digest:
            raise ManifestError(
                f"`{path}` was changed after it was released: its digest should be "
                f"`{digest[:16]}…`, but it is `{found[:16]}…`",
                hint=f"restore it: git checkout -- {path}",
            )
        return data.decode("utf-8", "replace")


RegistryLike: TypeAlias = Registry | str | os.PathLike[str]


def _misplaced(path: str, manifest: Manifest, expected: str) -> ManifestError:
    found = manifest.dataset
    if manifest.release is not None:
        found += f"@{manifest.release.version}"
    return ManifestError(
        f"`{path}` should be the manifest of `{expected}`, but is that of `{found}`",
    )


YANKS_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Yank:
    """One yank of a release."""

    created: str
    """UTC, ISO 8601 to the second."""
    by: str
    reason: str


def read_yanks(dataset: Dataset, version: Version) -> tuple[Yank, ...]:
    """The yanks of a release, oldest first; empty if it was never yanked."""
    path = layout.yanks_path(dataset.name, version)
    try:
        data = dataset.registry.storage.read(path)
    except MissingFileError:
        return ()
    found = []
    for number, line in enumerate(data.splitlines(), 1):
        with refusing(ManifestError, f"`{path}` is not a list of yanks: line {number}"):
            plain = strict_json(line)
            if not isinstance(plain, dict):
                raise ValueError("not a JSON object")
            has = f"`{path}`, line {number}: it has format"
            texts = texts_of(known_format(plain, YANKS_FORMAT, has), "created", "by", "reason")
            found.append(Yank(**texts))
    if not found:
        raise ManifestError(f"`{path}` is not a list of yanks: the file is empty")
    return tuple(dict.fromkeys(found))


def yanked(dataset: Dataset) -> dict[Version, tuple[Yank, ...]]:
    """The yanked releases of a dataset, each with its yanks."""
    found = {version: read_yanks(dataset, version) for version in dataset.versions}
    return {version: yanks for version, yanks in found.items() if yanks}


def not_yanked(dataset: Dataset) -> list[Version]:
    """The releases of a dataset that are not yanked, oldest first."""
    return [version for version in dataset.versions if not read_yanks(dataset, version)]


def append_yank(dataset: Dataset, version: Version, yank: Yank) -> bytes:
    """The content of the release's file of yanks, with one more yank at its end."""
    before = b""
    if read_yanks(dataset, version):
        path = layout.yanks_path(dataset.name, version)
        before = dataset.registry.storage.read(path).rstrip(b"\n") + b"\n"
    return before + canonical_json({"format_version": YANKS_FORMAT, **asdict(yank)}) + b"\n"
