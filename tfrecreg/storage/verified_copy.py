"""Copies of files from one storage to another, compared with the digests that they should have."""

from __future__ import annotations

from blake3 import blake3

from tfrecreg.errors import RefusedError
from tfrecreg.storage.interface import Readable, RereadableReader, Storage
from tfrecreg.text import safe

_CHUNK = 1 << 20


def copy_verified(
    remote: Readable, local: Storage, path: str, size: int, digest: str, *, hint: str = ""
) -> None:
    """Copy a file of a build, unless one of that size is there.

    Args:
        remote: where from.
        local: where to.
        digest: its blake3, as the manifest has it.
        hint: what to do about other bytes; empty to check the folder.

    Raises:
        RefusedError: it is not the file that the manifest names; it does not appear.
        StorageError: it cannot be read or written, or was altered on its way.
    """
    found = local.stat(path)
    if found is not None and found.size == size:
        return
    hasher = blake3()
    with remote.open(path) as reader, local.create(path) as writer:
        at = 0
        while piece := reader.read_at(at, _CHUNK):
            hasher.update(piece)
            writer.write(piece)
            at += len(piece)
        if hasher.hexdigest() != digest:
            if isinstance(reader, RereadableReader):
                reader.confirm(0, reader.size)
            shown = safe(f"{remote.root}/{path}", limit=1000)
            raise RefusedError(
                f"`{shown}` is not the file that the manifest names",
                hint=hint
                or f"`tfrecreg check {safe(remote.root, limit=1000)}` names the damaged records",
            )
