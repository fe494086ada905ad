"""What may be asked of the validator `images`, in `limits.images` of a gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

__all__ = ["ImagesOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagesOptions:
    """The options; by default headers are read and no pixel is decoded."""

    feature: Annotated[str, Meta(min_length=1)] | None = None
    """The feature that holds pictures, where neither schema nor usual names say it."""
    decode: bool = False
    """Whether every picture is decoded, in a process with limits; needs the extra `images`."""
    max_pixels: Annotated[int, Meta(ge=1)] = 1 << 28
    """Pixels that a picture may have."""
