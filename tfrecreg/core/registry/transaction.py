"""Changes `data/`, `registry/`, `versions/`, and DVC's copies of them. No other module does.

A command opens a :func:`transaction` on a dataset, stages files in one of its folders, and
publishes them. Every byte of the staged files is verified against the manifest. Then one rename or
one exchange of folders makes the files visible. If the command fails or is killed before that, the
staged files stay invisible, and the next transaction on the dataset removes them.

Locks are taken in this order: the registry's lock (shared), the dataset's lock, the lock of the
settings, and DVC's own lock. :func:`removal` takes the registry's lock exclusively, so no other
command can be in the middle of a change.

A first build also publishes its schema. The schema is written before the build's folder appears, so
that no build is visible without it. A note in the stage lists the files that were written in
advance. If the folder does not appear, the next holder of the lock removes these files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import msgspec
from blake3 import blake3

from tfrecreg.core.registry import git, layout
from tfrecreg.core.registry.history import expect_intact, repair_hint
from tfrecreg.core.registry.indexes import indexes_not_kept, keep_indexes_of_release
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.lock import copy_unless_read, dataset_lock, registry_lock
from tfrecreg.core.registry.manifest import (
    MANIFEST_NAME,
    SCHEMA_NAME,
    Manifest,
    parse_manifest,
    render_manifest,
)
from tfrecreg.core.registry.registry import Dataset, Registry, Yank, append_yank
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.renames import ASIDE
from tfrecreg.core.storage.writer import is_temporary
from tfrecreg.core.values.documents import read_note, render_note
from tfrecreg.core.values.errors import (
    ConflictError,
    ManifestError,
    MissingFileError,
    NewerFormatError,
    StorageError,
)
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import Version, check_dataset_name


def _keep_in_versions(change: Transaction, build: Manifest, version: Version) -> None:
    """Keep the bytes of a build in `versions/`, unless another release has the same number."""
    dataset = change.dataset
    storage = dataset.registry.storage
    folder = layout.build_folder(dataset.name)
    copy = layout.version_folder(dataset.name, version)
    if storage.stat(f"{copy}/{MANIFEST_NAME}") is not None:
        released = layout.release_folder(dataset.name, version)
        for data in git.blobs_of_refs(storage.root, released, MANIFEST_NAME):
            other = parse_manifest(data, f"{released}/{MANIFEST_NAME} in git").release
            if other is not None and other.build != build.digest:
                raise ConflictError(
                    f"`{copy}` holds the bytes of another `{dataset}@{version}`; that release "
                    "is on a branch or tag: release this build under another number"
                )
    with change.stage("versions") as staged:
        for path in (*build.entries, MANIFEST_NAME):
            # `expect_intact` reports a missing file.
            if storage.stat(f"{folder}/{path}") is not None:
                staged.link(f"{folder}/{path}", path, origin=storage)
        expect_intact(
            build,
            staged,
            what=f"nothing was released: the bytes of `{dataset}`",
            hint=repair_hint(dataset.name),
            progress=change.progress,
        )
        change.undo(storage.remove, copy)
        change.replace(copy, staged, build, verified=True)


_WAITING = "waiting for another command"
_SWAP = "swap"
_PLAN = "plan-"
"""Prefix of the names of builds' staging folders. A killed build can be resumed from its folder."""


@contextlib.contextmanager
def transaction(dataset: Dataset, progress: Progress = SILENT) -> Iterator[Transaction]:
    """Hold the lock of a dataset, and remove the leftovers of a killed command."""
    check_dataset_name(dataset.name)
    registry = dataset.registry
    with dataset_lock(registry, dataset.name, lambda: progress.note(_WAITING)):
        _complete_exchanges(registry.storage, dataset.name)
        _settle_beside(dataset, layout.stage_folder(dataset.name))
        # The staging folders of builds that can be resumed stay.
        for entry in list(
            registry.storage.list(layout.stage_folder(dataset.name), recursive=False)
        ):
            if not entry.path.rpartition("/")[2].startswith(_PLAN):
                registry.storage.remove(entry.path)
        yield Transaction(dataset, progress)


