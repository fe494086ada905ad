"""Features that hold images, and the declarations of records about their images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, NamedTuple

from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.images.model import ImageHeader
from tfrecreg.core.images.read import sniff
from tfrecreg.core.schema.payload_kinds import Table, Tables
from tfrecreg.core.values.codes import IMG001, IMG002, IMG003
from tfrecreg.core.values.findings import Code
from tfrecreg.core.values.text import safe

ENCODED = "image/encoded"
"""The usual name of the feature that holds an image."""

_HEAD = 64
"""Number of bytes that are read to detect the format of an image; a shorter value is not one."""
_TRIES = 16
"""Number of records of a shard that are searched for image features if none is known."""


def schema_images(target: Target) -> tuple[str, ...]:
    """The features that hold images, by the target's schema; empty without one."""
    if target.schema is None:
        return ()
    from tfrecreg.core.schema.proto import parse_schema  # a check without a schema does not need it

    return parse_schema(target.schema, target.schema_path or "schema").images()


class ImageFeatures:
    """The features of one shard that hold encoded images.

    These are the features that the schema names; else :data:`ENCODED`, if it exists; else the
    features whose values begin like images in the first records.
    """

    def __init__(self, named: tuple[str, ...] = ()) -> None:
        self._named = named
        self._learnt: tuple[str, ...] = ()
        self._tries = 0

    def of(self, example: Example) -> tuple[str, ...]:
        """The names of the image features with at least one value in this record, sorted."""
        if ENCODED in example and (not self._named or ENCODED in self._named):
            names: tuple[str, ...] = (ENCODED,)
        else:
            names = self._named or self._learnt or self._learn(example)
        return tuple(name for name in names if _has_values(example, name))

    def _learn(self, example: Example) -> tuple[str, ...]:
        if self._tries >= _TRIES:
            return ()
        self._tries += 1
        found = [name for name, feature in example.items() if _is_image(feature)]
        self._learnt = tuple(sorted(found))
        return self._learnt


def _has_values(example: Example, name: str) -> bool:
    feature = example.get(name)
    return feature is not None and feature.kind is Kind.BYTES and feature.count > 0


def _is_image(feature: Feature) -> bool:
    if feature.kind is not Kind.BYTES or feature.count != 1 or feature.sizes[0] < _HEAD:
        return False
    return sniff(feature.values[0][:_HEAD]) is not None


_SAME = {"jpg": "jpeg", "jpe": "jpeg", "jfif": "jpeg", "dib": "bmp"}
_PALETTES = (1, 3, 4)
"""Possible channels of an image with a palette: its indexes, its colors, or its colors with
transparency.
"""
_PNG_COLOUR = 25
"""Offset of the color type in a PNG; 3 is a palette."""
_SIDES = ("height", "width")


class Difference(NamedTuple):
    """A feature that contradicts the header of the image."""

    code: Code
    feature: str
    message: str
    detail: str


class Declared(NamedTuple):
    """The declarations of a record about its image; None if absent."""

    format: bytes | None
    height: int | None
    width: int | None
    channels: int | None

    def fits(self, header: ImageHeader) -> bool:
        """Whether it certainly matches the header; if not, :func:`differences` decides."""
        return (
            (self.format is None or self.format == header.format.encode())
            and (self.height is None or self.height == header.height)
            and (self.width is None or self.width == header.width)
            and (self.channels is None or self.channels == header.channels)
        )


def declared_columns(tables: Tables, table: Table, image: str) -> Iterator[Declared]:
    """The declarations of a table's records about the images in a feature, row by row."""
    columns: list[Iterable[Any]] = []
    name, _ = _declared(table.sample, image, "format", Kind.BYTES)
    columns.append(tables.values(table, name) if name else repeat(None, len(table.positions)))
    for what in (*_SIDES, "channels"):
        name, _ = _declared(table.sample, image, what, Kind.INT64)
        if name:
            columns.append(table.columns[name][1].integers.tolist())
        else:
            columns.append(repeat(None, len(table.positions)))
    return map(Declared._make, zip(*columns, strict=True))


def neighbours(image: str, what: str) -> tuple[str, ...]:
    """Features that may declare `what` about the image in `image`, the most likely first.

    ``image/height`` for ``image/encoded``; ``image_height``, ``image/height`` and ``height`` for
    ``image``.
    """
    folder = image.rpartition("/")[0]
    if folder:
        return (f"{folder}/{what}",)
    return (f"{image}_{what}", f"{image}/{what}", what)


def differences(
    example: Example, image: str, data: bytes, header: ImageHeader
) -> Iterator[Difference]:
    """Compare the declarations of a record with the header of its image."""
    name, declared = _declared(example, image, "format", Kind.BYTES)
    if declared is not None:
        text = declared[:64].decode("utf-8", "surrogateescape").lower().removeprefix("image/")
        text = text.strip().removeprefix(".")
        if _SAME.get(text, text) != header.format:
            detail = f"declared `{safe(text)}`, found `{header.format}`"
            yield Difference(IMG001, name, _message(name, "the format"), detail)
    found: dict[str, tuple[str, Any]] = {
        side: _declared(example, image, side, Kind.INT64) for side in _SIDES
    }
    sides = {side: value for side, (_, value) in found.items()}
    for side, (name, declared) in found.items():
        actual = getattr(header, side)
        if declared is not None and declared != actual:
            turned = sides["height"] == header.width and sides["width"] == header.height
            more = ": the sides are exchanged, as if it had been turned" if turned else ""
            detail = f"declared {declared}, found {actual}{more}"
            yield Difference(IMG002, name, _message(name, f"the {side}"), detail)
    name, declared = _declared(example, image, "channels", Kind.INT64)
    fits = (header.channels, *(_PALETTES if _has_palette(data, header) else ()))
    if declared is not None and declared not in fits:
        detail = f"declared {declared}, found {header.channels}"
        yield Difference(IMG003, name, _message(name, "the number of channels"), detail)


def _declared(example: Example, image: str, what: str, kind: Kind) -> tuple[str, Any]:
    """Name and value of the declaring feature; an empty name and None without one."""
    for name in neighbours(image, what):
        feature = example.get(name)
        if feature is not None and feature.kind is kind and feature.count == 1:
            return name, feature.values[0]
    return "", None


def _has_palette(data: bytes, header: ImageHeader) -> bool:
    if header.format == "png":
        return data[_PNG_COLOUR] == 3
    return header.format in ("gif", "bmp")


def _message(name: str, what: str) -> str:
    return f"`{safe(name)}` should be {what} of the image"
