"""Plugins that break the rules, and folders to run them in.

Each is a real distribution, `hostile` 6.6, in a folder that goes on `sys.path`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from scan_support import files, stream

from tfrecreg.core.registry.init import init

DISTRIBUTION = "hostile"
EVIL = "`hostile` 6.6"
SLOW = pytest.mark.slow

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
    needs = Need(0)

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
    """A source `evil`, whose class has `body`, followed by `more`."""
    plant(folder, f"{SOURCE}{indent(dedent(body), '    ')}\n    pass\n{dedent(more)}")


def plant_validator(folder: Path, body: str, *, more: str = "") -> None:
    """A validator `evil`, whose class has `body`, followed by `more`."""
    plant(folder, f"{VALIDATOR}{indent(dedent(body), '    ')}\n    pass\n{dedent(more)}")


@dataclass
class Place:
    """A folder with a registry `r`, raw data, a TFRecord file, and room for a plugin."""

    root: Path

    @property
    def site(self) -> Path:
        return self.root / "site"

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tfrecreg", *arguments],
            cwd=self.root,
            env={
                **os.environ,
                "PYTHONPATH": f"{self.site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
                **{"NO_COLOR": "1", "COLUMNS": "100", "TFRECREG_JOBS": "1", **env},
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, **env: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **env)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def build(self, **env: str) -> tuple[int, str, str]:
        return self.run("-C", "r", "build", "d", "--source", "evil", "--raw", "raw", **env)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    init(tmp_path / "r", with_dvc=False)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.txt").write_text("hello")
    files(tmp_path, stream(5), stream(4))
    return Place(tmp_path)


def expect_one_line(done: tuple[int, str, str], *words: str) -> None:
    code, out, err = done
    assert code == 3, (out, err)
    lines = [line for line in err.splitlines() if not line.startswith("next:")]
    (line,) = [line for line in lines if line.startswith("error: ")]
    for word in (EVIL, *words):
        assert word in line
    assert [each.partition(":")[0] for each in lines] == ["error", "hint"]
    assert out == ""


RAISED = {
    "an error": "raise RuntimeError('oh no')",
    "an exit": "sys.exit(0)",
    "an exit that says 1": "raise SystemExit(1)",
    "no interrupt": "raise GeneratorExit",
    "too deep": "f = lambda: f(); f()",
    "no memory": "raise MemoryError",
    "a refusal": "from tfrecreg.core.values.errors import RefusedError; raise RefusedError('no')",
    "an error that looks like ours": (
        "raise type('Mine', (UsageError,), {'exit_code': 0, '__module__': 'x'})('fine')"
    ),
    "two lines": "raise UsageError('one\\ntwo')",
    "no words": "raise UsageError(None)",
    "an error that cannot be told": (
        "raise type('E', (Exception,), {'__str__': lambda self: 1 / 0})()"
    ),
}


def raised_in(places: Iterable[str]) -> list[Any]:
    """Everything that is raised, everywhere: an exit everywhere, and the others slowly."""
    return [
        pytest.param(where, what, marks=[] if what == "an exit" or where == "items" else SLOW)
        for where in places
        for what in RAISED
    ]


class InProcess:
    """The command line in this process, and a plugin for it."""

    def __init__(self, cli: Any, place: Place) -> None:
        self._cli, self._root, self.site = cli, place.root, place.site

    def run(self, *arguments: str | Path) -> Any:
        from tfrecreg.core.plugins.code_digest import code_of, digest_of_packages
        from tfrecreg.core.plugins.manager import plugins

        for each in (plugins, code_of, digest_of_packages):  # as in a new process
            each.cache_clear()
        sys.modules.pop("hostile_plugin", None)
        return self._cli(*arguments)

    def build(self, *more: str) -> tuple[int, str, str]:
        options = ("--source", "evil", "--raw", self._root / "raw", *more)
        done = self.run("-C", self._root / "r", "build", "d", *options)
        return done.code, done.out, done.err

    def check(self, *more: str) -> Any:
        shards = (self._root / "0.tfrecord", self._root / "1.tfrecord")
        return self.run("check", *shards, "--json", *more)


@pytest.fixture
def here(cli: Any, place: Place, monkeypatch: pytest.MonkeyPatch) -> Any:
    from tfrecreg.core.plugins.manager import plugins

    place.site.mkdir()
    monkeypatch.syspath_prepend(str(place.site))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield InProcess(cli, place)
    plugins.cache_clear()
    sys.modules.pop("hostile_plugin", None)
