"""The size of decoded images, as arguments say it: alike for `load` and for data sources."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import listed, safe

Fit = Literal["stretch", "crop", "pad", "short-side"]


_CHANNELS = (0, 1, 3, 4)


def expect_channels(channels: int) -> None:
    """Refuse a number of channels that images cannot be brought to."""
    if channels not in _CHANNELS:
        raise UsageError(
            f"`channels` should be one of {listed(map(str, _CHANNELS))}, "
            f"found {safe(str(channels))}",
            hint="`channels=3` decodes to red, green and blue",
        )


@dataclass(frozen=True, kw_only=True)
class ImageSize:
    """The arguments about the size of images that all readers have."""

    size: tuple[int, int] | int | None = None
    """Height and width, or the shorter side; None for the size that each image has."""
    fit: Fit = "stretch"

    def __post_init__(self) -> None:
        # Plain integers: sources are saved as JSON, and NumPy's have another type.
        given: Any = self.size
        is_pair = isinstance(given, tuple | list)
        sides: Sequence[Any] = given if is_pair else (given,)
        if all(hasattr(each, "__index__") and not isinstance(each, bool) for each in sides):
            whole = tuple(map(operator.index, sides))
            object.__setattr__(self, "size", whole if is_pair else whole[0])

    @property
    def sides(self) -> tuple[int | None, int | None]:
        """Height and width that all images get; None where it differs."""
        return self.size if isinstance(self.size, tuple) else (None, None)

    def expect_sense(self) -> None:
        """Refuse values that are none, or that do not go together."""
        self._expect_one_of("fit", get_args(Fit))
        if self.size is None:
            if self != type(self)():
                others = [each.name for each in fields(self) if each.name != "size"]
                raise UsageError(
                    f"{listed(others)} need{'s' if len(others) == 1 else ''} `image_size`",
                    hint="`image_size=(224, 224), fit='crop'`",
                )
        elif self.fit == "short-side":
            if type(self.size) is not int or self.size < 1:
                raise UsageError(
                    f"`image_size` should be the length of the shorter side, found {self.size}",
                    hint="`image_size=256, fit='short-side'`; `fit='crop'` takes height and width",
                )
        elif not _is_two_sides(self.size):
            raise UsageError(
                f"`image_size` should be height and width, found {self.size}",
                hint="`image_size=(224, 224)`",
            )

    def _expect_one_of(self, name: str, known: tuple[Any, ...]) -> None:
        value = getattr(self, name)
        if value not in known:
            raise UsageError(
                f"`{name}` should be one of {listed(known)}, found `{safe(str(value))}`",
                hint=f"`{name}={known[0]!r}` is the default",
            )


def _is_two_sides(size: Any) -> bool:
    """Whether it is height and width."""
    is_pair = isinstance(size, tuple) and len(size) == 2
    return is_pair and all(type(each) is int and each > 0 for each in size)
