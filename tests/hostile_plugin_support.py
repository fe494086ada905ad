"""Plugins that do what none should. On sys.path by `pythonpath` in pyproject.toml.

Each is a real distribution, `hostile` 6.6, in a folder that goes on `sys.path`.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

__all__ = ["DISTRIBUTION", "SOURCE", "VALIDATOR", "plant", "plant_source", "plant_validator"]

DISTRIBUTION = "hostile"

SOURCE = """
import ctypes, os, signal, sys, threading, time
from dataclasses import dataclass
from tfrecreg.api import (
    Item, MissingExtraError, RawDataError, RawFile, Remark, Skipped, SourceRecord, UsageError,
    Written, bytes_feature, hookimpl, int64_feature,
)

@dataclass(frozen=True)
class Options:
    shade: str = "dark"

class Good:
    Options = Options

    def __init__(self, raw, options):
        self.raw = raw

    def raw_files(self):
        yield RawFile("a.txt", 5, 5)

    def labels(self):
        return {"label": ["one", "two"]}

    def items(self):
        for number in range(4):
            yield Item("train", str(number), 10)

    def example(self, item):
        return {"label": int64_feature(int(item.key) % 2)}

    def schema(self):
        return 'feature { name: "label" type: INT shape {} }'

@hookimpl
def tfrecreg_sources():
    yield SourceRecord("evil", "does harm", load)

def load():
    return Evil

class Evil(Good):
"""

VALIDATOR = """
import ctypes, os, signal, sys, threading, time
from tfrecreg.api import (
    Code, Finding, Location, Measure, MissingExtraError, Need, Severity, Tally, UsageError,
    ValidatorRecord, hookimpl,
)

EVL = Code("EVL001", "evil", Severity.WARNING, "it is evil", "be good", "Page")

class Good:
    name = "evil"
    codes = [EVL]
    needs = Need.FRAMES

    def applies(self, target):
        return None

    def begin(self, target, options):
        return Eye

    def finish(self, target, parts):
        for _, part in parts:
            pass
        yield Measure("evil.nothing", 0, "nothing")

class GoodEye:
    def __init__(self, shard):
        pass

    def batch(self, batch):
        pass

    def fault(self, fault):
        pass

    def close(self, end):
        return 0

class Eye(GoodEye):
    pass

@hookimpl
def tfrecreg_validators():
    yield ValidatorRecord("evil", "does harm", [EVL], load)

def load():
    return Evil

class Evil(Good):
"""


def plant(folder: Path, text: str) -> None:
    """A distribution whose one entry point is a module with that text."""
    info = folder / f"{DISTRIBUTION}-6.6.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: 6.6\n")
    (info / "entry_points.txt").write_text("[tfrecreg]\nmain = hostile_plugin\n")
    (folder / "hostile_plugin.py").write_text(dedent(text))


def plant_source(folder: Path, body: str, *, more: str = "") -> None:
    """A source `evil`, whose class has `body`; `more` comes behind it."""
    plant(folder, f"{SOURCE}{indent(dedent(body), '    ')}\n    pass\n{dedent(more)}")


def plant_validator(folder: Path, body: str, *, more: str = "") -> None:
    """A validator `evil`, whose class has `body`; `more` comes behind it."""
    plant(folder, f"{VALIDATOR}{indent(dedent(body), '    ')}\n    pass\n{dedent(more)}")
