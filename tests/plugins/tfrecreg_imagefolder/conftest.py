"""Folders of images, good and bad, made on the spot; and what the source makes of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import raw_source_support
from image_support import png
from raw_source_support import RawSource

from tfrecreg_imagefolder.source import ImageFolderSource


class Made(raw_source_support.Made):
    """The result for every item; each feature has a single value."""

    def splits(self) -> dict[str, int]:
        """Written items a split."""
        counts: dict[str, int] = {}
        for split, _ in self.written:
            counts[split] = counts.get(split, 0) + 1
        return counts

    def labels(self) -> dict[str, tuple[int, str]]:
        """By key: label and name of the class."""
        return {
            key: (found["image/class/label"], found["image/class/text"].decode())
            for (_, key), found in self.written.items()
        }

    def codes(self) -> dict[str, str]:  # type: ignore[override]
        """By key: why it was skipped."""
        return {key: code for (_, key), (code, _) in self.skipped.items()}


class Raw(RawSource):
    """A raw folder, and what the source makes of it."""

    kind = ImageFolderSource

    def put(self, name: str | bytes, data: bytes | str | None = None) -> Path:
        """A file; without data an image, of which no two are equal."""
        if data is None:
            data = png(5, 4, seed=sum(os.fsencode(name)))
        return super().put(os.fsdecode(name), data)

    def puts(self, *names: str) -> None:
        """Images."""
        for name in names:
            self.put(name)

    def link(self, name: str, target: str) -> None:
        """A symbolic link."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def made(self, *options: str) -> Made:
        """Every item."""
        found = super().made(*options)
        written: dict[tuple[str, str], dict[str, Any]] = {}
        for place, features in found.written.items():
            assert all(len(values) == 1 for values in features.values())
            written[place] = {name: values[0] for name, values in features.items()}
        return Made(written, found.skipped, found.remarks)


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return Raw(tmp_path / "raw")
