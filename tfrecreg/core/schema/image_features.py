"""Finds features that hold images, and compares images with what their records declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, NamedTuple

from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.check.scan.tally import Problem
from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.images.model import ImageHeader
from tfrecreg.core.images.read import sniff
from tfrecreg.core.schema.payload_kinds import Table, Tables, target_schema
from tfrecreg.core.values.codes import IMG001, IMG002, IMG003
from tfrecreg.core.values.text import safe

ENCODED = "image/encoded"
"""The usual name of the feature that holds an image."""

_HEAD = 64
"""Number of bytes that are read to detect an image's format; a shorter value is not an image."""
_TRIES = 16
"""If no image feature of a shard is known, this many records are searched for one."""


def schema_images(target: Target) -> tuple[str, ...]:
    """The features that hold images according to the target's schema; empty if it has no schema."""
    return target_schema(target).images() if target.schema is not None else ()


class ImageFeatures:
    """The features of one shard that hold encoded images.

    If a record has the feature :data:`ENCODED`, and the schema names this feature or no image
    feature, it is the record's only image feature. Otherwise, the image features are those that the
    schema names. If the schema names none, a feature holds images if its value begins like an image
    in one of the first records.
    """

    def __init__(self, named: tuple[str, ...] = ()) -> None:
        self._named = named
        self._learnt: tuple[str, ...] = ()
        self._tries = 0

    def of(self, example: Example) -> tuple[str, ...]:
        """The names of the image features with at least one value in this record."""
        if ENCODED in example and (not self._named or ENCODED in self._named):
            names: tuple[str, ...] = (ENCODED,)
        else:
            names = self._named or self._learnt or self._learn(example)
        found = []
        for name in names:
            feature = example.get(name)
            if feature is not None and feature.kind is Kind.BYTES and feature.count:
                found.append(name)
        return tuple(found)

    def _learn(self, example: Example) -> tuple[str, ...]:
        if self._tries >= _TRIES:
            return ()
        self._tries += 1
        found = [
            name
            for name, each in sorted(example.items())
            if each.kind is Kind.BYTES and each.count == 1 and each.sizes[0] >= _HEAD
        ]
        self._learnt = tuple(each for each in found if sniff(example[each].values[0][:_HEAD]))
        return self._learnt


_SAME = {"jpg": "jpeg", "jpe": "jpeg", "jfif": "jpeg", "dib": "bmp"}
_PALETTES = (1, 3, 4)
"""Possible channels of an image with a palette: 1 for indexes, 3 for colors, 4 with alpha."""
_PNG_COLOUR = 25
"""Offset of the color type in a PNG; 3 is a palette."""


class Declared(NamedTuple):
    """What a record declares about its image. A field is None if the record does not declare it."""

    format: bytes | None
    height: int | None
    width: int | None
    channels: int | None

    def fits(self, header: ImageHeader) -> bool:
        """Whether the declarations certainly match the header. If not, see :func:`differences`."""
        return (
            (self.format is None or self.format == header.format.encode())
            and (self.height is None or self.height == header.height)
            and (self.width is None or self.width == header.width)
            and (self.channels is None or self.channels == header.channels)
        )


def declared_columns(tables: Tables, table: Table, image: str) -> Iterator[Declared]:
    """For each record of a table, what it declares about the image in its feature `image`."""
    columns: list[Iterable[Any]] = []
    name, _ = _declared(table.sample, image, "format", Kind.BYTES)
    columns.append(tables.values(table, name) if name else repeat(None, len(table.positions)))
    for what in ("height", "width", "channels"):
        name, _ = _declared(table.sample, image, what, Kind.INT64)
        if name:
            columns.append(table.columns[name][1].integers.tolist())
        else:
            columns.append(repeat(None, len(table.positions)))
    return map(Declared._make, zip(*columns, strict=True))


def neighbours(image: str, what: str) -> tuple[str, ...]:
    """Names of features that may give the property `what` of an image, most likely first:
    ``image/height`` for ``image/encoded``; ``image_height``, ``image/height`` and ``height`` for
    ``image``.
    """
    folder = image.rpartition("/")[0]
    if folder:
        return (f"{folder}/{what}",)
    return (f"{image}_{what}", f"{image}/{what}", what)


def differences(
    example: Example, image: str, data: bytes, header: ImageHeader
) -> Iterator[Problem]:
    """Compare the declarations of a record with the header of its image."""
    name, declared = _declared(example, image, "format", Kind.BYTES)
    if declared is not None:
        text = declared[:64].decode("utf-8", "surrogateescape").lower().removeprefix("image/")
        text = text.strip().removeprefix(".")
        if _SAME.get(text, text) != header.format:
            detail = f"declared `{safe(text)}`, found `{header.format}`"
            yield Problem(IMG001, name, _message(name, "the format"), detail)
    is_png = header.format == "png"
    has_palette = data[_PNG_COLOUR] == 3 if is_png else header.format in ("gif", "bmp")
    for side, code, fitting in (
        ("height", IMG002, (header.height,)),
        ("width", IMG002, (header.width,)),
        ("channels", IMG003, (header.channels, *(_PALETTES if has_palette else ()))),
    ):
        name, declared = _declared(example, image, side, Kind.INT64)
        if declared is not None and declared not in fitting:
            what = "the number of channels" if side == "channels" else f"the {side}"
            detail = f"declared {declared}, found {fitting[0]}"
            yield Problem(code, name, _message(name, what), detail)


def _declared(example: Example, image: str, what: str, kind: Kind) -> tuple[str, Any]:
    """Name and value of the feature that declares `what`, or an empty name and None."""
    for name in neighbours(image, what):
        feature = example.get(name)
        if feature is not None and feature.kind is kind and feature.count == 1:
            return name, feature.values[0]
    return "", None


def _message(name: str, what: str) -> str:
    return f"`{safe(name)}` should be {what} of the image"
