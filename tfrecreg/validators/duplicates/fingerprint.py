"""What of a record is compared, as 16 bytes: a feature, its pictures, or all of it."""

from __future__ import annotations

import re
from collections.abc import Callable

from blake3 import blake3

from tfrecreg.digests import DIGEST_BYTES, record_digest
from tfrecreg.example import Example, Kind, canonical, encode
from tfrecreg.pictures import PictureError, read_header
from tfrecreg.pictures.decoder import Undecodable, shared_decoder
from tfrecreg.records.batch import RecordBatch
from tfrecreg.validators.tables import Table, Tables
from tfrecreg.validators.values import PictureFeatures, value_digest

__all__ = ["Fingerprint", "PictureFingerprint", "feature_digest", "group_of", "key_digest"]

Fingerprint = Callable[[RecordBatch, int, Example | None], bytes | None]
"""Of the record at a position of a batch, which is that example or none; None where it has not what
is compared."""


def feature_digest(
    name: str, batch: RecordBatch, position: int, example: Example | None
) -> bytes | None:
    """A :data:`Fingerprint` of one feature, whatever its kind."""
    feature = example.get(name) if example is not None else None
    if feature is None or not feature.count:
        return None
    if feature.kind is Kind.BYTES:
        return value_digest(batch, position, name, feature)
    return blake3(encode({name: feature})).digest(DIGEST_BYTES)


class PictureFingerprint:
    """A :data:`Fingerprint` of the pictures of a record; of a record without one, of all of it.

    Args:
        pictures: knows which features hold pictures.
        pixels: whether they are decoded, and compared by their pixels.
    """

    def __init__(self, pictures: PictureFeatures, *, pixels: bool) -> None:
        self._pictures = pictures
        self._pixels = pixels
        self.pictured = 0
        """Records that had a picture, so far."""

    def of_table(self, tables: Tables, table: Table) -> list[bytes] | None:
        """The fingerprints of all records of a table; None where each has to be read."""
        names = self._pictures.of(table.sample)
        if self._pixels or len(names) != 1:
            return None
        self.pictured += len(table.positions)
        return tables.digests(table, names[0])

    def __call__(self, batch: RecordBatch, position: int, example: Example | None) -> bytes:
        names = self._pictures.of(example) if example is not None else ()
        if example is None or not names:
            return record_digest(canonical(batch.payload(position)))
        self.pictured += 1
        if self._pixels:
            values = [value for name in names for value in example[name].values]
            digests = [_pixels(value) for value in values]
        else:
            digests = [value_digest(batch, position, name, example[name]) for name in names]
        return digests[0] if len(digests) == 1 else blake3(b"".join(digests)).digest(DIGEST_BYTES)


def _pixels(value: bytes) -> bytes:
    """Of what a picture decodes to; of one that does not decode, of its bytes."""
    try:
        return shared_decoder().digest(value, read_header(value))
    except (PictureError, Undecodable):
        return blake3(value).digest(DIGEST_BYTES)


def group_of(pattern: re.Pattern[str], key: str) -> str | None:
    """The part of a key that says which group its record is of; None where there is none."""
    found = pattern.search(key)
    if found is None:
        return None
    return found[1] if pattern.groups else found[0]


def key_digest(pattern: re.Pattern[str], key: str) -> bytes | None:
    """The same as a fingerprint."""
    group = group_of(pattern, key)
    if group is None:
        return None
    return blake3(group.encode("utf-8", "surrogateescape")).digest(DIGEST_BYTES)
