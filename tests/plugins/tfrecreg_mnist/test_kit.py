"""The kit's tests of a source."""

from __future__ import annotations

from pathlib import Path

from tfrecreg.testing import SourceTests, write_digits


class TestMnist(SourceTests):
    source = "mnist"

    def write_raw(self, folder: Path) -> None:
        write_digits(folder, train=9, test=4)
