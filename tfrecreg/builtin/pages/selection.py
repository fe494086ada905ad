"""The size of a page: the bytes used, and the records left out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfrecreg.builtin.pages.records import PageRecord
from tfrecreg.core.images.drawing.drawing import overlay

_RECORD = 1500
"""Bytes of the HTML around a record, about."""


@dataclass(slots=True)
class Budget:
    """Bytes that are left for records. They are spent in order of importance."""

    left: int
    images: int = 0
    """Images that were left out."""
    records: int = 0
    """Records that were left out."""

    def spend(self, record: PageRecord) -> PageRecord | None:
        """The record as the page can have it: whole, without its image, or not at all."""
        size = _RECORD + sum(len(each.name) + len(each.shown) + 60 for each in record.features)
        if size > self.left:
            self.records += 1
            return None
        self.left -= size
        image = record.image
        if image is None:
            return record
        image_size = len(image.data) * 4 // 3 + len(overlay(image.drawing))
        if image_size > self.left:
            self.images += 1
            return replace(record, image=None, problem="the image is left out: the page is full")
        self.left -= image_size
        return record

    def left_out(self) -> tuple[str, ...]:
        """What was left out, one line each."""
        lines = []
        if self.images:
            lines.append(f"{self.images} images")
        if self.records:
            lines.append(f"{self.records} records")
        return tuple(lines)
