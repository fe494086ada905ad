"""The path of a module says what it may import: `cli > library > builtin > core`."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from package_support import CHECKOUT, imports_of, source_modules

MOST_NAMES = 13
"""At the top of the package."""
MOST_PAIRS = 8
"""Of rooms, of which the first imports the second."""
RANKS = {"core": 0, "api": 1, "builtin": 2, "library": 3, "torch": 3, "cli": 4, "testing": 5}


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter over the project at `root`, by the contracts of its `pyproject.toml`."""
    code = "import sys; from importlinter.cli import lint_imports as f; sys.exit(f(no_cache=True))"
    path = f"{root}{os.pathsep}{root / 'plugins'}"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.medium
def test_imports_keep_the_contracts() -> None:
    done = lint(CHECKOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 broken" in done.stdout


@pytest.mark.medium
@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        (
            "tfrecreg/core/values/text.py",
            "import tfrecreg.builtin.look.head",
            "Imports point down",
        ),
        ("tfrecreg/builtin/look/head.py", "import tfrecreg.cli.app", "Imports point down"),
        (
            "tfrecreg/builtin/reports/for_tools.py",
            "import tfrecreg.builtin.look.head",
            "Rooms are independent",
        ),
    ],
)
def test_an_import_that_points_up_is_found(
    module: str, line: str, contract: str, tmp_path: Path
) -> None:
    for folder in ("tfrecreg", "plugins"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(CHECKOUT / folder, tmp_path / folder, ignore=ignore)
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    file = tmp_path / module
    text = file.read_text("utf-8")
    start = "from __future__ import annotations\n"
    assert start in text
    file.write_text(text.replace(start, f"{start}{line}\n", 1), "utf-8")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    broken = [row for row in done.stdout.splitlines() if " BROKEN" in row]
    assert [row for row in broken if row.startswith(contract)], done.stdout


def test_the_package_has_few_names_at_its_top() -> None:
    ignored = {"__pycache__"}
    names = {path.name for path in (CHECKOUT / "tfrecreg").iterdir()} - ignored
    assert len(names) <= MOST_NAMES, sorted(names)


def test_no_import_points_up_and_few_rooms_know_another(pyproject: Mapping[str, Any]) -> None:
    """Read by `ast`, imports in functions and for the type checker among them."""
    up: list[str] = []
    rooms: Counter[tuple[str, str]] = Counter()
    for name, path in source_modules().items():
        _, *mine = name.split(".")
        if not name.startswith("tfrecreg.") or mine[0] not in RANKS:
            continue
        for each in imports_of(path):
            _, *theirs = each.split(".")
            if not each.startswith("tfrecreg.") or theirs[0] not in RANKS:
                continue
            if RANKS[mine[0]] < RANKS[theirs[0]]:
                up.append(f"{name} -> {each}")
            if (mine[0], theirs[0]) == ("builtin", "builtin") and mine[1:2] != theirs[1:2]:
                rooms[mine[1], theirs[1]] += 1
    assert up == []
    contracts = {each["name"]: each for each in pyproject["tool"]["importlinter"]["contracts"]}
    named = set()
    for line in contracts["Rooms are independent"]["ignore_imports"]:
        pair = re.fullmatch(
            r"tfrecreg\.builtin\.(\w+)\.\*\* -> tfrecreg\.builtin\.(\w+)\.\*\*", line
        )
        assert pair, line
        named.add((pair[1], pair[2]))
    assert set(rooms) == named
    assert len(named) <= MOST_PAIRS


def importers(package: str) -> set[str]:
    """The modules that import a package of others."""
    return {
        name
        for name, path in source_modules().items()
        if any(f"{each}.".startswith(f"{package}.") for each in imports_of(path))
    }


def test_bundled_sources_import_nothing_of_the_project_but_its_api(
    plugin_packages: list[str],
) -> None:
    strange = {}
    for package in plugin_packages:
        assert importers(package) == {
            name for name in source_modules() if f"{name}.".startswith(f"{package}.")
        } & importers(package), f"something else imports {package}"
        for name, path in source_modules().items():
            if not f"{name}.".startswith(f"{package}."):
                continue
            found = {each for each in imports_of(path) if each.startswith("tfrecreg")}
            found = {
                each
                for each in found
                if not f"{each}.".startswith((f"{package}.", "tfrecreg.api."))
            }
            if found:
                strange[name] = found
    assert strange == {}


def test_tensorflow_is_imported_where_it_is_used_and_never_on_the_way() -> None:
    """Inside functions, or for the type checker only."""
    early = []
    for name in importers("tensorflow"):
        tree = ast.parse(source_modules()[name].read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom) and "tensorflow" in ast.unparse(node):
                early.append(name)
    assert early == []


def test_the_picture_of_the_architecture_has_the_folders_and_no_others() -> None:
    page = (CHECKOUT / "ARCHITECTURE.md").read_text("utf-8")
    package = CHECKOUT / "tfrecreg"
    named = set(re.findall(r"`((?:core|builtin|cli|library|testing)/[\w/.]*)`", page))
    assert {name for name in named if not (package / name).exists()} == set()
    core = {path.name for path in (package / "core").iterdir() if (path / "__init__.py").exists()}
    assert {name for name in core if f"`core/{name}/`" not in page} == set()
    assert len(core) <= 12
    picture = page.partition("```text\n")[2].partition("```")[0]
    assert {name for name in core if not re.search(rf"\b{name}\b", picture)} <= {
        "plugins",
        "terminal",
    }
