"""Folders of images, good and bad, made on the spot; and what the source makes of them."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from image_support import png

from tfrecreg.errors import TfrecregError
from tfrecreg.sources.interface import Item, Remark, Skipped, Written
from tfrecreg.storage.local import LocalStorage
from tfrecreg.typed_values import parse_options
from tfrecreg_imagefolder.imagefolder_options import ImageFolderOptions
from tfrecreg_imagefolder.source import ImageFolderSource


@dataclass
class Made:
    """What became of every item."""

    written: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """By split and key: the single value of each feature."""
    skipped: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """By split and key: code and detail."""
    remarks: list[Remark] = field(default_factory=list)

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
        self.path = path
        path.mkdir(exist_ok=True)

    def put(self, name: str | bytes, data: bytes | str | None = None) -> Path:
        """A file; without data an image, of which no two are equal."""
        path = self.path / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            data = png(5, 4, seed=sum(os.fsencode(name)))
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def puts(self, *names: str) -> None:
        """Images."""
        for name in names:
            self.put(name)

    def link(self, name: str, target: str) -> None:
        """A symbolic link."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def source(self, *options: str) -> ImageFolderSource:
        """The source, as a worker has it: it was pickled."""
        parsed = parse_options(ImageFolderOptions, list(options), of="imagefolder")
        made = ImageFolderSource(LocalStorage(self.path), parsed)
        return pickle.loads(pickle.dumps(made))

    def made(self, *options: str) -> Made:
        """Every item, made in another object than it was listed in."""
        result = Made()
        worker = self.source(*options)
        for item in self.source(*options).items():
            if isinstance(item, Remark):
                result.remarks.append(item)
                continue
            made = worker.example(item) if isinstance(item, Item) else item
            place = item.split, item.key
            assert place not in result.written
            if isinstance(made, Skipped):
                assert made[:2] == place
                result.skipped[place] = made.code, made.detail
                continue
            if isinstance(made, Written):
                result.remarks.extend(made.remarks)
                made = made.example
            for feature in made.values():
                assert feature.count == 1
            result.written[place] = {name: each.values[0] for name, each in made.items()}
        return result

    def error(self, *options: str) -> TfrecregError:
        """Why it is refused; the first line of what a user sees, and its hint."""
        with pytest.raises(TfrecregError) as caught:
            list(self.source(*options).items())
        assert caught.value.exit_code == 2
        assert "\n" not in caught.value.message
        return caught.value


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return Raw(tmp_path / "raw")
