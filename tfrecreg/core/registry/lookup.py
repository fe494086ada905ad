"""From a reference to its manifest, its schema, and the folder of the bytes."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.absence import (
    absent_build,
    absent_release,
    absent_schema,
    absent_version,
)
from tfrecreg.core.registry.lock import hold_copy
from tfrecreg.core.registry.manifest import MANIFEST_NAME, SCHEMA_NAME, Manifest, parse_manifest
from tfrecreg.core.registry.registry import (
    Dataset,
    Registry,
    Yank,
    open_registry,
    read_yanks,
    yanked,
)
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.config import CONFIG_NAME
from tfrecreg.core.values.errors import (
    ManifestError,
    MissingFileError,
    NewerFormatError,
    NoSuchNameError,
    UsageError,
)
from tfrecreg.core.values.reference import (
    Reference,
    Version,
    is_dataset_name,
    parse_reference,
    parse_version,
)


def version_in_stage(dataset: Dataset, stage: str) -> Version:
    """The version of the release that is in a stage."""
    from tfrecreg.core.registry import git

    root = dataset.registry.storage.root
    if git.work_tree(root) is None:
        raise UsageError(
            f"`{dataset}#{stage}` is a stage, which git's tags name, and the registry is not in a "
            "git work tree",
            hint=f"name a version: `tfrecreg log {dataset}` shows them",
        )
    name = git.artifact(dataset.name, git.folder_in_tree(root))
    tags = git.list_tags(root, name)
    commit = git.in_stage(name, stage, tags)
    versions = {
        each.name.removeprefix(f"{name}@v").partition("#")[0]
        for each in tags
        if each.commit == commit and git.is_version(name, each.name)
    }
    if not versions:
        raise NoSuchNameError(
            f"no release of `{dataset}` is in the stage `{stage}`",
            hint=f"`tfrecreg tag {dataset}@latest --stage {stage}` assigns one; `git fetch --tags` "
            "fetches the tags of others",
        )
    return max(map(parse_version, versions))


_DAMAGED: Literal["damaged"] = "damaged"


@dataclass(frozen=True)
class Resolved(ABC):
    """What a reference names: a :class:`Build` or a :class:`Release`."""

    kind: ClassVar[Literal["build", "release"]]
    """Which of the two it is."""

    dataset: Dataset
    manifest: Manifest = field(repr=False, hash=False)
    folder: str | None
    """The folder of the bytes in the registry, None where they are not on this machine."""

    def __str__(self) -> str:
        return self.name

    @property
    def registry(self) -> Registry:
        """The registry that it belongs to."""
        return self.dataset.registry

    @property
    @abstractmethod
    def name(self) -> str:
        """As a user writes it: ``mnist`` or ``mnist@1.0.0``."""

    @property
    def yanks(self) -> tuple[Yank, ...]:
        """Yanks of the release; empty for a build.

        Raises:
            ManifestError: the file that says so cannot be read.
        """
        return ()

    @property
    @abstractmethod
    def schema_path(self) -> str:
        """The path of its schema in the registry."""

    @property
    @abstractmethod
    def schema(self) -> str | None:
        """The text of its schema, None where there is none."""

    @abstractmethod
    def storage(self, *, to_check: bool = False) -> Readable:
        """The storage that holds its shards, rooted at their folder.

        Args:
            to_check: whether the caller verifies every byte, so that the bytes may be damaged or
                those of another build. Otherwise only a build with exactly the same shards is
                accepted; its other files, such as labels, may differ.

        Raises:
            NotHereError: they are not on this machine.
            UsageError: they may be others.
        """


@dataclass(frozen=True)
class Build(Resolved):
    """The build of a dataset: the folder that `build` or `adopt` made last."""

    kind = "build"
    folder: str

    @property
    def name(self) -> str:
        return self.dataset.name

    @property
    def schema_path(self) -> str:
        return self.dataset.schema_path

    @property
    def schema(self) -> str | None:
        return self.dataset.schema_text()

    def storage(self, *, to_check: bool = False) -> Readable:  # noqa: ARG002 - releases use it
        return self.registry.storage.below(self.folder)


@dataclass(frozen=True)
class Release(Resolved):
    """A release of a dataset: immutable, under a version."""

    kind = "release"
    version: Version
    proven: bool
    """Whether the manifest in `folder` is the one that was released. If not, the bytes may still
    be those: `check` looks at each of them."""

    @property
    def name(self) -> str:
        return f"{self.dataset.name}@{self.version}"

    @property
    def yanks(self) -> tuple[Yank, ...]:
        return read_yanks(self.dataset, self.version)

    @property
    def schema_path(self) -> str:
        return f"{layout.release_folder(self.dataset.name, self.version)}/{SCHEMA_NAME}"

    @property
    def schema(self) -> str:
        return self.dataset.release_schema(self.version, self.manifest.schema.blake3)

    def storage(self, *, to_check: bool = False) -> Readable:
        if not to_check and not (self.folder is not None and self.proven):
            equal = self._folder_of_equal_shards()
            if equal is not None:
                return self.registry.storage.below(equal)
        folder = self.folder
        if folder is not None and folder.startswith(f"{layout.VERSIONS}/"):
            hold_copy(self.registry, folder)
            if self.registry.storage.stat(folder) is None:
                folder = None  # removed between finding and holding it
        if folder is None:
            raise absent_release(self.dataset, self.version, self.manifest)
        if not self.proven and not to_check:
            raise UsageError(
                f"the bytes in `{folder}` may not be those of `{self.name}`: their manifest "
                "is damaged, or that of another build",
                hint=f"`tfrecreg check {self.name}` looks at each of them",
            )
        return self.registry.storage.below(folder)

    def _folder_of_equal_shards(self) -> str | None:
        """The folder of another build whose manifest lists the very shards of this release."""
        wanted = _shards(self.manifest)
        for folder in _folders(self.dataset, self.version):
            found = _manifest_in(self.registry, folder)
            if isinstance(found, Manifest) and _shards(found) == wanted:
                return folder
        return None


def expect_schema(resolved: Resolved) -> str:
    """The text of its schema."""
    text = resolved.schema
    if text is None:
        raise absent_schema(resolved.dataset)
    return text


def resolve(registry: Registry, text: str) -> Build | Release:
    """Find what the reference `text` names."""
    reference = parse_reference(text)
    dataset = registry.dataset(reference.name)
    if reference.selector is None:
        return _resolve_build(dataset)
    if reference.stage is not None:
        version = version_in_stage(dataset, reference.stage)
        reference = Reference(reference.name, str(version))
    return _resolve_release(dataset, reference)


def resolve_folder(folder: str, registry: Registry | None = None) -> Build | Release | None:
    """The build or release that a folder is in its registry."""
    # The path as it is written comes first: `data/mnist` may be a link to another disk.
    for path in dict.fromkeys((os.path.abspath(folder), os.path.realpath(folder))):  # noqa: PTH100
        *above, first, second, third = ("", "", "", *Path(path).parts)
        if second == layout.BUILDS and is_dataset_name(third):
            opened = _registry_at(Path(*above, first), registry)
            if opened is not None:
                return _build_in(opened.dataset(third))
        if first in (layout.VERSIONS, layout.RELEASES) and is_dataset_name(second):
            opened = _registry_at(Path(*above), registry)
            if opened is not None:
                return _release_in(opened.dataset(second), third, first)
    return None


def _registry_at(root: Path, registry: Registry | None) -> Registry | None:
    if not os.path.isfile(root / CONFIG_NAME):  # noqa: PTH113 - False where it may not be looked at
        return None
    found = open_registry(root)
    same = registry is not None and registry.storage.root == found.storage.root
    return registry if same else found


def _build_in(dataset: Dataset) -> Build | None:
    known = dataset.name in dataset.registry.config.datasets or bool(dataset.versions)
    return _resolve_build(dataset) if dataset.is_built() or known else None


def _release_in(dataset: Dataset, number: str, above: str) -> Release | None:
    try:
        version = parse_version(number)
    except UsageError:
        return None
    if version not in dataset.versions:
        return None
    if above == layout.RELEASES:
        return open_release(dataset, version)
    manifest = dataset.release_manifest(version)
    folder = layout.version_folder(dataset.name, version)
    made = _manifest_in(dataset.registry, folder)
    return Release(dataset, manifest, folder, version, _proves(made, manifest))


def _resolve_build(dataset: Dataset) -> Build:
    manifest = dataset.build_manifest()
    if manifest is None:
        raise absent_build(dataset)
    return Build(dataset, manifest, layout.build_folder(dataset.name))


def _resolve_release(dataset: Dataset, reference: Reference) -> Release:
    releases = dataset.releases()
    version = reference.version
    yanks: Mapping[Version, tuple[Yank, ...]] = {}
    if version is None:
        yanks = yanked(dataset, releases)
        version = reference.pick(each for each in releases.versions if each not in yanks)
    if version is None or version not in releases.versions:
        raise absent_version(dataset, reference, releases.versions, yanks)
    return open_release(dataset, version)


def open_release(dataset: Dataset, version: Version) -> Release:
    """The release under a version that the dataset has."""
    manifest = dataset.release_manifest(version)
    folder, proven = _bytes_of(dataset, version, manifest)
    return Release(dataset, manifest, folder, version, proven)


def _bytes_of(dataset: Dataset, version: Version, manifest: Manifest) -> tuple[str | None, bool]:
    """The build while it still is the release, else the restored copy."""
    build, copy = _folders(dataset, version)
    registry = dataset.registry
    found = {folder: _manifest_in(registry, folder) for folder in (build, copy)}
    for folder, made in found.items():
        if _proves(made, manifest):
            return folder, True
    if found[copy] is not None:
        return copy, False
    return (build if found[build] == _DAMAGED else None), False


def _proves(made: Manifest | Literal["damaged"] | None, released: Manifest) -> bool:
    """Whether a manifest beside bytes is that of the build that was released."""
    build = released.release.build if released.release is not None else ""
    return isinstance(made, Manifest) and made.digest == build


def _folders(dataset: Dataset, version: Version) -> tuple[str, str]:
    """Possible folders of a release's bytes: the build, and the restored copy."""
    return layout.build_folder(dataset.name), layout.version_folder(dataset.name, version)


def _shards(manifest: Manifest) -> tuple[str, frozenset[tuple[str, int, str]]]:
    """Equal for builds of the same content in the same shards."""
    shards = ((each.path, each.bytes, each.blake3) for each in manifest.shards)
    return manifest.content, frozenset(shards)


def _manifest_in(registry: Registry, folder: str) -> Manifest | Literal["damaged"] | None:
    """The manifest in `folder`, or None."""
    path = f"{folder}/{MANIFEST_NAME}"
    try:
        return parse_manifest(registry.storage.read(path), path)
    except MissingFileError:
        return None
    except (ManifestError, NewerFormatError):
        return _DAMAGED
