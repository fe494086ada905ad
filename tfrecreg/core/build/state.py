"""The state of the raw data that a build was made from, and the note of it.

Temporary files that writers leave in a stage when they are killed.

Protection of files that do not belong to a build, and of builds that cannot be rebuilt.
"""

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
from tfrecreg.core.storage.raw import RawStorage, raw_storage
from tfrecreg.core.storage.writer import is_temporary
from tfrecreg.core.values.documents import read_note, render_note
from tfrecreg.core.values.errors import PluginError, RawDataError, TfrecregError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress, counting
from tfrecreg.core.values.text import safe


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecord:
    """A note beside the build, on this machine only: nothing that is released depends on it."""

    manifest: str
    """Digest of the build's manifest."""
    raw: str
    """The folder of the raw data, or its URL."""
    files: dict[str, tuple[int, int]]
    """Raw file to its size and modification time in nanoseconds."""


def raw_files(
    source: GuardedSource, raw: Readable | None, progress: Progress = SILENT
) -> tuple[RawTotals, dict[str, tuple[int, int]]]:
    """The raw files that the source reads: totals, and size and time of each.

    A program's data have none.
    """
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
                    f"{source.plugin_id} lists the raw file `{safe(file.path)}`, which does not "
                    f"exist{source.place('raw_files')}",
                    hint="build again if it was just removed; otherwise report this to its authors",
                )
            if entry.size != file.stored:
                raise PluginError(
                    f"{source.plugin_id} says in `raw_files` that `{safe(file.path)}` has "
                    f"{file.stored:,} bytes, and it has {entry.size:,}"
                    f"{source.place('raw_files')}",
                    hint="`stored` is its size on disk; build again if it was just written",
                )
            files[file.path] = (file.stored, entry.mtime_ns)
            stored += file.stored
            decoded += file.decoded
            ticker.add(1, file.stored)
    return RawTotals(files=len(files), stored=stored, decoded=decoded), files


def expect_raw_unchanged(
    raw: RawStorage | None, files: dict[str, tuple[int, int]], progress: Progress
) -> None:
    """Raise if a raw file changed during the build: it would mix two states of the data.

    The data of a program have no files: they are compared when they are read again.
    """
    if raw is None:
        return
    raw.forget()
    with counting(progress, "checking whether raw data changed", "files") as ticker:
        for path, before in files.items():
            entry = raw.stat(path, follow="all")
            if entry is None or (entry.size, entry.mtime_ns) != before:
                raise RawDataError(
                    f"the raw file `{safe(path)}` changed during the build",
                    hint="build again when no other process writes to the raw data",
                )
            ticker.add(1, 0)


def raw_state(files: Mapping[str, tuple[int, int]]) -> str:
    """One digest over all raw files' sizes and times: part of a plan."""
    hasher = blake3(b"tfrecreg raw state v1\n")
    for path in sorted(files):
        hasher.update(f"{path}\0{files[path]}\n".encode("utf-8", "surrogateescape"))
    return hasher.hexdigest()


def remember(registry: Registry, dataset: str, record: BuildRecord) -> None:
    """Write the note."""
    with registry.storage.create(layout.build_record(dataset)) as writer:
        writer.write(render_note(record))


def recall(registry: Registry, dataset: str, manifest: str) -> BuildRecord | None:
    """The note on the build with this manifest, None where this machine has none."""
    path = layout.build_record(dataset)
    if registry.storage.stat(path) is None:
        return None
    try:
        record = read_note(registry.storage.read(path), BuildRecord)
    except (TfrecregError, ValueError):
        return None  # an unreadable note is ignored
    return record if record.manifest == manifest else None


def raw_changed(record: BuildRecord) -> str | None:
    """The first raw file that changed since the build, None if none did or if the raw data are not
    on this machine any more.
    """
    raw = raw_storage(record.raw)
    if raw.stat("") is None:
        return None
    for path, (size, mtime_ns) in record.files.items():
        try:
            entry = raw.stat(path, follow="all")
        except UsageError:
            entry = None
        if entry is None or (entry.size, entry.mtime_ns) != (size, mtime_ns):
            return safe(path)
    return None


def remove_leftovers(stage: Storage) -> None:
    """Remove the temporary files of a stage, before and after workers write into it.

    An engine may run the task of a worker that died again: then the result is whole, and what the
    worker was writing is still there. A worker that still writes fails to rename its file.
    """
    for entry in list(stage.list()):
        if is_temporary(entry.path):
            stage.remove(entry.path)


def expect_no_foreign_files(dataset: Dataset) -> None:
    """Refuse to replace a folder of files that are not a build."""
    folder, storage = layout.build_folder(dataset.name), dataset.registry.storage
    entry = storage.stat(folder)
    if entry is None or dataset.is_built():
        return
    if entry.kind != "dir" or next(storage.list(folder, recursive=False), None):
        raise UsageError(
            f"`{folder}` holds files that do not belong to a build and would be replaced",
            hint=f"move them away, or `tfrecreg adopt {dataset} --in-place` makes a build of "
            "TFRecords",
        )


def expect_no_loss(dataset: Dataset, before: Manifest | None, content: str) -> None:
    """Refuse to replace an adopted build that cannot be rebuilt."""
    if before is None or not is_adopted(before) or before.content == content:
        return
    name = dataset.name
    for version in dataset.versions:
        release = dataset.release_manifest(version).release
        if release is not None and release.build == before.digest:
            return
    raise UsageError(
        f"`{layout.build_folder(name)}` was adopted, holds other records and was never released: "
        "they would be lost",
        hint=f"`tfrecreg release {name}` keeps them; or remove that folder",
    )
