"""`tests/README.md` is the map of the tests: it has every support module and every folder."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "tfrecreg"
FIRST_CELLS = "\n".join(
    re.findall(r"^\| (.*?) \|", (TESTS / "README.md").read_text("utf-8"), re.MULTILINE)
)


def test_the_map_has_every_support_module() -> None:
    there = sorted(path.stem for path in TESTS.glob("*_support.py"))
    assert sorted(re.findall(r"`(\w+_support)`", FIRST_CELLS)) == there


def test_a_folder_has_the_name_of_a_package_or_is_in_the_map() -> None:
    listed = set(re.findall(r"`(\w+)/`", FIRST_CELLS))
    folders = {path.parent.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert listed <= folders
    assert folders <= packages | listed
