"""Pages and examples use what is public: `tfrecreg.__all__`, `tfrecreg.api`, `tfrecreg.testing`,
`tfrecreg.torch`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrecreg.api
import tfrecreg.testing
import tfrecreg.torch

ROOT = Path(__file__).parents[2]
PUBLIC = {
    "tfrecreg": {*tfrecreg.__all__, "api", "testing", "torch"},
    "tfrecreg.api": set(tfrecreg.api.__all__),
    "tfrecreg.testing": set(tfrecreg.testing.__all__),
    "tfrecreg.torch": set(tfrecreg.torch.__all__),
}
"""The names of each public module."""

PAGES = ("README.md", "docs/*.md", "docs/sources/*.md", "examples/**/*.md", "examples/**/*.py")
FILES = sorted(
    path.relative_to(ROOT).as_posix() for pattern in PAGES for path in ROOT.glob(pattern)
)
FOR_DEVELOPERS = {"docs/formats.md"}

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(tfrecreg(?:\.[A-Za-z_]\w*)+)")


def unknown(code: str) -> Iterator[str]:
    """The names of tfrecreg in a program that are not public."""
    tree = ast.parse(code)
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.partition(".")[0]
                modules[each.asname or top] = each.name if each.asname else top
                if top == "tfrecreg" and each.name not in PUBLIC:
                    yield each.name
        elif isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "tfrecreg":
            public = PUBLIC.get(str(node.module), set())
            for each in node.names:
                modules[each.asname or each.name] = f"{node.module}.{each.name}"
                if each.name not in public:
                    yield f"{node.module}.{each.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, dot, rest = ast.unparse(node.value).partition(".")
            module = modules.get(first, "") + dot + rest
            if module in PUBLIC and node.attr not in PUBLIC[module]:
                yield f"{module}.{node.attr}"


@pytest.mark.parametrize("file", FILES)
def test_code_uses_public_names(file: str) -> None:
    text = (ROOT / file).read_text("utf-8")
    programs = PYTHON.findall(text) if file.endswith(".md") else [text]
    assert [name for program in programs for name in unknown(program)] == []


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.endswith(".md") and file not in FOR_DEVELOPERS]
)
def test_text_names_what_is_public(file: str) -> None:
    text = re.sub(r"^```.*?^```$", "", (ROOT / file).read_text("utf-8"), flags=re.M | re.S)
    names = {f"{module}.{name}" for module, names in PUBLIC.items() for name in names}
    assert {*INLINE.findall(text)} <= names | {"tfrecreg.__all__", "tfrecreg.toml", "tfrecreg.json"}
