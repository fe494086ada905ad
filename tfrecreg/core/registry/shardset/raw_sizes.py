"""The size of raw data, as they lie and without whole-file compression: the base of inflation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tfrecreg.core.check.scan.interface import RawSize
from tfrecreg.core.registry.manifest.model import RawTotals
from tfrecreg.core.storage.links import list_through_links
from tfrecreg.core.storage.locations import raw_storage
from tfrecreg.core.storage.raw import RawStorage
from tfrecreg.core.values.errors import MissingFileError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress, counting
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.build.sources.interface import RawFile

_WHERE = (
    "name the folder that the raw files lie in, with `--raw` or as the `raw` of the dataset in its "
    "file in `datasets/`"
)


def total_raw(files: Iterable[RawFile]) -> RawSize:
    """The sum over the raw files of a source."""
    stored = decoded = 0
    for file in files:
        stored += file.stored
        decoded += file.decoded
    return RawSize(stored, decoded)


def measure_raw(folder: str, progress: Progress = SILENT) -> RawSize:
    """The size of :func:`raw_totals`."""
    totals = raw_totals(folder, progress)
    return RawSize(totals.stored, totals.decoded)


def raw_totals(folder: str, progress: Progress = SILENT) -> RawTotals:
    """Every file below `folder`, for any source.

    A link counts as the file or folder that it leads to: raw data are often links into a cache.
    A folder counts once, however many links lead to it. Behind a URL, only files whose names end in
    `.gz` are looked into.
    """
    storage = raw_storage(folder)
    entry = storage.stat("")
    if not storage.is_local:
        storage.expect_folder()
    elif entry is None or entry.kind != "dir":
        raise UsageError(f"there is no folder `{safe(folder)}` of raw data", hint=_WHERE)
    files = list(_raw_files(storage, progress))
    size = total_raw(files)
    if size.stored == 0:
        raise UsageError(f"the folder `{safe(folder)}` of raw data is empty", hint=_WHERE)
    return RawTotals(files=len(files), stored=size.stored, decoded=size.decoded)


def _raw_files(storage: RawStorage, progress: Progress) -> Iterator[RawFile]:
    from tfrecreg.core.build.sources.interface import RawFile
    from tfrecreg.core.records.gzip.random_access import decoded_size

    with counting(progress, "measuring raw data", "files") as ticker:
        for entry in list_through_links(storage):
            if entry.kind == "link":
                raise MissingFileError(
                    f"`{safe(f'{storage.root}/{entry.path}', limit=4096)}` is a symbolic link that "
                    "leads nowhere",
                    hint="correct the link; `dvc checkout` or `dvc pull` restores the target of "
                    "a link into DVC's cache",
                )
            if entry.kind == "file":
                looked_into = storage.is_local or entry.path.lower().endswith(".gz")
                decoded = decoded_size(storage, entry.path) if looked_into else None
                yield RawFile(entry.path, entry.size, entry.size if decoded is None else decoded)
                ticker.add(1, entry.size)
