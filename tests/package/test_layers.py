"""The path of a module says what it may import: `cli > library > builtin > core`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from package_support import CHECKOUT, imports_of, source_modules

MOST_NAMES = 13
"""At the top of the package."""


@pytest.mark.medium
def test_imports_keep_the_contracts() -> None:
    """The contracts of import-linter in `pyproject.toml`."""
    code = "import sys; from importlinter.cli import lint_imports as f; sys.exit(f(no_cache=True))"
    path = f"{CHECKOUT}{os.pathsep}{CHECKOUT / 'plugins'}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 broken" in done.stdout


def test_the_package_has_few_names_at_its_top() -> None:
    names = {path.name for path in (CHECKOUT / "tfrecreg").iterdir()} - {"__pycache__"}
    assert len(names) <= MOST_NAMES, sorted(names)


def test_bundled_sources_import_nothing_of_the_project_but_its_api(
    plugin_packages: list[str],
) -> None:
    strange = {}
    for name, path in source_modules().items():
        package = name.partition(".")[0]
        # Only a source itself may import its package.
        forbidden = tuple(f"{each}." for each in plugin_packages if each != package)
        if package in plugin_packages:
            forbidden = (*forbidden, "tfrecreg.")
        found = {each for each in imports_of(path) if f"{each}.".startswith(forbidden)}
        found = {each for each in found if not f"{each}.".startswith("tfrecreg.api.")}
        if found:
            strange[name] = found
    assert strange == {}
