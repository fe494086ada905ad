"""A third-party plugin, as `pip install` would leave it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from tfrecreg.core.plugins.manager import plugins

PLUGIN = """
    from tfrecreg.api import Code, Finding, Location, Measure, Need, Severity, Tally
    from tfrecreg.api import ValidatorRecord, hookimpl

    EVE = Code("EVE001", "even-record", Severity.WARNING, "a record is even", "make it odd", "Page")

    class Even:
        name = "even"
        codes = [EVE]
        needs = Need(0)

        def applies(self, target):
            return None

        def begin(self, target, options):
            self.options = dict(options)
            return Eye

        def finish(self, target, parts):
            total = Tally()
            for shard, part in parts:
                total.merge(part)
            yield from total.findings(target.dataset)
            yield Measure("even.options", str(self.options), "what it was told")

    class Eye:
        def __init__(self, shard):
            self.shard, self.tally = shard, Tally()

        def batch(self, batch):
            for position in range(len(batch)):
                number = batch.first + position
                if number % 2 == 0:
                    where = Location(split=self.shard.split, shard=self.shard.name, record=number)
                    self.tally.add(EVE, "the number is even", where, split=self.shard.split)

        def fault(self, fault):
            pass

        def close(self, end):
            return self.tally

    {more}

    @hookimpl
    def tfrecreg_validators():
        yield ValidatorRecord("{name}", "finds even numbers", [EVE], load)
"""

LOAD = "def load(): return Even"

Install = Callable[..., None]


@pytest.fixture
def install_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """``install_plugin("dist", more=..., name=...)`` installs a distribution with one validator.

    `more` is code behind the class `Even`, and has to define `load`. `text` replaces it all.
    """
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)

    def install(
        distribution: str = "stranger", *, more: str = LOAD, name: str = "even", text: str = ""
    ) -> None:
        module = f"fake_{distribution}"
        code = text or dedent(PLUGIN).replace("{more}", dedent(more)).replace("{name}", name)
        (folder / f"{module}.py").write_text(code)
        info = folder / f"{distribution}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n"
        )
        (info / "entry_points.txt").write_text(f"[tfrecreg]\nmain = {module}\n")
        importlib.invalidate_caches()
        plugins.cache_clear()

    yield install
    plugins.cache_clear()
    for name in set(sys.modules) - before:
        if name.startswith("fake_"):
            del sys.modules[name]
