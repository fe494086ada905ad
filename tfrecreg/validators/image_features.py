"""Values of features as validators look at them; what is dear is made once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, NamedTuple

from blake3 import blake3

from tfrecreg.codes.img import IMG001, IMG002, IMG003
from tfrecreg.digests import DIGEST_BYTES
from tfrecreg.example import Example, Feature, Kind
from tfrecreg.findings import Code
from tfrecreg.pictures import PictureHeader, sniff
from tfrecreg.records.batch import RecordBatch
from tfrecreg.scan.interface import Target
from tfrecreg.schema import parse_schema
from tfrecreg.text import safe
from tfrecreg.validators.record_tables import Table, Tables

__all__ = [
    "ENCODED",
    "Declared",
    "Difference",
    "ImageFeatures",
    "declared_columns",
    "differences",
    "neighbours",
    "schema_images",
    "value_digest",
]


ENCODED = "image/encoded"
"""The field's name of the feature that holds a picture."""

_HEAD = 64
"""Bytes that tell the format of a picture; a value of fewer is none."""
_TRIES = 16
"""In so many records of a shard without a picture one is looked for."""


def schema_images(target: Target) -> tuple[str, ...]:
    """The features that hold pictures, by the target's schema; empty without one.

    Raises:
        SchemaError: the schema does not parse.
    """
    if target.schema is None:
        return ()
    return parse_schema(target.schema, target.schema_path or "schema").pictures()


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


class ImageFeatures:
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


_SAME = {"jpg": "jpeg", "jpe": "jpeg", "jfif": "jpeg", "dib": "bmp"}
_PALETTES = (1, 3, 4)
"""Channels of a picture with a palette: its numbers, its colours, or these with transparency."""
_PNG_COLOUR = 25
"""Where a PNG has its colour type, of which 3 is a palette."""
_SIDES = ("height", "width")


class Difference(NamedTuple):
    """A feature that says something else than the header."""

    code: Code
    feature: str
    message: str
    detail: str


class Declared(NamedTuple):
    """What a record says; None for what it does not say."""

    format: bytes | None
    height: int | None
    width: int | None
    channels: int | None

    def fits(self, header: PictureHeader) -> bool:
        """Whether it is certainly what the header says: if not, a closer look is due."""
        return (
            (self.format is None or self.format == header.format.encode())
            and (self.height is None or self.height == header.height)
            and (self.width is None or self.width == header.width)
            and (self.channels is None or self.channels == header.channels)
        )


def declared_columns(tables: Tables, table: Table, picture: str) -> Iterator[Declared]:
    """What the records of a table say of the pictures in a feature of it, row by row."""
    columns: list[Iterable[Any]] = []
    name, _ = _declared(table.sample, picture, "format", Kind.BYTES)
    columns.append(tables.values(table, name) if name else repeat(None, len(table.positions)))
    for what in (*_SIDES, "channels"):
        name, _ = _declared(table.sample, picture, what, Kind.INT64)
        if name:
            columns.append(table.columns[name][1].integers.tolist())
        else:
            columns.append(repeat(None, len(table.positions)))
    return map(Declared._make, zip(*columns, strict=True))


def neighbours(picture: str, what: str) -> tuple[str, ...]:
    """Features that may say `what` of the picture in the feature `picture`, the likeliest first.

    ``image/height`` for ``image/encoded``; ``image_height``, ``image/height`` and ``height`` for
    ``image``.
    """
    folder = picture.rpartition("/")[0]
    if folder:
        return (f"{folder}/{what}",)
    return (f"{picture}_{what}", f"{picture}/{what}", what)


def differences(
    example: Example, picture: str, data: bytes, header: PictureHeader
) -> Iterator[Difference]:
    """Hold what a record declares against the header of its picture.

    Args:
        example: the record.
        picture: the feature that holds the picture.
        data: the picture.
        header: what its header says.
    """
    name, declared = _declared(example, picture, "format", Kind.BYTES)
    if declared is not None:
        text = declared[:64].decode("utf-8", "surrogateescape").lower().removeprefix("image/")
        text = text.strip().removeprefix(".")
        if _SAME.get(text, text) != header.format:
            detail = f"declared `{safe(text)}`, found `{header.format}`"
            yield Difference(IMG001, name, _message(name, "the format"), detail)
    found: dict[str, tuple[str, Any]] = {
        side: _declared(example, picture, side, Kind.INT64) for side in _SIDES
    }
    sides = {side: value for side, (_, value) in found.items()}
    for side, (name, declared) in found.items():
        actual = getattr(header, side)
        if declared is not None and declared != actual:
            turned = sides["height"] == header.width and sides["width"] == header.height
            more = ": the sides are exchanged, as if it had been turned" if turned else ""
            detail = f"declared {declared}, found {actual}{more}"
            yield Difference(IMG002, name, _message(name, f"the {side}"), detail)
    name, declared = _declared(example, picture, "channels", Kind.INT64)
    fits = (header.channels, *(_PALETTES if _has_palette(data, header) else ()))
    if declared is not None and declared not in fits:
        detail = f"declared {declared}, found {header.channels}"
        yield Difference(IMG003, name, _message(name, "the number of channels"), detail)


def _declared(example: Example, picture: str, what: str, kind: Kind) -> tuple[str, Any]:
    """The name and the value of the feature that says it; None where there is none."""
    for name in neighbours(picture, what):
        feature = example.get(name)
        if feature is not None and feature.kind is kind and feature.count == 1:
            return name, feature.values[0]
    return "", None


def _has_palette(data: bytes, header: PictureHeader) -> bool:
    if header.format == "png":
        return data[_PNG_COLOUR] == 3
    return header.format in ("gif", "bmp")


def _message(name: str, what: str) -> str:
    return f"`{safe(name)}` should be {what} of the picture"
