"""The kit's tests of a source."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from image_support import png

from tfrecreg.testing import SourceTests


class TestClassFolders(SourceTests):
    source = "imagefolder"

    def write_raw(self, folder: Path) -> None:
        for split, label in (("train", "cat"), ("train", "dog"), ("test", "cat"), ("test", "dog")):
            inside = folder / split / label
            inside.mkdir(parents=True)
            for number in range(2):
                (inside / f"{number}.png").write_bytes(png(5 + number, 4))


@pytest.mark.slow
class TestLabelFile(SourceTests):
    source = "imagefolder"
    options: ClassVar = {"label_file": "labels.csv"}

    def write_raw(self, folder: Path) -> None:
        lines = ["file,label"]
        for number in range(5):
            (folder / f"{number}.png").write_bytes(png(5 + number, 4))
            lines.append(f"{number}.png,{'odd' if number % 2 else 'even'}")
        (folder / "labels.csv").write_text("\n".join(lines), "utf-8")
