"""The data that a user can name: a build, a release or files, with the manifest and the schema.

A user can name a build by its reference, its folder, a copy or URL of the folder, or some of its
shards. :mod:`tfrecreg.core.registry.find` finds the same build for all of these.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from blake3 import blake3

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
    RegistryLike,
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

if TYPE_CHECKING:
    from tfrecreg.core.check.scan.interface import Shard


class Data(ABC):
    """The data that one word of the user names: a :class:`Build`, `Release`, `FolderBuild` or
    `Files`.
    """

    kind: ClassVar[Literal["build", "release", "files"]]

    @property
    @abstractmethod
    def name(self) -> str:
        """The name as a user writes it, but escaped: ``mnist``, ``mnist@1.0.0``, or paths."""

    @property
    def registry(self) -> Registry | None:
        return None

    @property
    @abstractmethod
    def schema(self) -> str | None:
        """The text of the schema."""

    @property
    @abstractmethod
    def schema_path(self) -> str | None:
        """The schema's path or URL, for messages. In a registry it is relative to the registry."""


class Built(Data):
    """A folder with a manifest."""

    manifest: Manifest

    @abstractmethod
    def storage(self, *, to_check: bool = False) -> Readable:
        """The storage of its shards. If their bytes may differ from the manifest, the call is
        refused, unless the caller will check every byte (`to_check`).
        """


TargetLike: TypeAlias = str | os.PathLike[str] | Built
"""A reference, path, URL, glob or folder as text; or the object of a build or release."""
TargetsLike: TypeAlias = TargetLike | Iterable[TargetLike]


@dataclass(frozen=True)
class Resolved(Built):
    """The target of a reference: a :class:`Build` or a :class:`Release`."""

    dataset: Dataset
    manifest: Manifest = field(repr=False, hash=False)
    folder: str | None
    """The folder of the bytes in the registry; None if they are not on this machine."""

    def __str__(self) -> str:
        return self.name

    @property
    def registry(self) -> Registry:
        return self.dataset.registry

    @property
    def yanks(self) -> tuple[Yank, ...]:
        """The yanks of the release; empty for a build."""
        return ()

    @property
    @abstractmethod
    def schema_path(self) -> str: ...


@dataclass(frozen=True)
class Build(Resolved):
    """The build of a dataset: the folder that `build` or `adopt` made most recently."""

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
    """A release of a dataset: it has a version, and never changes."""

    kind = "release"
    version: Version
    proven: bool
    """Whether the manifest in `folder` is the released manifest. If not, `check` can still pass."""

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
        home = self.registry.storage
        folder = self.folder
        if folder is not None and folder.startswith(f"{layout.VERSIONS}/"):
            hold_copy(self.registry, folder)
            if home.stat(folder) is None:
                folder = None  # it was removed after it was found, before it was held
        if folder is None:
            raise absent_release(self.dataset, self.version, self.manifest)
        if not self.proven and not to_check:
            raise UsageError(
                f"it is uncertain whether `{folder}` has the bytes of `{self.name}`: the manifest "
                "in this folder is damaged or belongs to another build",
                hint=f"`tfrecreg check {self.name}` reads all bytes",
            )
        return home.below(folder)


@dataclass(frozen=True)
class FolderBuild(Built):
    """A build in a folder outside of a registry (for example a copy), or a build behind a URL."""

    kind = "build"
    _name: str
    manifest: Manifest = field(repr=False, hash=False)
    _storage: Readable

    @property
    def name(self) -> str:
        return self._name

    def storage(self, *, to_check: bool = False) -> Readable:  # noqa: ARG002 - releases use it
        return self._storage

    @property
    def schema_path(self) -> str:
        return f"{self._storage.root}/{SCHEMA_NAME}"

    @cached_property
    def schema(self) -> str | None:
        # Builds that were adopted in place and builds of earlier versions have no schema.
        try:
            data = self._storage.read(SCHEMA_NAME)
        except MissingFileError:
            return None
        if blake3(data).hexdigest() == self.manifest.schema.blake3:
            return data.decode("utf-8", "replace")
        if all(entry.path != SCHEMA_NAME for entry in self.manifest.files):
            return None  # a file of another tool
        raise ManifestError(
            f"`{self.schema_path}` is not the build's schema: the manifest has another digest",
        )


@dataclass(frozen=True)
class Files(Data):
    """Shards that the user named as files, and the build that they belong to, if any."""

    kind = "files"
    _name: str
    words: tuple[str, ...]
    """Paths, globs, folders (every shard below them) and ``prefix@N`` sets; each may be a URL."""
    shards: tuple[Shard, ...]
    build: Built | None = None
    whole: bool = False
    """Whether the user named a folder that contains the build."""
    notes: tuple[str, ...] = ()
    """One line for each file that was left out, with the reason."""

    @property
    def name(self) -> str:
        return self.build.name if self.build is not None and self.whole else self._name

    @property
    def registry(self) -> Registry | None:
        return self.build.registry if self.build is not None else None

    @property
    def manifest(self) -> Manifest | None:
        return self.build.manifest if self.build is not None else None

    @property
    def schema(self) -> str | None:
        return self.build.schema if self.build is not None else None

    @property
    def schema_path(self) -> str | None:
        return self.build.schema_path if self.build is not None else None


