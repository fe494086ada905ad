"""Examines what a build finds: raw data, leftovers of writers, files that it must not lose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice

from blake3 import blake3

from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import Manifest, RawTotals, is_adopted
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.raw import RawStorage, raw_storage
from tfrecreg.core.storage.writer import is_temporary
from tfrecreg.core.values.documents import read_note, render_note
from tfrecreg.core.values.errors import RawDataError, TfrecregError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress, counting
from tfrecreg.core.values.text import safe


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecord:
    """A note about the build, kept only on this machine. Nothing released depends on the note."""

    manifest: str
    raw: str
    files: dict[str, tuple[int, int]]
    """Size and modification time (in nanoseconds) of each raw file."""


def raw_files(
    source: GuardedSource, raw: Readable | None, progress: Progress = SILENT
) -> tuple[RawTotals, dict[str, tuple[int, int]]]:
    """The raw files that the source reads: totals, and the size and time of each file."""
    if raw is None:
        return RawTotals(files=0, stored=0, decoded=0), {}
    stored = decoded = 0
    files: dict[str, tuple[int, int]] = {}
    listed = iter(source.raw_files())
    with counting(progress, "listing raw data", "files"):
        first = list(islice(listed, 1))  # most sources list everything before they name a file
    with counting(progress, "measuring raw data", "files") as ticker:
        for file in chain(first, listed):
            entry = raw.stat(file.path, follow="all")
            if entry is None:
                raise RawDataError(
                    f"{source.plugin_id} lists the raw file `{file.path}`, which does not exist"
                )
            if entry.size != file.stored:
                raise source.plugin_id.error(
                    f"says in `raw_files` that `{file.path}` has {file.stored:,} bytes, but it has "
                    f"{entry.size:,}"
                )
            files[file.path] = (file.stored, entry.mtime_ns)
            stored += file.stored
            decoded += file.decoded
            ticker.add(1, file.stored)
    return RawTotals(files=len(files), stored=stored, decoded=decoded), files


def expect_raw_unchanged(
    raw: RawStorage | None, files: dict[str, tuple[int, int]], progress: Progress
) -> None:
    """Raise if a raw file changed during the build, which would mix two states of the data."""
    if raw is None:
        return
    if not isinstance(raw, LocalStorage):
        raw.forget()
    if path := _changed(raw, files, progress):
        raise RawDataError(f"the raw file `{path}` changed during the build: build again")


def _changed(
    raw: RawStorage, files: Mapping[str, tuple[int, int]], progress: Progress = SILENT
) -> str:
    """The first raw file that is missing or has a new size or time; empty if all are unchanged."""
    with counting(progress, "checking whether raw data changed", "files") as ticker:
        for path, before in files.items():
            try:
                entry = raw.stat(path, follow="all")
            except UsageError:
                entry = None
            if entry is None or (entry.size, entry.mtime_ns) != before:
                return path
            ticker.add(1, 0)
    return ""


def raw_state(files: Mapping[str, tuple[int, int]]) -> str:
    """One digest of the sizes and times of all raw files, for the digest of a plan."""
    hasher = blake3(b"tfrecreg raw state v1\n")
    for path in sorted(files):
        hasher.update(f"{path}\0{files[path]}\n".encode("utf-8", "surrogateescape"))
    return hasher.hexdigest()


def remember(registry: Registry, dataset: str, record: BuildRecord) -> None:
    with registry.storage.create(layout.build_record(dataset)) as writer:
        writer.write(render_note(record))


def recall(registry: Registry, dataset: str, manifest: str) -> BuildRecord | None:
    """The note on the build with this manifest; None if this machine has no such note."""
    try:
        record = read_note(registry.storage.read(layout.build_record(dataset)), BuildRecord)
    except (TfrecregError, ValueError):
        return None  # an unreadable note is ignored
    return record if record.manifest == manifest else None


def raw_changed(record: BuildRecord) -> str | None:
    """The first raw file that changed since the build, if the raw data are on this machine."""
    raw = raw_storage(record.raw)
    if raw.stat("") is None:
        return None
    return safe(_changed(raw, record.files)) or None


def remove_leftovers(stage: Storage) -> None:
    """Remove the temporary files of a stage. This is called before and after workers write: if a
    worker dies, an engine may run the task again, but the worker's unfinished file remains.
    """
    for entry in list(stage.list()):
        if is_temporary(entry.path):
            stage.remove(entry.path)


def expect_no_foreign_files(dataset: Dataset) -> None:
    """Refuse to replace a folder whose files are not a build."""
    folder, storage = layout.build_folder(dataset.name), dataset.registry.storage
    entry = storage.stat(folder)
    if entry is None or dataset.is_built():
        return
    if entry.kind != "dir" or next(storage.list(folder, recursive=False), None):
        raise UsageError(
            f"`{folder}` holds files that do not belong to a build, and a new build would replace "
            "these files",
            hint=f"`tfrecreg adopt {dataset} --in-place` turns TFRecords into a build",
        )


def expect_no_loss(dataset: Dataset, before: Manifest | None, content: str) -> None:
    """Refuse to replace an adopted build that cannot be rebuilt."""
    if before is None or not is_adopted(before) or before.content == content:
        return
    name = dataset.name
    releases = (dataset.release_manifest(version).release for version in dataset.versions)
    if any(release is not None and release.build == before.digest for release in releases):
        return
    raise UsageError(
        f"`{layout.build_folder(name)}` was adopted and never released, and its records, "
        "which differ from those of this build, would be lost",
        hint=f"`tfrecreg release {name}` keeps the records; to give them up, remove that folder",
    )
