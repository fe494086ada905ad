"""The names of the files of catalogs, and which of them no build and no release needs.

Below the folder of catalogs are

- ``places/``: a note for each shard file: its size, time and inode, and the digest of its bytes
- ``shards/``: a Parquet file of the records of each shard, and one of their objects if there are
  any, named by the digests of the shard and of the index that has its keys
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

import msgspec
from blake3 import blake3

from tfrecreg.core.registry import layout
from tfrecreg.core.storage.interface import Entry, Readable
from tfrecreg.core.storage.writer import is_temporary
from tfrecreg.core.values.documents import read_note
from tfrecreg.core.values.errors import TfrecregError

CATALOG_FORMAT = 4
"""Of the files and of what is in them. A new number discards all catalogs."""
CATALOGS = f"{layout.STATE}/cache/catalogs"
"""Their folder in a registry."""
_SUFFIXES = (f"-{CATALOG_FORMAT}.parquet", f"-{CATALOG_FORMAT}-objects.parquet")
_NOTE_LIMIT = 1 << 16


class FileStamp(msgspec.Struct, frozen=True):
    """What identifies the bytes of a file without reading them."""

    size: int
    mtime_ns: int
    inode: int


class PlaceNote(msgspec.Struct, frozen=True):
    """What is known of the file of a shard."""

    state: FileStamp
    shard: str
    """Hex blake3 of the bytes."""


def note_path(place: str) -> str:
    """Path of the note about a file, named by its absolute path or URL."""
    name = blake3(os.fsencode(place)).hexdigest(16)
    return f"places/{name[:2]}/{name[2:]}.json"


def read_place(place: Readable, path: str) -> PlaceNote | None:
    """A note; None where it is missing or damaged."""
    try:
        return read_note(place.read(path, limit=_NOTE_LIMIT), PlaceNote)
    except (TfrecregError, ValueError):
        return None


def catalog_paths(shard: str, index: str) -> tuple[str, str]:
    """Paths of the files of records and of objects, by digests; that of an index may be empty."""
    records, objects = (f"shards/{shard[:2]}/{shard}-{index}{suffix}" for suffix in _SUFFIXES)
    return records, objects


def unreferenced(place: Readable, shards: Collection[str]) -> Iterator[Entry]:
    """The files of catalogs of other shards than these, of other formats, and damaged notes."""
    for entry in place.list(""):
        folder, _, rest = entry.path.partition("/")
        if entry.kind != "file" or is_temporary(entry.path):
            continue
        if folder == "places":
            note = read_place(place, entry.path)
            is_needed = note is not None and note.shard in shards
        else:
            shard = os.path.basename(rest).partition("-")[0]  # noqa: PTH119 - no path of this system
            is_needed = shard in shards and rest.endswith(_SUFFIXES)
        if not is_needed:
            yield entry
