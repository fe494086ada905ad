"""What a record says of its picture, and where that is not what the picture's header says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, NamedTuple

from tfrecreg.codes import IMG001, IMG002, IMG003
from tfrecreg.example import Example, Kind
from tfrecreg.findings import Code
from tfrecreg.pictures import PictureHeader
from tfrecreg.text import safe
from tfrecreg.validators.tables import Table, Tables

__all__ = ["Declared", "Difference", "declared_columns", "differences", "neighbours"]

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
