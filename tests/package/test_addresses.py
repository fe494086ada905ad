"""Texts that a user of a wheel reads name pages of the documentation by their addresses."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from package_support import CHECKOUT

import tfrecreg
import tfrecreg.api
from tfrecreg.core.values.text import DOCS

MODULES = [
    path
    for folder in ("tfrecreg", "plugins")
    for path in sorted((CHECKOUT / folder).rglob("*.py"))
    if "hint=" in path.read_text("utf-8")
]


def shown_texts() -> Iterator[tuple[str, str]]:
    """Texts that a user of a wheel may read, which has no folder `docs`: where, and the text."""
    for path in sorted((CHECKOUT / "tfrecreg/core/values/codes").glob("*.md")):
        yield path.name, path.read_text("utf-8")
    for module in (tfrecreg, tfrecreg.api):
        yield module.__name__, module.__doc__ or ""
        for name in module.__all__:
            member = getattr(module, name)
            if inspect.isclass(member) or inspect.isfunction(member):
                yield name, inspect.getdoc(member) or ""
                for each in vars(member).values() if inspect.isclass(member) else ():
                    yield name, inspect.getdoc(each) or ""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                yield str(path), ast.unparse(node.value).replace("{DOCS}", DOCS)


@pytest.mark.medium
def test_pages_are_named_by_their_addresses() -> None:
    project = (CHECKOUT / "pyproject.toml").read_text("utf-8")
    assert f'Documentation = "{DOCS}"' in project
    named = [
        (where, page)
        for where, text in shown_texts()
        for page in re.findall(r"(?:https\S*?/)?docs/[\w/.-]*\w", text)
    ]
    assert len(named) > 10
    assert [each for each in named if not each[1].startswith(f"{DOCS}/")] == []
    pages = {page.removeprefix(DOCS) for _, page in named}
    assert [page for page in pages if not Path(f"{CHECKOUT}/docs{page}").exists()] == []
