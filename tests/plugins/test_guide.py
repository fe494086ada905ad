"""`docs/plugins.md`: its files are put in place, its scripts run, their outputs compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Site = Any  # of conftest.py, which test modules cannot import

GUIDE = Path(__file__).parents[2] / "docs" / "plugins.md"
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'^(?P<language>\w+) title="(?P<title>[^"]+)"$')


class Block(NamedTuple):
    language: str
    title: str
    text: str


def blocks() -> list[Block]:
    found = []
    for fence in FENCE.finditer(GUIDE.read_text("utf-8")):
        info = TITLE.match(fence["info"])
        assert info, f"a block that no test would run: {fence['info']!r}"
        found.append(Block(info["language"], info["title"], fence["text"]))
    return found


@pytest.fixture
def place(tmp_path: Path, site: Site) -> Path:
    """The guide's files, and its distributions as if they were installed."""
    for block in blocks():
        if not block.title.startswith("output of "):
            file = tmp_path / block.title
            file.parent.mkdir(exist_ok=True)
            file.write_text(block.text, "utf-8")
        if block.title.endswith("/pyproject.toml"):
            project = tomllib.loads(block.text)["project"]
            entry_points = project["entry-points"]["tfrecreg"]
            site.distribution(project["name"], entry_points, version=project["version"])
    return tmp_path


def run(place: Path, site: Site, script: str) -> str:
    folders = [site.folder, place / "lines-plugin", place / "texts-plugin", *sys.path]
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=place,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


OUTPUTS = [block for block in blocks() if block.title.startswith("output of ")]


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.title)
def test_a_script_of_the_guide_prints_what_the_guide_says(
    place: Path, site: Site, output: Block
) -> None:
    assert run(place, site, output.title.removeprefix("output of ")) == output.text


def test_every_script_of_the_guide_has_its_output_beside_it() -> None:
    titles = {block.title for block in blocks()}
    scripts = {title for title in titles if title.startswith("try_")}
    assert {f"output of {script}" for script in scripts} == {one.title for one in OUTPUTS}
    assert len(scripts) == 2


def test_plugins_of_the_guide_import_nothing_but_the_api() -> None:
    modules = [block for block in blocks() if re.search(r"-plugin/\w+\.py$", block.title)]
    assert len(modules) == 4
    for block in modules:
        imported = set(re.findall(r"^\s*(?:from|import) (tfrecreg\S*)", block.text, re.MULTILINE))
        assert imported == {"tfrecreg.api"}


def test_the_schema_of_the_guide_is_one(place: Path, site: Site) -> None:
    script = (
        "from tfrecreg.plugins import plugins; from tfrecreg.schema.proto import parse_schema;"
        "Lines = plugins().load_source('lines');"
        "print(parse_schema(Lines(None, Lines.Options()).schema()) is not None)"
    )
    (place / "schema.py").write_text(script)
    assert run(place, site, "schema.py") == "True\n"


def test_a_dataset_of_the_guide_is_released(place: Path, site: Site) -> None:
    script = (
        "from tfrecreg.cli.main import main\n"
        "commands = ('init . --no-dvc', 'build talk --source lines --raw told --jobs 1',\n"
        "            'release talk --version 1.0.0')\n"
        "print([main(command.split()) for command in commands][-2:])\n"
    )
    (place / "release.py").write_text(script)
    (place / "told").mkdir()
    said = "positive\tbetter than the book\nnegative\tnever once more\npositive\ta joy from start\n"
    (place / "told/train.tsv").write_text(said)
    assert run(place, site, "release.py").endswith("[0, 0]\n")
