"""The file with the receipts of a build in parts: a head, and a line for each shard, compressed."""

from __future__ import annotations

import gzip
import io
import zlib

import msgspec

from tfrecreg.documents import read_note
from tfrecreg.manifest.model import Manifest
from tfrecreg.registry import layout
from tfrecreg.registry.registry import Registry

RECEIPTS_LIMIT = 1 << 30
"""Largest file, and largest text in it, that is read, in bytes."""


class _Head(msgspec.Struct, frozen=True):
    """The fields that a release needs."""

    manifest: str
    """Digest of the manifest of the build."""


def receipts_of(registry: Registry, build: Manifest) -> bytes | None:
    """The file of a build, for its release; None if it was not made in parts."""
    path = layout.build_receipts(build.dataset)
    if registry.storage.stat(path) is None:
        return None
    data = registry.storage.read(path, limit=RECEIPTS_LIMIT)
    try:
        return data if read_note(lines_of(data)[0], _Head).manifest == build.digest else None
    except ValueError:
        return None  # a damaged note is ignored


def lines_of(data: bytes) -> list[bytes]:
    """The lines of the file, one at least.

    Raises:
        ValueError: it is not such a file.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            text = packed.read(RECEIPTS_LIMIT + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"it is not a gzip file: {error}") from None
    if len(text) > RECEIPTS_LIMIT:
        raise ValueError(f"it has more than {RECEIPTS_LIMIT} bytes")
    return text.splitlines() or [b""]
