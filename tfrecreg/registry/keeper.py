"""Who keeps the bytes of a release: a bucket, DVC, or the folder `versions/`.

A bucket keeps the bytes of builds that are made in it, DVC those of a registry in a DVC repository.
Both are features: the modules that know them are named here, and loaded when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Literal, Protocol, cast

from tfrecreg.manifest.model import Manifest
from tfrecreg.progress import Progress
from tfrecreg.reference import Version
from tfrecreg.registry.chain import Issue, Link
from tfrecreg.registry.registry import Dataset, Registry
from tfrecreg.storage.interface import Readable, Storage

_BUCKETS = "tfrecreg.registry.locations"
_TRACKER = "tfrecreg.operations.remote.keeper"


class ReleaseChange(Protocol):
    """What a keeper has of the transaction that releases a build."""

    dataset: Dataset
    progress: Progress

    def stage(self, purpose: str) -> AbstractContextManager[Storage]:
        """As :meth:`tfrecreg.registry.transaction.Transaction.stage`, like the others."""

    def replace(
        self, folder: str, staged: Storage, manifest: Manifest, *, verified: bool = False
    ) -> None:
        """Put a staged folder in the place of a published one."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file of the registry, or replace it."""

    def undo(self, step: Callable[..., None], *arguments: Any) -> None:
        """Note a step to take back if the release fails; the last one is taken first."""


@dataclass(frozen=True, slots=True)
class KeptBytes:
    """The part of a release that concerns the keeper of its bytes."""

    dvc: str | None = None
    """DVC's hash of the folder."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files beside its manifest, by name."""


class Keeper(Protocol):
    """Keeps the bytes of releases."""

    def keep(self, change: ReleaseChange, build: Manifest, version: Version) -> KeptBytes | None:
        """Keep the bytes of the build in the registry, and verify those that are kept; None where
        this build is for another keeper.

        Raises:
            UsageError: DVC's metadata disagree with the folder.
            RefusedError: the bytes that are kept are not those of the manifest.
            ConflictError: the number is another release's.
            FailureError: the keeper or the file system refused.
        """


class Buckets(Keeper, Protocol):
    """Buckets. The folder of a manifest, ``data/mnist`` or ``registry/mnist/1.0.0``, has a file
    that says where its shards are: both methods raise ManifestError where it is damaged, and
    NewerFormatError for one of a newer tfrecreg.
    """

    def location(self, registry: Registry, folder: str) -> str | None:
        """The URL of the shards of a build or release; None if they are not in a bucket."""

    def storage(self, registry: Registry, folder: str) -> Readable:
        """All files of a build, wherever they are, rooted at its folder."""


class Tracker(Keeper, Protocol):
    """DVC: git has pointers to the bytes of builds. `root` is that of the registry, and folders
    are relative to it.

    DVC has to be installed for :meth:`keep`, its parser for :meth:`named`, and nothing for the
    others.
    """

    files: tuple[str, ...]
    """What :meth:`begin` makes for git."""

    def begin(
        self, root: str, *, wanted: bool, required: bool
    ) -> Literal["made", "there", "absent"]:
        """Track a registry if that is wanted and DVC is installed.

        Raises:
            MissingExtraError: it is required, and DVC is not installed.
            FailureError: DVC refused.
        """

    def locked(
        self, root: str, waiting: Callable[[], None] | None = None
    ) -> AbstractContextManager[None]:
        """Hold DVC's lock; `waiting` is called once if another command has it. It is reentrant.

        Raises:
            FailureError: DVC refused.
        """

    def pointers(self, folder: str) -> tuple[str, ...]:
        """The files in git that may name the bytes of a folder, its own pointer first."""

    def named(self, data: bytes, where: str, folder: str) -> str | None:
        """DVC's hash of a folder in the content `data` of the pointer `where`.

        Raises:
            MissingExtraError: DVC is not installed.
        """

    def pointer_issue(self, dataset: Dataset, links: Mapping[Version, Link]) -> Issue | None:
        """What is wrong with the pointer to the build, if that is one of these releases."""

    def bring_command(self, root: str, folder: str) -> str:
        """The command that fetches a folder; empty if no pointer names it."""

    def cached(self, root: str, value: str) -> Mapping[str, str]:
        """The files of the folder with this hash in DVC's cache on this machine: absolute path by
        path in the folder. Empty if there are none, or they are unknown to DVC.
        """

    def keeps(self, registry: Registry, manifest: Manifest) -> bool:
        """Whether it is installed, and has the bytes of this release."""

    def supply(
        self,
        dataset: Dataset,
        manifest: Manifest,
        paths: Collection[str],
        stage: Storage,
        progress: Progress,
    ) -> list[str]:
        """Copy files of a build or release, as far as it has them, and hash them.

        Args:
            paths: of the files, without the manifest.
            progress: receives a note where DVC cannot help.

        Returns:
            the files that are there now.
        """

    def expect_current(self, registry: Registry, name: str) -> None:
        """Refuse a pipeline whose stages of a dataset do not name all settings they depend on.

        Raises:
            UsageError: it names others.
        """


@cache
def buckets() -> Buckets:
    """Buckets, as a keeper."""
    return cast("Buckets", import_module(_BUCKETS).BUCKETS)


@cache
def tracker() -> Tracker:
    """DVC, as a keeper."""
    return cast("Tracker", import_module(_TRACKER).DVC)
