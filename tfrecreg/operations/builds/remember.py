"""What this machine notes of a build, and whether the raw data are still what they were."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice

import msgspec
from blake3 import blake3

from tfrecreg.errors import RawDataError, TfrecregError, UsageError
from tfrecreg.manifest import RawTotals
from tfrecreg.progress import SILENT, Progress, counting
from tfrecreg.registry import Registry, layout
from tfrecreg.sources import GuardedSource
from tfrecreg.storage import LocalStorage, Storage
from tfrecreg.text import safe

__all__ = ["BuildRecord", "raw_changed", "raw_files", "raw_state", "recall", "remember"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecord:
    """A note beside the build, on this machine only: nothing that is released depends on it."""

    manifest: str
    """Digest of the build's manifest."""
    raw: str
    """The folder of the raw data."""
    files: dict[str, tuple[int, int]]
    """Raw file to its size and modification time in nanoseconds."""


def raw_files(
    source: GuardedSource, raw: Storage, progress: Progress = SILENT
) -> tuple[RawTotals, dict[str, tuple[int, int]]]:
    """The raw files that the source reads: totals, and size and time of each."""
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
                    f"{source.brought} lists the raw file `{safe(file.path)}`, which is not there",
                    hint="build again, if it was removed just now; else tell the authors",
                )
            files[file.path] = (file.stored, entry.mtime_ns)
            stored += file.stored
            decoded += file.decoded
            ticker.add(1, file.stored)
    return RawTotals(files=len(files), stored=stored, decoded=decoded), files


def raw_state(files: dict[str, tuple[int, int]]) -> str:
    """One digest over all raw files' sizes and times: part of a plan."""
    hasher = blake3(b"tfrecreg raw state v1\n")
    for path in sorted(files):
        hasher.update(f"{path}\0{files[path]}\n".encode("utf-8", "surrogateescape"))
    return hasher.hexdigest()


def remember(registry: Registry, dataset: str, record: BuildRecord) -> None:
    """Write the note."""
    with registry.storage.create(layout.build_record(dataset)) as writer:
        writer.write(msgspec.json.encode(record))


def recall(registry: Registry, dataset: str, manifest: str) -> BuildRecord | None:
    """The note on the build with this manifest, None where this machine has none."""
    path = layout.build_record(dataset)
    if registry.storage.stat(path) is None:
        return None
    try:
        record = msgspec.json.decode(registry.storage.read(path), type=BuildRecord)
    except (msgspec.MsgspecError, TfrecregError):
        return None  # a note that cannot be read says as much as none
    return record if record.manifest == manifest else None


def raw_changed(record: BuildRecord) -> str | None:
    """The first raw file that is no longer as the build saw it, None where all are or where the
    raw data are not on this machine any more.
    """
    raw = LocalStorage(record.raw)
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
