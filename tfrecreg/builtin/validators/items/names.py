"""What identifies a record: the digest of its image, and the names that it has for itself."""

from __future__ import annotations

from collections.abc import Iterator

from blake3 import blake3

from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.records.digests import DIGEST_BYTES

NAMES = ("image/filename", "image/source_id", "image/file_name", "filename", "file_name", "key")
"""Features whose value names an item, the most telling first."""
_WAYS = ("path", "file", "id")
"""By a path, by the last part of a path, by an id. Each is tried after the one before it."""

WAYS = len(_WAYS)


def names_of(example: Example | None, key: str | None) -> Iterator[tuple[int, bytes]]:
    """The ways in which a record is named, and a digest of each name.

    A number and the same number as text are one name; case counts.
    """
    found = []
    for name in NAMES:
        feature = example.get(name) if example is not None else None
        if feature is None or feature.count != 1 or feature.kind is Kind.FLOAT:
            continue
        value = feature.values[0] if feature.kind is not Kind.UNSET else b""
        text = str(value).encode() if isinstance(value, int) else bytes(value)
        found.append((name, text))
    if key is not None:
        found.append(("key", key.encode("utf-8", "surrogateescape")))
    for name, text in found:
        text = text.replace(b"\\", b"/")
        if not text:
            continue
        if name == "image/source_id":
            yield 2, _digest(text)
        yield 0, _digest(text)
        yield 1, _digest(text.rpartition(b"/")[2])


def _digest(name: bytes) -> bytes:
    return blake3(name).digest(DIGEST_BYTES)
