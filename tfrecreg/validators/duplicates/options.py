"""What may be asked of the validator `duplicates`, in `limits.duplicates` of a gate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

__all__ = ["DuplicatesOptions"]

Text = Annotated[str, Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicatesOptions:
    """The options; the defaults compare pictures by their bytes, and records without one whole."""

    feature: Text | None = None
    """The feature that is compared, whatever its kind."""
    pixels: bool = False
    """Whether pictures are decoded and compared by their pixels; needs the extra `images`."""
    group: Text | None = None
    """A feature whose value may be in one split only: the patient, the video, the place."""
    group_key: Text | None = None
    """The same by the keys of records: a regular expression whose first group, or else whose whole
    match, is the value. Needs the indexes of a build."""

    def __post_init__(self) -> None:
        if self.group is not None and self.group_key is not None:
            raise ValueError("expected one of `group` and `group_key`, found both")
        if self.group_key is not None:
            try:
                re.compile(self.group_key)
            except re.error as error:
                raise ValueError(f"`group_key` is no regular expression: {error}") from None
