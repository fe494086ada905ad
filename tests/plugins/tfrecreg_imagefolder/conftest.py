"""Folders of images, good and bad, made on the spot; and what the source makes of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from image_support import png
from raw_source_support import RawSource

from tfrecreg.core.build.sources.interface import Remark
from tfrecreg_imagefolder.source import ImageFolderSource


class Made:
    """What became of every item."""

    def __init__(
        self,
        written: dict[tuple[str, str], dict[str, Any]],
        skipped: dict[tuple[str, str], tuple[str, str]],
        remarks: list[Remark],
    ) -> None:
        self.written = written
        """By split and key: the single value of each feature."""
        self.skipped = skipped
        """By split and key: code and detail."""
        self.remarks = remarks

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

    def codes(self) -> dict[str, str]:
        """By key: why it was skipped."""
        return {key: code for (_, key), (code, _) in self.skipped.items()}


class Raw:
    """A raw folder, and what the source makes of it."""

    def __init__(self, path: Path) -> None:
        self._raw = RawSource(path, ImageFolderSource)
        self.source, self.error = self._raw.source, self._raw.error

    @property
    def path(self) -> Path:
        """The raw folder."""
        return self._raw.path

    @path.setter
    def path(self, path: Path) -> None:
        self._raw.path = path

    def put(self, name: str | bytes, data: bytes | str | None = None) -> Path:
        """A file; without data an image, of which no two are equal."""
        if data is None:
            data = png(5, 4, seed=sum(os.fsencode(name)))
        return self._raw.put(os.fsdecode(name), data)

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
        found = self._raw.made(*options)
        written: dict[tuple[str, str], dict[str, Any]] = {}
        for place, features in found.written.items():
            assert all(len(values) == 1 for values in features.values())
            written[place] = {name: values[0] for name, values in features.items()}
        return Made(written, found.skipped, found.remarks)


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return Raw(tmp_path / "raw")
