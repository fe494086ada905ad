"""A public name has one meaning: no two modules define it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAME = {
    "Build": "handles: those that read, and those of the library with verbs",
    "Dataset": "handles: those that read, and those of the library with verbs",
    "Registry": "handles: those that read, and those of the library with verbs",
    "Release": "handles: those that read, and those of the library with verbs",
    "init": "handles: those that read, and those of the library with verbs",
    "check": "operations, and the functions of the library with keywords for options",
    "digest": "operations, and the functions of the library with keywords for options",
    "export": "operations, and the functions of the library with keywords for options",
    "diff": "operations, and the functions of the library with keywords for options",
    "head": "operations, and the functions of the library with keywords for options",
    "salvage": "operations, and the functions of the library with keywords for options",
    "stats": "operations, and the functions of the library with keywords for options",
    "report": "operations, and the functions of the library with keywords for options",
    "command": "what every module of a command calls it",
    "ends": "whether an image is complete, in the module of each format",
    "header": "the header of an image, in the module of each format",
    "tfrecreg_exporters": "a hook, and those who implement it",
    "tfrecreg_decoders": "a hook, and those who implement it",
    "tfrecreg_engines": "a hook, and those who implement it",
    "tfrecreg_report_formats": "a hook, and those who implement it",
    "tfrecreg_commands": "a hook, and those who implement it",
    "tfrecreg_sources": "a hook, and those who implement it",
    "tfrecreg_validators": "a hook, and those who implement it",
    "write_digits": "the digits of the demo, into a storage and into a folder",
    "format_names": "names in a message, in two distributions",
}
"""Names that mean the same wherever they are defined."""


def defined(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (each.id for each in node.targets if isinstance(each, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def shared(paths: list[Path]) -> dict[str, set[Path]]:
    homes: defaultdict[str, set[Path]] = defaultdict(set)
    for path in paths:
        for name in defined(path):
            if not name.startswith("_") and len(name) > 1:  # a letter is a type variable
                homes[name].add(path.relative_to(ROOT))
    return {name: found for name, found in homes.items() if len(found) > 1}


def modules() -> list[Path]:
    return [path for top in ("tfrecreg", "plugins") for path in (ROOT / top).rglob("*.py")]


@pytest.mark.medium
def test_no_public_name_has_two_homes() -> None:
    assert {name: found for name, found in shared(modules()).items() if name not in SAME} == {}


@pytest.mark.medium
def test_a_second_home_is_noticed() -> None:
    assert shared(modules()).keys() == SAME.keys()
    assert "Registry" in set(defined(ROOT / "tfrecreg/registry/registry.py"))
