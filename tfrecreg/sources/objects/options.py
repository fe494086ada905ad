"""The options of all sources that read boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfrecreg.errors import UsageError


@dataclass(frozen=True)
class ObjectOptions:
    """How unusable boxes are treated. The options of a source inherit from it.

    Raises:
        UsageError: `clip` is negative.
    """

    bad_boxes: Literal["drop", "keep", "skip-image", "fail"] = "drop"
    """Handling of boxes that are not finite, have no area or leave the image: drop the object, keep
    it unchanged, skip the image, or fail.
    """
    clip: float = 1.0
    """Clip a box that sticks out of its image by at most this many pixels."""
    dangling: Literal["fail", "drop"] = "fail"
    """Handling of annotations whose image or category is not listed."""

    def __post_init__(self) -> None:
        if self.clip < 0:
            raise UsageError(
                f"the option `clip` is {self.clip:g}, expected 0 or more pixels",
                hint="--option clip=1",
            )
