"""What a maintainer expects to find, and that it agrees with the project."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from package_support import CHECKOUT

from tfrecreg import __version__

yaml = pytest.importorskip("ruamel.yaml", reason="the extra `dvc` is not installed")
tomli = pytest.importorskip("tomli", reason="it comes with the development environment")

if not (CHECKOUT / ".github").exists():
    pytest.skip("the files of the repository are not shipped", allow_module_level=True)

PROJECT = tomli.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
WORKFLOWS = sorted((CHECKOUT / ".github" / "workflows").glob("*.yml"))


def load(path: Path) -> Any:
    return yaml.YAML(typ="safe", pure=True).load(path.read_text("utf-8"))


def test_the_address_of_the_repository_has_one_home() -> None:
    owner = REPOSITORY.removeprefix("https://github.com/")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.md", "*.yml", "*.toml", "*.cff"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        text = (CHECKOUT / name).read_text("utf-8")
        for found in re.findall(r"(?:github\.com/|uses: )([\w.-]+/tfrecreg)\b", text):
            assert found == owner, name
        assert "OWNER/" not in text, name
    assert all(url.startswith(REPOSITORY) for url in PROJECT["urls"].values())


def test_the_license_is_named_alike() -> None:
    citation = load(CHECKOUT / "CITATION.cff")
    assert PROJECT["license"] == citation["license"] == "Apache-2.0"
    assert "SPDX: Apache-2.0" in (CHECKOUT / "LICENSE").read_text("utf-8")
    assert citation["version"] == __version__
    assert citation["repository-code"] == REPOSITORY


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_there_is(path: Path) -> None:
    makefile = (CHECKOUT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    document = load(path)
    assert document["permissions"] == {"contents": "read"}
    for job in document["jobs"].values():
        for step in job["steps"]:
            assert set(step) & {"run", "uses"}
            for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", "")):
                assert target in targets


def test_the_quick_tests_run_on_every_python_that_is_allowed() -> None:
    pythons = load(CHECKOUT / ".github/workflows/tests.yml")["jobs"]["quick"]["strategy"]["matrix"]
    named = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if ":: 3." in each]
    assert pythons["python"] == named


def test_the_changelog_begins_with_what_is_unreleased_and_this_version() -> None:
    headings = re.findall(
        r"^## (.*)$", (CHECKOUT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(__version__)} - \d{{4}}-\d\d-\d\d", headings[1])
