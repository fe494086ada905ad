"""Registries with local plugins, and what this user trusts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from registry_support import write

from tfrecreg.builtin.local_plugins import change_trust, code_digest
from tfrecreg.core.registry.init import init

SOURCE = '''
from dataclasses import dataclass

from tfrecreg.api import Item, RawFile, Source, bytes_feature

from .lines import lines_of


@dataclass(frozen=True)
class LinesOptions:
    lower: bool = False
    """Whether texts are in lower case."""


class Lines(Source):
    """A record a line of a text file."""

    Options = LinesOptions

    def raw_files(self):
        for each in self.raw.list():
            yield RawFile(each.path, each.size, each.size)

    def items(self):
        for file in self.raw_files():
            for number, line in enumerate(lines_of(self.raw.read(file.path))):
                yield Item("train", f"{file.path}-{number}", len(line), line)

    def example(self, item):
        return {"text": bytes_feature(item.state)}

    def schema(self):
        return 'feature { name: "text" type: BYTES presence { min_fraction: 1 } shape {} }'
'''
LINES = "def lines_of(data):\n    return data.splitlines()\n"
CHECK = '''
from tfrecreg.api import Code, RecordValidator, Severity

LOC001 = Code(
    code="LOC001", rule="no-capitals", severity=Severity.ERROR,
    summary="A text has no capital letter", hint="write one", page="Names have capitals.",
)


class Capitals(RecordValidator):
    """Texts without a capital letter."""

    name = "capitals"
    codes = (LOC001,)
    features = ("text",)

    def look(self, example):
        text = example["text"].values[0]
        return None if text != text.lower() else f"found {text!r}"
'''


class LocalRegistry:
    """A registry with a local source, and raw data for it."""

    word = "./sources/texts.py:Lines"

    def __init__(self, root: Path) -> None:
        self.root = root
        init(root, with_dvc=False)
        self.put("sources/texts.py", SOURCE)
        self.put("sources/lines.py", LINES)
        self.put("raw/a.txt", "Anna\nberta\nCarl\n")
        self.name_files("sources/texts.py")

    def put(self, path: str, text: str) -> Path:
        code_digest.cache_clear()
        return write(self.root / path, text)

    def trust(self) -> None:
        change_trust(str(self.root), trusted=True)

    def with_check(self, text: str = CHECK) -> None:
        self.put("checks/capitals.py", text)
        self.name_files("checks/*.py", "sources/texts.py")

    def name_files(self, *globs: str) -> None:
        place = self.root / "tfrecreg.toml"
        before = place.read_text().partition("\n[plugins]\n")[0]
        place.write_text(f"{before}\n[plugins]\nlocal = {json.dumps(globs)}\n")


@pytest.fixture
def local_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalRegistry:
    """A registry whose plugins are not trusted, with an empty list of what is."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return LocalRegistry(tmp_path / "registry")