class Transaction:
    """Changes to one dataset. Made by :func:`transaction`, which holds the lock."""

    def __init__(self, dataset: Dataset, progress: Progress) -> None:
        registry = dataset.registry
        self.dataset = dataset
        self.progress = progress
        self._storage = registry.storage
        self._undo = contextlib.ExitStack()
        self._stage = layout.stage_folder(dataset.name)

    @contextlib.contextmanager
    def stage(self, purpose: str) -> Iterator[Storage]:
        """An empty folder for staged files, which is removed at the end of the ``with`` block."""
        try:
            yield self._storage.below(f"{self._stage}/{purpose}")
        finally:
            self._discard(purpose)

    def plan_stage(self, plan: str) -> Storage:
        """The staging folder of a plan. From this folder, an unfinished build can be resumed. When
        a build that was staged in such a folder is published, all of these folders are removed.
        """
        return self._storage.below(f"{self._stage}/{_PLAN}{plan[:16]}")

    def discard_plans(self) -> None:
        for entry in list(self._storage.list(self._stage, recursive=False)):
            name = entry.path.rpartition("/")[2]
            if name.startswith(_PLAN):
                self._discard(name)

    def carry_over(self, folder: str, staged: Storage, manifest: Manifest) -> None:
        """Take the rest of a folder into `staged`: sound files, and everything that no manifest
        lists, except temporary files of killed writers.
        """
        listed = {*manifest.entries, MANIFEST_NAME}
        for entry in list(self._storage.list(folder)):
            path = entry.path.removeprefix(f"{folder}/")
            if entry.kind != "dir" and staged.stat(path) is None and not is_temporary(path):
                # A listed file may be a link to DVC's cache; other links belong to the user.
                staged.link(entry.path, path, origin=self._storage, follow=path in listed)

    def replace(
        self,
        folder: str,
        staged: Storage,
        manifest: Manifest,
        *,
        verified: bool = False,
        beside: Mapping[str, bytes] | None = None,
    ) -> None:
        if not verified:
            expect_intact(
                manifest,
                staged,
                what=f"the files that were written for `{folder}`",
                error=StorageError,
                progress=self.progress,
            )
        if folder == layout.build_folder(self.dataset.name):
            self._tried(keep_indexes_of_release, self.dataset)
        swap = f"{self._stage}/{_SWAP}/{folder.replace('/', '-')}"
        with self._tracked(), self._published_with(manifest, beside or {}):
            if not self._storage.rename_dir(self._registry_path(staged), swap):
                raise StorageError(
                    f"the folder `{swap}` already exists",
                    hint="`tfrecreg gc --apply` removes leftovers",
                )
            self._storage.replace_dir(swap, folder)
        # The build is published. Leftovers do no harm, and the next command removes them.
        planned = self._registry_path(staged).startswith(f"{self._stage}/{_PLAN}")
        self._discard("" if planned else _SWAP)

    def complete(
        self,
        staged: Storage,
        manifest: Manifest,
        *,
        indexes: str,
        files: Iterable[str],
        beside: Mapping[str, bytes],
    ) -> None:
        """Complete a build's folder that already has the shards: add indexes and other files, and
        the manifest last.

        If the call is killed, the folder holds either no build, or the old build with some new
        files. `check` reports these files. Repeating the call completes the change.
        """
        folder, source = layout.build_folder(self.dataset.name), self._registry_path(staged)
        for entry in list(self._storage.list(folder, recursive=False)):
            if is_temporary(entry.path):
                self._storage.remove_abandoned(entry.path)
        own = {f"{folder}/{name}": self._storage.read(f"{source}/{name}") for name in files}
        every = {**beside, **own}
        with self._tracked(), self._published_with(manifest, every):
            self._storage.replace_dir(f"{source}/{indexes}", f"{folder}/{indexes}")
            for path, data in own.items():
                if self._storage.read(path) != data:
                    self.write(path, data)
            self.write(f"{folder}/{MANIFEST_NAME}", render_manifest(manifest))

    def release(
        self,
        build: Manifest,
        version: Version,
        schema: str,
        sealed: Callable[[str | None], Manifest],
    ) -> Manifest | None:
        """Store and verify the bytes of the build, and commit the release by one rename."""
        # DVC's lock is held until the release names DVC's objects, so that `dvc gc` keeps them.
        with self._tracked(), contextlib.ExitStack() as self._undo:
            kept = tracker().keep(self, build)
            if kept is None:
                _keep_in_versions(self, build, version)
            # The next release is compared with the indexes of this release, which list its records.
            for entry in indexes_not_kept(self.dataset.registry, build):
                source = f"{layout.build_folder(self.dataset.name)}/{entry.path}"
                self._storage.link(source, layout.cached_index(entry.blake3))
            manifest = sealed(kept)
            try:
                committed = self._commit(manifest, version, schema)
            except StorageError:
                # After an error, the folder may be renamed, neither durable nor renamed back. If
                # the release exists, or if this is unknown, its files must stay.
                stands = True
                with contextlib.suppress(StorageError):
                    folder = layout.release_folder(self.dataset.name, version)
                    stands = self._storage.stat(folder) is not None
                if stands:
                    self._undo.pop_all()
                raise
            if not committed:
                return None
            self._undo.pop_all()
        return manifest

    def undo(self, step: Callable[..., None], *arguments: Any) -> None:
        """Register a step that undoes work if the release is refused."""
        self._undo.callback(self._tried, step, *arguments)

    def write(self, path: str, data: bytes) -> None:
        with self._storage.create(path) as writer:
            writer.write(data)

    def yank(self, version: Version, yank: Yank) -> None:
        data = append_yank(self.dataset, version, yank)
        self._keep_attributes()
        self.write(layout.yanks_path(self.dataset.name, version), data)

    def sync_releases(self) -> None:
        """Make the releases durable: a command may have been killed after it committed one."""
        for folder in (f"{layout.RELEASES}/{self.dataset}", layout.RELEASES, ""):
            self._storage.sync_dir(folder)

    def _tried(self, step: Callable[..., None], *arguments: Any) -> None:
        """Call a step that undoes work. Its error is only noted: the original error is reported."""
        try:
            step(*arguments)
        except StorageError as error:
            self.progress.note(f"leftovers may remain: {error.message}")

    def _commit(self, manifest: Manifest, version: Version, schema: str) -> bool:
        files = {
            MANIFEST_NAME: render_manifest(manifest),
            SCHEMA_NAME: schema.encode("utf-8"),
        }
        self._keep_attributes()
        with self.stage("release") as staged:
            for name, data in files.items():
                with staged.create(name) as writer:
                    writer.write(data)
            target = layout.release_folder(self.dataset.name, version)
            return self._storage.rename_dir(self._registry_path(staged), target)

    def _keep_attributes(self) -> None:
        """Add missing lines to git's attributes of `registry/`; other lines stay."""
        there: list[bytes] = []
        with contextlib.suppress(MissingFileError):
            there = self._storage.read(layout.ATTRIBUTES).splitlines()
        missing = [line for line in layout.ATTRIBUTE_LINES if line not in there]
        if missing:
            self.write(layout.ATTRIBUTES, b"".join(line + b"\n" for line in (*there, *missing)))

    def _tracked(self) -> contextlib.AbstractContextManager[None]:
        return tracker().locked(self._storage.root, lambda: self.progress.note(_WAITING))

    @contextlib.contextmanager
    def _published_with(self, manifest: Manifest, files: Mapping[str, bytes]) -> Iterator[None]:
        """Write the missing `files`. Remove them unless the ``with`` block publishes the build."""
        storage = self._storage
        missing = {path: data for path, data in files.items() if storage.stat(path) is None}
        if not missing:
            yield
            return
        try:
            digests = {path: blake3(data).hexdigest() for path, data in missing.items()}
            self.write(f"{self._stage}/{_NOTE}", render_note(_Note(manifest.digest, digests)))
            for path, data in missing.items():
                storage.put_if_absent(path, data)
            yield
        finally:
            self._tried(_settle_beside, self.dataset, self._stage)

    def _registry_path(self, staged: Storage) -> str:
        return str(PurePosixPath(staged.root).relative_to(self._storage.root))

    def _discard(self, name: str) -> None:
        """Remove the staging folder `name`, or all staging folders if `name` is empty. Also remove
        their parent if nothing is left in it.
        """
        try:
            self._storage.remove(f"{self._stage}/{name}" if name else self._stage)
            if not any(True for _ in self._storage.list(self._stage, recursive=False)):
                self._storage.remove(self._stage)
        except StorageError as error:
            # The folder is not published, and the next command on the dataset removes it.
            self.progress.note(f"leftovers remain in `{self._stage}`: {error.message}")


