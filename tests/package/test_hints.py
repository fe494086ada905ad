"""Every error says what to do next."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from package_support import CHECKOUT

import tfrecreg.errors as errors
from tfrecreg.install_hint import install_command

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
