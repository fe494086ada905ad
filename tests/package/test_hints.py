"""Every error says what to do next."""

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
import tfrecreg.errors as errors
from tfrecreg.install_hint import install_command
from tfrecreg.text import DOCS

ERRORS = {
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type)
    and issubclass(kind, errors.TfrecregError)
    and kind is not errors.MissingExtraError  # it makes its own
}
MODULES = [
    path
    for folder in ("tfrecreg", "plugins")
    for path in sorted((CHECKOUT / folder).rglob("*.py"))
    if any(name in path.read_text("utf-8") for name in ERRORS)
]


def test_there_are_errors_to_look_at() -> None:
    assert len(MODULES) > 100
    assert "UsageError" in ERRORS


def test_a_missing_extra_says_how_to_get_it() -> None:
    error = errors.MissingExtraError("reading minds", "telepathy")
    assert error.hint == install_command(extra="telepathy")


@pytest.mark.medium
@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_error_that_is_raised_has_a_hint(path: Path) -> None:
    bare = [
        f"{path.name}:{node.lineno}: {ast.unparse(node)[:80]}"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ERRORS
        and not any(each.arg in ("hint", None) for each in node.keywords)
    ]
    assert bare == []


def shown_texts() -> Iterator[tuple[str, str]]:
    """Texts that a user of a wheel may read, which has no folder `docs`: where, and the text."""
    for path in sorted((CHECKOUT / "tfrecreg/codes").glob("*.md")):
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
