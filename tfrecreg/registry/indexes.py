"""The indexes of a build or release: beside its shards, or kept when it was released."""

from __future__ import annotations

from blake3 import blake3

from tfrecreg.errors import MissingFileError, StorageError
from tfrecreg.index import INDEX_LIMIT
from tfrecreg.manifest import FileEntry
from tfrecreg.registry import layout
from tfrecreg.registry.registry import Registry


def index_places(folder: str | None, entry: FileEntry) -> list[str]:
    """Where the index may be in the registry, the surest place first.

    Args:
        folder: of the bytes that it belongs to; None where they are not on this machine.
        entry: the index as the manifest lists it.
    """
    kept = layout.cached_index(entry.blake3)
    return [kept] if folder is None else [kept, f"{folder}/{entry.path}"]


def find_index(
    registry: Registry, folder: str | None, entry: FileEntry
) -> tuple[str, bytes] | None:
    """An index: its path in the registry and its bytes. None where no file on this machine has
    the digest of `entry`.

    Args:
        registry: the registry.
        folder: as for :func:`index_places`.
        entry: the index as the manifest lists it.

    Raises:
        StorageError: a file that is there cannot be read, and no other is the index.
    """
    refused: StorageError | None = None
    for place in index_places(folder, entry):
        try:
            data = registry.storage.read(place, limit=INDEX_LIMIT)
        except MissingFileError:
            continue
        except StorageError as error:
            refused = error
            continue
        if blake3(data).hexdigest() == entry.blake3:
            return place, data
    if refused is not None:
        raise refused
    return None
