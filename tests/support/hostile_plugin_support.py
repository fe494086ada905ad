"""Plugins that break the rules, run in this process.

Each is a real distribution, `hostile` 6.6, in a folder that goes on `sys.path`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from plugin_support import install
from registry_support import write
from scan_support import files, stream

from tfrecreg.core.registry.init import init

EVIL = "`hostile` 6.6"

SOURCE = """
import sys
from tfrecreg.api import (
    Item, RawFile, Remark, Skipped, Source, SourceRecord, UsageError, Written, hookimpl,
    int64_feature,
)

class Good(Source):
    def raw_files(self):
        yield RawFile("a.txt", 5, 5)

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
import sys
from tfrecreg.api import (
    Code, Finding, Measure, RecordValidator, Severity, UsageError, ValidatorRecord, Visitor,
    hookimpl,
)

EVL = Code("EVL001", "evil", Severity.WARNING, "it is evil", "be good", "Page")

class Good(RecordValidator):
    name = "evil"
    codes = [EVL]

    def look(self, example):
        return None

@hookimpl
def tfrecreg_validators():
    yield ValidatorRecord("evil", "does harm", [EVL], load)

def load():
    return Evil

class Evil(Good):
"""


def plant(folder: Path, text: str, body: str, more: str = "") -> None:
    """A distribution of one module: `text`, which ends in a class with `body`, and `more`."""
    text = f"{text}{indent(dedent(body), '    ')}\n    pass\n{dedent(more)}"
    install(folder, "hostile", text, "6.6")


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
    "no interrupt": "raise GeneratorExit",
    "a refusal": "from tfrecreg.core.values.errors import RefusedError; raise RefusedError('no')",
    "an error that looks like ours": (
        "raise type('Mine', (UsageError,), {'exit_code': 0, '__module__': 'x'})('fine')"
    ),
}


def raised_in(places: Iterable[str]) -> list[Any]:
    """Everything that is raised, everywhere: an exit everywhere, and the others slowly."""
    return [
        pytest.param(
            where, what, marks=[] if what == "an exit" or where == "items" else pytest.mark.slow
        )
        for where in places
        for what in RAISED
    ]


class InProcess:
    """The command line, and a folder with a registry `r`, raw data, two shards and a plugin."""

    def __init__(self, cli: Any, root: Path) -> None:
        self._cli, self.root, self.site = cli, root, root / "site"

    def run(self, *arguments: str | Path) -> Any:
        from tfrecreg.core.plugins.code_digest import code_of, digest_of_packages
        from tfrecreg.core.plugins.manager import plugins

        for each in (plugins, code_of, digest_of_packages):  # as in a new process
            each.cache_clear()
        sys.modules.pop("hostile_plugin", None)
        return self._cli(*arguments)

    def build(self, *more: str) -> tuple[int, str, str]:
        options = ("--source", "evil", "--raw", self.root / "raw", *more)
        done = self.run("-C", self.root / "r", "build", "d", *options)
        return done.code, done.out, done.err

    def check(self, *more: str) -> Any:
        return self.run("check", self.root / "0.tfrecord", self.root / "1.tfrecord", *more)


@pytest.fixture
def here(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from tfrecreg.core.plugins.manager import plugins

    init(tmp_path / "r", with_dvc=False)
    write(tmp_path / "raw/a.txt", "hello")
    files(tmp_path, stream(5), stream(4))
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield InProcess(cli, tmp_path)
    plugins.cache_clear()
    sys.modules.pop("hostile_plugin", None)