_NOTE = "beside.json"


class _Note(msgspec.Struct, frozen=True):
    manifest: str
    files: dict[str, str]
    """The blake3 of each file that was missing and was written, by path."""


def _settle_beside(dataset: Dataset, stage: str) -> None:
    """Remove files that were written for a build that was not published."""
    storage, place = dataset.registry.storage, f"{stage}/{_NOTE}"
    if storage.stat(place) is None:
        return
    try:
        note = read_note(storage.read(place), _Note)
    except ValueError:
        note = _Note("", {})  # another program wrote the note: it lists no file
    found: Manifest | None = None
    with contextlib.suppress(ManifestError, NewerFormatError):
        found = dataset.build_manifest()
    if found is None or found.digest != note.manifest:
        for path, digest in note.files.items():
            if storage.stat(path) is not None and blake3(storage.read(path)).hexdigest() == digest:
                storage.remove(path)
    storage.remove(place)


def _complete_exchanges(storage: Storage, dataset: str) -> None:
    """Finish each exchange of two folders that a kill interrupted. This occurs only on systems
    without an atomic exchange.
    """
    for entry in list(storage.list(f"{layout.stage_folder(dataset)}/{_SWAP}", recursive=False)):
        if entry.path.endswith(ASIDE):
            swap = entry.path.removesuffix(ASIDE)
            storage.replace_dir(swap, swap.rpartition("/")[2].replace("-", "/"))


