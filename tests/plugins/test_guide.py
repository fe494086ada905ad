"""`docs/plugin-examples.md`, followed: files put in place, commands typed, outputs compared."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from guide_support import Block, blocks, follow
from package_support import (
    PYTHONS,
    find_python,
    fresh_environment,
    make_wheel,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Site = Any  # of conftest.py, which test modules cannot import

TOOLS = {"NO_COLOR": "1", "COLUMNS": "100", "TFRECREG_JOBS": "1"}


@pytest.fixture
def env(tmp_path: Path, site: Site) -> dict[str, str]:
    """This environment, where the modules of the guide's plugins are found."""
    names = ("lines", "texts", "table", "base64", "crew", "upcoming", "depths")
    plugins = (tmp_path / f"guide/{name}-plugin" for name in names)
    folders = [site.folder, *plugins]
    return {
        **os.environ,
        **TOOLS,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(str, [*folders, *sys.path])),
    }


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "guide").mkdir()
    return tmp_path / "guide"


@pytest.mark.medium
def test_the_guide_works_as_it_stands(place: Path, site: Site, env: dict[str, str]) -> None:
    """With its distributions as if they were installed."""

    def announce(block: Block) -> None:
        if block.title.endswith("/pyproject.toml"):
            project = tomllib.loads(block.text)["project"]
            entry_points = project["entry-points"]["tfrecreg"]
            site.distribution(project["name"], entry_points, version=project["version"])

    follow(place, env, put=announce, skip="pip ")


@pytest.mark.slow
def test_the_guide_works_word_for_word_where_there_is_only_the_wheel(tmp_path: Path) -> None:
    """It builds and installs its distributions by `pip`, in an environment of its own."""
    python = next(filter(None, map(find_python, PYTHONS)))
    made = fresh_environment(tmp_path / "env", python, str(make_wheel(tmp_path)), "pip")
    (tmp_path / "guide").mkdir()
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    env = {
        **made.env,
        **pip,
        **TOOLS,
        "HOME": os.environ.get("HOME", ""),
        "PATH": f"{Path(made.python).parent}{os.pathsep}{os.environ['PATH']}",
    }
    follow(tmp_path / "guide", env)


def test_plugins_of_the_guide_import_nothing_but_the_api() -> None:
    modules = [block for block in blocks() if re.search(r"-plugin/\w+\.py$", block.title)]
    assert len(modules) == 14
    for block in modules:
        imported = set(re.findall(r"^\s*(?:from|import) (tfrecreg\S*)", block.text, re.MULTILINE))
        assert imported == {"tfrecreg.api"}
