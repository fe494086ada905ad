"""Keeps releases with DVC: see :class:`tfrecreg.core.registry.keeper.Tracker`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Literal

from tfrecreg.builtin.dvc import dvc
from tfrecreg.core.registry import absence, layout
from tfrecreg.core.registry.history import Issue, Link, expect_intact, repair_hint
from tfrecreg.core.registry.keeper import Tracker
from tfrecreg.core.registry.manifest import MANIFEST_NAME, Manifest
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.registry.transaction import Transaction
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.codes import REG011
from tfrecreg.core.values.errors import (
    FailureError,
    ManifestError,
    MissingExtraError,
    NewerFormatError,
    RefusedError,
)
from tfrecreg.core.values.progress import Progress, working
from tfrecreg.core.values.reference import Version
from tfrecreg.core.values.text import safe


class _Dvc:
    """Keeps releases with DVC, through DVC's files and its Python API."""

    files: tuple[str, ...] = (".dvc/config", ".dvc/.gitignore", ".dvcignore")
    locked = staticmethod(dvc.locked)
    named = staticmethod(dvc.tracked_hash)

    def keep(self, change: Transaction, build: Manifest) -> str | None:
        storage = change.dataset.registry.storage
        if not dvc.usable(storage.root):
            return None
        folder = layout.build_folder(change.dataset.name)
        pointer = dvc.pointer(folder)
        before = storage.read(pointer) if storage.stat(pointer) is not None else None
        change.undo(_restore, change, pointer, before)
        value = _cached_hash(change, folder, build) or _cached_hash(change, folder, build)
        if value is None:
            raise FailureError(
                f"`{folder}` differs from its copy in DVC's cache: another process is changing one "
                "of them"
            )
        return value

    def begin(
        self, root: str, *, wanted: bool, required: bool
    ) -> Literal["made", "there", "absent"]:
        if dvc.initialised(root):
            return "there"
        if required and not dvc.available():
            raise MissingExtraError("keeping the bytes of releases with DVC", "dvc")
        if not (wanted and dvc.available()):
            return "absent"
        dvc.initialise(root)
        return "made"

    def pointers(self, folder: str) -> tuple[str, ...]:
        return dvc.pointer(folder), dvc.LOCK_NAME

    def pointer_issue(self, dataset: Dataset, links: Mapping[Version, Link]) -> Issue | None:
        # After a rebuild of an older release, the pointer may name any release: the next release
        # writes it again. A pointer to an unreleased build, or to the output of a stage in a
        # pipeline, cannot be judged.
        root, folder = dataset.registry.storage.root, layout.build_folder(dataset.name)
        try:
            build = dataset.build_manifest()
        except (ManifestError, NewerFormatError):
            return None  # a check of the build reports the fault
        if build is None:
            return None
        same = [link for link in links.values() if link.dvc and link.build == build.digest]
        if not same or not dvc.initialised(root) or absence.is_output(root, folder):
            return None
        newest = max(link.version for link in links.values())
        of = max(same, key=lambda link: link.version)
        legal = same if of.version == newest else list(links.values())
        found = absence.named_hash(root, folder)
        if found in {link.dvc for link in legal if link.dvc}:
            return None
        what = f"`{of.dvc}`, the bytes of `{dataset}@{of.version}`"
        message = f"it is missing: it should name {what}"
        if found is not None:
            other = f"`{safe(found)}`" if found else "no hash"
            message = f"it should name {what}, but names {other}"
        return Issue(
            code=REG011,
            versions=frozenset(link.version for link in same),
            path=dvc.pointer(folder),
            message=message,
        )

    def cached(self, root: str, value: str) -> Mapping[str, str]:
        if not dvc.usable(root):
            return {}
        try:
            return dvc.cached_files(root, value)
        except FailureError:
            return {}

    def keeps(self, registry: Registry, manifest: Manifest) -> bool:
        kept = manifest.release is not None and manifest.release.dvc is not None
        return kept and dvc.usable(registry.storage.root)

    def supply(
        self,
        dataset: Dataset,
        manifest: Manifest,
        paths: Collection[str],
        stage: Storage,
        progress: Progress,
    ) -> list[str]:
        if not self.keeps(dataset.registry, manifest):
            return []
        from tfrecreg.builtin.dvc.transfer import obtain  # only a repair needs it

        try:
            with dvc.locked(
                dataset.registry.storage.root, partial(progress.note, "waiting for DVC")
            ):
                obtain(dataset, manifest, paths, stage, None, progress, required=False)
        except (FailureError, RefusedError) as error:
            progress.note(f"cannot take a copy from DVC: {error.message}")
        return [path for path in paths if stage.stat(path) is not None]

    def expect_current(self, registry: Registry, name: str) -> None:
        from tfrecreg.builtin.dvc.pipeline import expect_pipeline

        expect_pipeline(registry, name)


def _cached_hash(change: Transaction, folder: str, build: Manifest) -> str | None:
    """Add a folder to DVC's cache. Returns DVC's hash of the folder, or None if the folder must be
    added again.

    DVC assumes that the bytes of an object match its name. This is false if a file changed between
    hashing and copying, or if the disk is failing. Such an object is removed, so that DVC does not
    trust it the next time.
    """
    from tfrecreg.builtin.dvc import cache

    dataset, progress = change.dataset, change.progress
    storage = dataset.registry.storage
    note = partial(progress.note, f"dvc add {folder}")
    with working(progress, f"keeping {dataset}", 0):
        value, files = dvc.keep(storage.root, folder, note)
    try:
        expect_intact(
            build,
            LocalStorage("/"),
            what=f"nothing was released: the bytes of `{dataset}` in DVC's cache",
            hint=repair_hint(dataset.name),
            progress=progress,
            places={path: at.lstrip("/") for path, at in files.items()},
        )
    except RefusedError:
        here = f"{storage.root}/{folder}"
        if cache.remove_corrupt({f"{here}/{path}": at for path, at in files.items()}):
            return None
        for path in (*build.entries, MANIFEST_NAME):
            if path not in files and storage.stat(f"{folder}/{path}") is not None:
                raise FailureError(
                    f"DVC did not add `{folder}/{path}` to its cache, and gave no reason",
                    hint=f"`dvc add {folder}` shows more",
                ) from None
        raise
    return value


def _restore(change: Transaction, pointer: str, before: bytes | None) -> None:
    """Restore DVC's pointer."""
    storage = change.dataset.registry.storage
    if before is None:
        storage.remove(pointer)
    elif storage.stat(pointer) is None or storage.read(pointer) != before:
        change.write(pointer, before)


DVC: Tracker = _Dvc()
