"""Nobody asks which storage or engine it has: what differs is a property or a method of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from package_support import source_modules


class Seen(NamedTuple):
    """What a module says of classes."""

    classes: dict[str, set[str]]
    """The names of the bases and methods of each class, by its name."""
    asked: set[str]
    """The names that `isinstance`, `issubclass`, `match` or a comparison asks for."""


def seen(source: str) -> Seen:
    found = Seen({}, set())
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            found.classes[node.name] = methods.union(*map(names, node.bases))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("isinstance", "issubclass"):
                found.asked.update(*map(names, node.args[1:]))
        elif isinstance(node, ast.MatchClass):
            found.asked.update(names(node.cls))
        elif isinstance(node, ast.Compare):
            found.asked.update(*map(names, (node.left, *node.comparators)))
    return found


def names(node: ast.expr) -> Iterator[str]:
    """The classes that an expression may name, without the modules that they are from."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Subscript):
        yield from names(node.value)
    elif isinstance(node, ast.BinOp):
        yield from names(node.left)
        yield from names(node.right)
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for each in node.elts:
            yield from names(each)


@pytest.fixture(scope="module")
def modules() -> dict[str, Seen]:
    return {name: seen(path.read_text("utf-8")) for name, path in source_modules().items()}


def kinds(modules: dict[str, Seen], *common: str) -> set[str]:
    """The classes that have one of these as a base or as a method, and those derived from them."""
    classes = {name: bases for each in modules.values() for name, bases in each.classes.items()}
    found = set(common)
    while more := {name for name, bases in classes.items() if bases & found} - found:
        found |= more
    return found - set(common)


STORAGES, ENGINES = ("Readable", "below"), ("Engine",)
"""What all storages and all engines have. A class may be asked whether it is a storage at all."""


@pytest.mark.parametrize(
    ("owner", "common"), [("tfrecreg.core.storage.", STORAGES), ("tfrecreg.core.workers.", ENGINES)]
)
def test_nobody_asks_which_one_it_has(
    modules: dict[str, Seen], owner: str, common: tuple[str, ...]
) -> None:
    which = kinds(modules, *common)
    asking = {
        name: found
        for name, each in modules.items()
        if not name.startswith(owner) and (found := each.asked & which)
    }
    assert asking == {}


def test_the_kinds_are_known(modules: dict[str, Seen]) -> None:
    storages, engines = kinds(modules, *STORAGES), kinds(modules, *ENGINES)
    assert {"LocalStorage", "RawFolder", "RemoteStorage", "Store"} <= storages
    assert {"LocalEngine", "ExecutorEngine", "DaskEngine"} <= engines


@pytest.mark.parametrize(
    "question",
    [
        "isinstance(storage, LocalStorage)",
        "isinstance(storage, (str, local.LocalStorage))",
        "isinstance(storage, str | LocalStorage)",
        "issubclass(kind, LocalStorage)",
        "type(storage) is LocalStorage",
        "storage.__class__ in (LocalStorage, RemoteStorage)",
        "match storage:\n    case LocalStorage():\n        pass",
    ],
)
def test_a_question_is_found(question: str) -> None:
    assert "LocalStorage" in seen(question).asked
    assert "LocalStorage" not in seen("LocalStorage(folder).stat(path) is None").asked
