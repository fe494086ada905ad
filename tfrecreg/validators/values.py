"""Values of features as validators look at them; what is dear is made once for all of them."""

from __future__ import annotations

from blake3 import blake3

from tfrecreg.digests import DIGEST_BYTES
from tfrecreg.example import Example, Feature, Kind
from tfrecreg.pictures import sniff
from tfrecreg.records.batch import RecordBatch
from tfrecreg.scan.interface import Target
from tfrecreg.schema import parse_schema

__all__ = ["ENCODED", "PictureFeatures", "schema_pictures", "value_digest"]

ENCODED = "image/encoded"
"""The field's name of the feature that holds a picture."""

_HEAD = 64
"""Bytes that tell the format of a picture; a value of fewer is none."""
_TRIES = 16
"""In so many records of a shard without a picture one is looked for."""


def schema_pictures(target: Target) -> tuple[str, ...]:
    """The features that hold pictures, by the target's schema; empty without one.

    Raises:
        SchemaError: the schema does not parse.
    """
    if target.schema is None:
        return ()
    return parse_schema(target.schema, target.schema_path or "schema").images()


def value_digest(batch: RecordBatch, position: int, name: str, feature: Feature) -> bytes:
    """16 bytes of blake3 of all values of a feature of bytes; of a single one, of it alone.

    Args:
        batch: keeps it for whoever asks next.
        position: of the record in the batch.
        name: of the feature.
        feature: the feature, of bytes.
    """
    known: dict[int, bytes] = batch.shared.setdefault((value_digest, name), {})
    digest = known.get(position)
    if digest is None:
        digest = known[position] = _digest(feature)
    return digest


def _digest(feature: Feature) -> bytes:
    if feature.count == 1:
        return blake3(feature.values[0]).digest(DIGEST_BYTES)
    hasher = blake3()
    for value in feature.values:
        hasher.update(len(value).to_bytes(8, "little"))
        hasher.update(value)
    return hasher.digest(DIGEST_BYTES)


class PictureFeatures:
    """Which features of the records of one shard hold encoded pictures.

    Those that the schema says; else :data:`ENCODED`, where there is one; else those whose values
    begin as pictures do in the first records.

    Args:
        named: what the schema or the user says; empty for nothing.
    """

    def __init__(self, named: tuple[str, ...] = ()) -> None:
        self._named = named
        self._learnt: tuple[str, ...] = ()
        self._tries = 0

    def of(self, example: Example) -> tuple[str, ...]:
        """The names of those that this record has with at least one value, sorted."""
        if ENCODED in example and (not self._named or ENCODED in self._named):
            names: tuple[str, ...] = (ENCODED,)
        else:
            names = self._named or self._learnt or self._learn(example)
        return tuple(name for name in names if _has_values(example, name))

    def _learn(self, example: Example) -> tuple[str, ...]:
        if self._tries >= _TRIES:
            return ()
        self._tries += 1
        found = [name for name, feature in example.items() if _is_picture(feature)]
        self._learnt = tuple(sorted(found))
        return self._learnt


def _has_values(example: Example, name: str) -> bool:
    feature = example.get(name)
    return feature is not None and feature.kind is Kind.BYTES and feature.count > 0


def _is_picture(feature: Feature) -> bool:
    if feature.kind is not Kind.BYTES or feature.count != 1 or feature.sizes[0] < _HEAD:
        return False
    return sniff(feature.values[0][:_HEAD]) is not None