@contextlib.contextmanager
def removal(registry: Registry, progress: Progress = SILENT) -> Iterator[Removal]:
    """Hold the locks of all datasets and of DVC, and complete the changes that a killed command
    left unfinished. While the locks are held, no command can start using an unreferenced file.
    """

    def waiting() -> None:
        progress.note(_WAITING)

    with (
        registry_lock(registry, layout.EVERYTHING, waiting),
        tracker().locked(registry.storage.root, waiting),
    ):
        for entry in list(registry.storage.list(layout.STAGE, recursive=False)):
            name = entry.path.rpartition("/")[2]
            _complete_exchanges(registry.storage, name)
            _settle_beside(registry.dataset(name), entry.path)
        yield Removal(registry, progress)


class Removal:
    """Removes unreferenced files. Made by :func:`removal`, which holds all locks."""

    def __init__(self, registry: Registry, progress: Progress) -> None:
        self._registry = registry
        self._progress = progress

    def remove(self, path: str) -> None:
        self._registry.storage.remove(path)

    def remove_temporary(self, path: str) -> bool:
        """Remove a temporary file unless a process is writing it; True if it was removed."""
        return self._registry.storage.remove_abandoned(path)

    def remove_copy(self, folder: str) -> bool:
        """Remove a release's copy unless another process reads it; True if it was removed."""
        with copy_unless_read(self._registry, folder) as free:
            if free:
                self._registry.storage.remove(folder)
            else:
                self._progress.note(f"`{folder}` is kept: another process reads it")
        return free
