"""What may be asked of the validator `annotations`, in `limits.annotations` of a gate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

__all__ = ["AnnotationsOptions"]

Text = Annotated[str, Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationsOptions:
    """The options; none is needed where features have the field's usual names."""

    label: Text | None = None
    """The feature of class numbers, where it is called otherwise."""
    text: Text | None = None
    """The feature of class names that belongs to it."""
    label_map: Text | None = None
    """Path of a file of class names, where no manifest has them: see `label_map`."""
    imbalance: Annotated[float, Meta(gt=1)] | None = None
    """How often the commonest class of a split may be there for each time that the rarest is."""

    def __post_init__(self) -> None:
        if self.text is not None and self.label is None:
            raise ValueError("`text` belongs to a `label`, which is not named")
        if self.imbalance is not None and not math.isfinite(self.imbalance):
            raise ValueError("expected a finite `imbalance`")
