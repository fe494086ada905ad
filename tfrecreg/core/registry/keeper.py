"""Imports, on first use, the module that supports DVC. DVC keeps the bytes of releases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Literal, Protocol, cast

from tfrecreg.core.registry.manifest import Manifest
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.reference import Version

if TYPE_CHECKING:
    from tfrecreg.core.registry.history import Issue, Link
    from tfrecreg.core.registry.transaction import Transaction

_TRACKER = "tfrecreg.builtin.dvc.keeper"


class Tracker(Protocol):
    """DVC, which keeps the bytes of builds. Git has pointers to these bytes. `root` is the root of
    the registry. Only :meth:`named` and a required :meth:`begin` need DVC to be installed.
    """

    files: tuple[str, ...]
    """Files that are made by :meth:`begin` and belong in git."""

    def keep(self, change: Transaction, build: Manifest) -> str | None:
        """Keep the bytes of the build in DVC's cache, and verify them there."""

    def begin(
        self, root: str, *, wanted: bool, required: bool
    ) -> Literal["made", "there", "absent"]:
        """Make the registry a DVC repository if the user wants that and DVC is installed."""

    def locked(
        self, root: str, waiting: Callable[[], None] | None = None
    ) -> AbstractContextManager[None]:
        """Hold DVC's lock, which is reentrant. Call `waiting` once if another command holds it."""

    def pointers(self, folder: str) -> tuple[str, ...]:
        """The files in git that may have DVC's hash of a folder; the folder's own pointer first."""

    def named(self, data: bytes, where: str, folder: str) -> str | None:
        """DVC's hash of a folder, from `data`, the content of the pointer at `where`."""

    def pointer_issue(self, dataset: Dataset, links: Mapping[Version, Link]) -> Issue | None:
        """An issue if the build is a release in `links`, but the build's pointer is wrong."""

    def cached(self, root: str, value: str) -> Mapping[str, str]:
        """The files in this machine's cache that belong to the folder with the hash `value`, by
        path in that folder.
        """

    def keeps(self, registry: Registry, manifest: Manifest) -> bool:
        """Whether DVC is installed and has the bytes of this release."""

    def supply(
        self,
        dataset: Dataset,
        manifest: Manifest,
        paths: Collection[str],
        stage: Storage,
        progress: Progress,
    ) -> list[str]:
        """Copy into `stage` the files that DVC has, verify them, and return their paths."""

    def expect_current(self, registry: Registry, name: str) -> None:
        """Refuse a pipeline if a stage of this dataset does not name all settings that it uses."""


@cache
def tracker() -> Tracker:
    return cast("Tracker", import_module(_TRACKER).DVC)
