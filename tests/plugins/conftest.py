"""Fake distributions: `.dist-info` folders and modules in a folder on `sys.path`."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

GOOD = """
    from tfrecreg.api import SourceRecord, hookimpl

    @hookimpl
    def tfrecreg_sources():
        yield SourceRecord("{name}", "a source for tests", load)

    def load():
        from {module}_source import Lines
        return Lines
"""

SOURCE = """
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class LinesOptions:
        encoding: str = "utf-8"

    class Lines:
        Options = LinesOptions

        def __init__(self, raw, options):
            self.raw, self.options = raw, options

        def raw_files(self):
            return iter(())

        def labels(self):
            return {}

        def items(self):
            return iter(())

        def example(self, item):
            return {}

        def schema(self):
            return ""
"""


class Site:
    """One folder of `sys.path` that distributions are put into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def module(self, name: str, text: str) -> None:
        (self.folder / f"{name}.py").write_text(dedent(text), "utf-8")
        importlib.invalidate_caches()

    def distribution(
        self,
        name: str,
        entry_points: Mapping[str, str],
        *,
        version: str = "1.0",
    ) -> None:
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(text, "utf-8")
        lines = ["[tfrecreg]", *(f"{key} = {value}" for key, value in entry_points.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")
        importlib.invalidate_caches()

    def plugin(self, distribution: str, text: str, *, version: str = "1.0") -> str:
        """A distribution whose one entry point is a module of its own with that text."""
        module = "fake_" + re.sub(r"[-.]", "_", distribution)
        self.module(module, text)
        self.distribution(distribution, {"main": module}, version=version)
        return module

    def source(self, distribution: str, name: str, *, version: str = "1.0") -> str:
        """A whole and working plugin that announces one source."""
        module = "fake_" + re.sub(r"[-.]", "_", distribution)
        self.module(f"{module}_source", SOURCE)
        text = GOOD.format(name=name, module=module)
        return self.plugin(distribution, text, version=version)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A fresh folder on `sys.path`; what was imported from it is forgotten afterwards."""
    folder = tmp_path / "site"
    site = Site(folder)
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield site
    for name in set(sys.modules) - before:
        if name.startswith("fake_"):
            del sys.modules[name]
