"""Deeds that write outside of a registry."""

from __future__ import annotations

import os
import shutil
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
from deed_support import Deed
from fault_support import NUMBERS
from kept_support import expect_nothing_left
from salvage_support import filler, make, put
from tests_support import flip

from tfrecreg.builtin.export.run import export
from tfrecreg.builtin.salvage.run import salvage
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.errors import UsageError


class _Outside(Deed):
    """Make the folder `out`."""

    def do(self) -> None:
        self.write(self.root / "out")

    @abstractmethod
    def write(self, folder: Path) -> None:
        """Make a folder."""

    def again(self) -> None:
        if not (self.root / "out").exists():
            self.do()
        else:
            with pytest.raises(UsageError, match="is not empty"):
                self.do()
            if self.seen() != self.after:  # it reported incomplete knowledge
                shutil.rmtree(self.root / "out")
                self.do()
        expect_nothing_left(self.root)

    def then(self) -> None:
        self.write(self.root / "another")

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        assert self.seen() in (self.before, self.after)


class Salvage(_Outside):
    """Salvage a damaged shard into a folder beside it."""

    released = ()

    def prepare(self) -> None:
        made = make([filler(number) for number in range(20)])
        (self.root / "in").mkdir(parents=True)
        flip(put(self.root / "in", made.data, made.index), 550)

    def write(self, folder: Path) -> None:
        salvage([str(self.root / "in/x.tfrecord")], folder)

    def command(self) -> list[str]:
        return ["salvage", str(self.root / "in/x.tfrecord"), "--output", str(self.root / "out")]

    def arguments(self) -> list[str]:
        return self.command()  # there is no registry

    def expect_done(self, said: str = "") -> None:
        if not said or said not in self.report():
            super().expect_done()

    def expect_unharmed(self, acknowledged: Sequence[str] = ()) -> None:
        # Without the index a salvage has fewer results, and says why.
        if not any(os.strerror(number) in self.report() for number in NUMBERS):
            super().expect_unharmed()

    def report(self) -> str:
        """Its report; empty without one."""
        path = self.root / "out/salvage.json"
        return path.read_text() if path.exists() else ""

    def expect_settled(self) -> None:
        expect_nothing_left(self.root)


class _Export(_Outside):
    """Export a release into a folder beside the registry's."""

    to: Literal["arrayrecord", "index", "parquet", "tfds", "webdataset"]

    def write(self, folder: Path) -> None:
        export(open_registry(self.root), "digits@1.0.0", folder, to=self.to)

    def command(self) -> list[str]:
        return ["export", "digits@1.0.0", str(self.root / "out"), "--to", self.to, "-j", "1"]


class ExportTfds(_Export):
    __doc__ = _Export.__doc__
    to = "tfds"


class ExportIndex(_Export):
    __doc__ = _Export.__doc__
    to = "index"


class ExportArrayRecord(_Export):
    __doc__ = _Export.__doc__
    to = "arrayrecord"


class ExportParquet(_Export):
    __doc__ = _Export.__doc__
    to = "parquet"


class ExportWebDataset(_Export):
    __doc__ = _Export.__doc__
    to = "webdataset"
