"""Bundled plugins announce their sources without loading them, and know `tfrecreg.api` alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from package_support import CHECKOUT

from tfrecreg.core.plugins.bundled import SOURCES

PLUGINS = CHECKOUT / "plugins"
MODULES = sorted(PLUGINS.glob("tfrecreg_*/*.py"))
HEAVY = ("PIL", "tensorflow", "pycocotools", "pyarrow", "yaml")
"""Modules that no source imports before it needs them."""


def run(code: str) -> int:
    """Run code in a process of its own; its exit code."""
    code = f"import sys; sys.path[:0] = {[str(PLUGINS), str(CHECKOUT)]!r}; {code}"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode


def test_these_are_all_of_them() -> None:
    assert {path.parent.name for path in MODULES} == {f"tfrecreg_{name}" for name in SOURCES}


@pytest.mark.parametrize("name", SOURCES)
def test_announcing_loads_no_source(name: str) -> None:
    announce = f"import tfrecreg_{name}; list(tfrecreg_{name}.tfrecreg_sources());"
    wanted = f"{('tfrecreg_' + name + '.source',)!r} + {HEAVY!r}"
    assert run(f"{announce} sys.exit(any(n in sys.modules for n in {wanted}))") == 0


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_imports_what_is_heavy_only_where_it_is_wanted(name: str) -> None:
    load = f"import tfrecreg_{name}.source;"
    assert run(f"{load} sys.exit(any(n in sys.modules for n in {HEAVY!r}))") == 0


@pytest.mark.parametrize("module", MODULES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_it_imports_nothing_of_the_project_but_its_api(module: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    assert {name for name in imported if name.split(".")[0] == "tfrecreg"} <= {"tfrecreg.api"}
