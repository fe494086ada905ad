"""The names of the files of catalogs, their form, and which of them no build and no release needs.

Below the folder of catalogs are

- ``places/``: a note for each shard file: its size, time and inode, and the digest of its bytes
- ``shards/``: an entry for each digest of a shard, which lists the Parquet files of its catalog
- ``parts/``: these files, named by their own digest

Notes and entries begin with a digest of themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeVar

import msgspec
from blake3 import blake3

from tfrecreg.documents import read_note
from tfrecreg.errors import TfrecregError
from tfrecreg.registry import layout
from tfrecreg.storage.interface import Entry, Readable, Storage
from tfrecreg.storage.writer import is_temporary

CATALOGS = f"{layout.STATE}/cache/catalogs"
"""Their folder in a registry."""
_NOTE_LIMIT = 1 << 26

T = TypeVar("T")


def part_path(digest: str) -> str:
    """Path of the Parquet file with a digest."""
    return f"parts/{digest[:2]}/{digest[2:]}.parquet"


def put_note(place: Storage, path: str, value: object) -> None:
    """Write a note or an entry."""
    text = msgspec.json.encode(value)
    with place.create(path, durable=False) as writer:
        writer.write(blake3(text).hexdigest().encode("ascii") + b"\n" + text)


def read_kept(place: Readable, path: str, kind: type[T]) -> T | None:
    """A note or an entry; None where it is missing or damaged."""
    try:
        digest, _, text = place.read(path, limit=_NOTE_LIMIT).partition(b"\n")
        if digest.decode("ascii", "replace") != blake3(text).hexdigest():
            return None
        return read_note(text, kind)
    except (TfrecregError, ValueError):
        return None


class _Part(msgspec.Struct):
    blake3: str


class _Kept(msgspec.Struct):
    """What a note and an entry have in common, and the files of an entry."""

    shard: str
    parts: tuple[_Part, ...] = ()


def unreferenced(place: Readable, shards: Collection[str]) -> Iterator[Entry]:
    """The files of catalogs of other shards than these, and damaged ones."""
    needed: set[str] = set()
    for folder in ("places", "shards"):
        for entry in _files(place, folder):
            kept = read_kept(place, entry.path, _Kept)
            if kept is None or kept.shard not in shards:
                yield entry
            else:
                needed.update(part_path(each.blake3) for each in kept.parts)
    yield from (entry for entry in _files(place, "parts") if entry.path not in needed)


def _files(place: Readable, folder: str) -> Iterator[Entry]:
    for entry in place.list(folder):
        if entry.kind == "file" and not is_temporary(entry.path):
            yield entry
