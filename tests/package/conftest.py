"""The checkout, its archives, and interpreters to run, for tests of the whole package."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from package_support import CHECKOUT, Archives, Interpreter, build, plain_environment

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@pytest.fixture(scope="session")
def pyproject() -> Mapping[str, Any]:
    """`pyproject.toml` as it stands."""
    return tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def plugin_packages() -> list[str]:
    """The bundled plugins' import packages, as their folders say."""
    return sorted(path.parent.name for path in (CHECKOUT / "plugins").glob("*/__init__.py"))


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    """The sdist, and the wheel that is built from it."""
    return build(tmp_path_factory.mktemp("archives"))


@pytest.fixture(scope="session")
def unpacked(archives: Archives, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files in a folder, which is what installing a pure wheel does."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(archives.wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def here(tmp_path: Path) -> Interpreter:
    """This interpreter, with what is installed in it."""
    return Interpreter(sys.executable, plain_environment(tmp_path))
