"""Who keeps the bytes of a release: DVC, or the folder `versions/`.

DVC keeps those of a registry in a DVC repository. It is a feature: the module that knows it is
named here, and loaded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from tfrecreg.core.registry.manifest import Manifest
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.reference import Version

if TYPE_CHECKING:
    from tfrecreg.core.registry.history import Issue, Link

_TRACKER = "tfrecreg.builtin.dvc.keeper"


class ReleaseChange(Protocol):
    """What a keeper has of the transaction that releases a build."""

    dataset: Dataset
    progress: Progress

    def stage(self, purpose: str) -> AbstractContextManager[Storage]:
        """As :meth:`tfrecreg.core.registry.transaction.Transaction.stage`, like the others."""

    def replace(
        self, folder: str, staged: Storage, manifest: Manifest, *, verified: bool = False
    ) -> None:
        """Put a staged folder in the place of a published one."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file of the registry, or replace it."""

    def undo(self, step: Callable[..., None], *arguments: Any) -> None:
        """Note a step to take back if the release fails; the last one is taken first."""


class Tracker(Protocol):
    """DVC: git has pointers to the bytes of builds. `root` is that of the registry, and folders
    are relative to it.

    DVC has to be installed for :meth:`keep`, its parser for :meth:`named`, and nothing for the
    others.
    """

    files: tuple[str, ...]
    """What :meth:`begin` makes for git."""

    def keep(self, change: ReleaseChange, build: Manifest) -> str | None:
        """Keep the bytes of the build in DVC's cache, and verify them there."""

    def begin(
        self, root: str, *, wanted: bool, required: bool
    ) -> Literal["made", "there", "absent"]:
        """Track a registry if that is wanted and DVC is installed."""

    def locked(
        self, root: str, waiting: Callable[[], None] | None = None
    ) -> AbstractContextManager[None]:
        """Hold DVC's lock; `waiting` is called once if another command has it. It is reentrant."""

    def pointers(self, folder: str) -> tuple[str, ...]:
        """The files in git that may name the bytes of a folder, its own pointer first."""

    def named(self, data: bytes, where: str, folder: str) -> str | None:
        """DVC's hash of a folder in the content `data` of the pointer `where`."""

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
        """Copy files of a build or release, as far as it has them, and hash them."""

    def expect_current(self, registry: Registry, name: str) -> None:
        """Refuse a pipeline whose stages of a dataset do not name all settings they depend on."""


@cache
def tracker() -> Tracker:
    """DVC, as a keeper."""
    return cast("Tracker", import_module(_TRACKER).DVC)