def expect_schema(resolved: Resolved) -> str:
    """The text of the schema; refuses data without a schema."""
    text = resolved.schema
    if text is None:
        raise absent_schema(resolved.dataset)
    return text


def resolve_in(registry: RegistryLike | None, reference: str | Resolved) -> Resolved:
    """The build or the release that `reference` names; a resolved target is returned unchanged."""
    if isinstance(reference, Resolved):
        return reference
    return resolve(open_registry(registry), reference)


def resolve(registry: Registry, text: str) -> Build | Release:
    """Find what the reference `text` names."""
    reference = parse_reference(text)
    dataset = registry.dataset(reference.name)
    if reference.selector is None:
        return _resolve_build(dataset)
    if reference.stage is not None:
        version = version_in_stage(dataset, reference.stage)
        reference = Reference(reference.name, str(version))
    versions, exact = dataset.versions, reference.version
    yanks: Mapping[Version, tuple[Yank, ...]] = {}
    if exact is None:
        yanks = yanked(dataset)
        exact = reference.pick(each for each in versions if each not in yanks)
    if exact is None or exact not in versions:
        raise absent_version(dataset, reference, versions, yanks)
    return open_release(dataset, exact)


def version_in_stage(dataset: Dataset, stage: str) -> Version:
    from tfrecreg.core.registry import git

    root = dataset.registry.storage.root
    if git.work_tree(root) is None:
        raise UsageError(
            f"`{dataset}#{stage}` names a stage, and stages are git tags, but the registry is not "
            "in a git work tree",
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


def resolve_folder(folder: Readable, registry: Registry | None = None) -> Build | Release | None:
    """The build or release whose folder in its registry is `folder`; None for any other folder."""
    # The path as written comes first: `data/mnist` may be a link to another disk.
    for path in dict.fromkeys((folder.root, os.path.realpath(folder.root))):
        *above, first, second, third = ("", "", "", *Path(path).parts)
        if second == layout.BUILDS and is_dataset_name(third):
            opened = _registry_at(Path(*above, first), registry)
            if opened is not None:
                dataset = opened.dataset(third)
                known = third in opened.config.datasets or bool(dataset.versions)
                return _resolve_build(dataset) if dataset.is_built() or known else None
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


def _release_in(dataset: Dataset, number: str, above: str) -> Release | None:
    version = next((each for each in dataset.versions if str(each) == number), None)
    if version is None:
        return None
    if above == layout.RELEASES:
        return open_release(dataset, version)
    manifest = dataset.release_manifest(version)
    folder = layout.version_folder(dataset.name, version)
    made = _manifests_beside(dataset, version)[folder]
    return Release(dataset, manifest, folder, version, _proves(made, manifest))


def _resolve_build(dataset: Dataset) -> Build:
    manifest = dataset.build_manifest()
    if manifest is None:
        raise absent_build(dataset)
    return Build(dataset, manifest, layout.build_folder(dataset.name))


def open_release(dataset: Dataset, version: Version) -> Release:
    """The release of an existing version. The release's bytes are in the build's folder or in the
    folder of the release's copy. If neither folder is usable, the release's folder is None.
    """
    manifest = dataset.release_manifest(version)
    found = _manifests_beside(dataset, version)
    for folder, made in found.items():
        if _proves(made, manifest):
            return Release(dataset, manifest, folder, version, proven=True)
    build, copy = found
    here = copy if found[copy] is not None else build if found[build] == "damaged" else None
    return Release(dataset, manifest, here, version, proven=False)


_Beside: TypeAlias = Manifest | Literal["damaged"] | None


def _manifests_beside(dataset: Dataset, version: Version) -> dict[str, _Beside]:
    """The manifests in the folders that may have a release's bytes: the build, then the copy."""
    found: dict[str, _Beside] = {}
    for folder in (layout.build_folder(dataset.name), layout.version_folder(dataset.name, version)):
        path = f"{folder}/{MANIFEST_NAME}"
        try:
            found[folder] = parse_manifest(dataset.registry.storage.read(path), path)
        except MissingFileError:
            found[folder] = None
        except (ManifestError, NewerFormatError):
            found[folder] = "damaged"
    return found


def _proves(made: _Beside, released: Manifest) -> bool:
    of = released.release
    return isinstance(made, Manifest) and of is not None and made.digest == of.build
