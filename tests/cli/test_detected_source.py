"""`build NAME --raw DIR` without `--source`: the source that fits and why, or the two that do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hostile_plugin_support import SOURCE, InProcess, plant
from hostile_plugin_support import here as here  # the fixture
from image_support import png

DOCUMENT = {"images": [{"id": 1, "file_name": "1.png"}], "annotations": [], "categories": []}


def write_images(folder: Path, *paths: str) -> None:
    for number, path in enumerate(paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(png(3 + number, 3))


def notes(text: str) -> list[str]:
    """The lines of the choice."""
    lines = text.splitlines()
    block = [each for each in lines if each.startswith(("source `", "  "))]
    return [each for each in block if not each.startswith("  INF")]


def test_the_digits_are_those_of_mnist(cli, raw: Path, registry: Path) -> None:
    (raw / "README.txt").write_text("digits")
    done = cli("build", "digits", "--raw", raw, "--json")
    assert done.code == 0, done.err
    assert notes(done.err) == [
        f"source `mnist`: `{raw}` has 4 IDX files, such as `t10k-images-idx3-ubyte.gz`",
        "  not read: `README.txt`",
    ]
    assert done.json["settings"]["detected"] == {
        "source": "mnist",
        "strength": "exact",
        "reason": "4 IDX files, such as `t10k-images-idx3-ubyte.gz`",
        "aside": ["README.txt"],
        "others": [],
        "above": "",
        "failed": [],
    }
    assert 'source = "mnist"' in Path("datasets/digits.toml").read_text()
    again = cli("build", "digits", "--json")
    assert again.json["unchanged"]
    assert "detected" not in again.json["settings"]
    assert notes(again.err) == []


def test_a_source_that_is_found_or_named_makes_the_same_build(
    cli, raw: Path, registry: Path
) -> None:
    assert cli("build", "digits", "--raw", raw).code == 0
    found = Path("data/digits/manifest.json").read_bytes()
    shutil.rmtree("data/digits")
    Path("datasets/digits.toml").unlink()
    assert cli("build", "digits", "--raw", raw, "--source", "mnist").code == 0
    assert Path("data/digits/manifest.json").read_bytes() == found


@pytest.mark.parametrize(
    "path",
    [
        "annotations/instances_val.json",
        "images/_annotations.coco.json",
        "annotations.json",
        "labels.json",
    ],
)
def test_annotations_beat_the_layout_of_images(
    cli, tmp_path: Path, registry: Path, path: str
) -> None:
    write_images(tmp_path / "boxes", "images/1.png", "cats/1.png", "dogs/1.png")
    (tmp_path / "boxes" / path).parent.mkdir(exist_ok=True)
    (tmp_path / "boxes" / path).write_text(json.dumps(DOCUMENT))
    done = cli("build", "boxes", "--raw", tmp_path / "boxes", "--dry-run")
    assert done.code == 0, done.err
    assert notes(done.err) == [
        f"source `coco`: `{tmp_path}/boxes` has annotations in COCO's JSON: `{path}`",
        "  not used: the source `imagefolder`, a weaker match that finds folders of classes "
        "(`cats`, `dogs` and `images`)",
    ]


def test_a_folder_behind_a_url(cli, memory: Any, raw: Path, registry: Path) -> None:
    memory.put(str(raw), "/lake/all/digits", recursive=True)
    done = cli("build", "digits", "--raw", "memory://lake/all/digits", "--dry-run", "--json")
    assert done.code == 0, done.err
    assert done.json["settings"]["detected"]["source"] == "mnist"
    done = cli("build", "digits", "--raw", "memory://lake/all")
    assert done.err.splitlines()[-2:] == [
        "error: `memory://lake/all` does not look like the raw data of any source",
        "hint: `memory://lake/all/digits` has files for the source `mnist`: tfrecreg build digits "
        "--source mnist --raw memory://lake/all/digits",
    ]


def test_a_folder_above_or_below_is_named(cli, tmp_path: Path, registry: Path) -> None:
    pets = tmp_path / "my data/pets"
    write_images(pets, "train/cat/1.png", "train/dog/2.png", "test/cat/3.png")
    for raw in (pets.parent, pets / "train/cat"):
        done = cli("build", "x", "--raw", raw)
        assert done.code == 2
        assert done.err.splitlines()[-1] == (
            f"hint: `{pets}` has files for the source `imagefolder`: tfrecreg build x --source "
            f"imagefolder --raw '{pets}'"
        )
    for above in (str(pets), ""):
        done = cli("build", "x", "--raw", pets / "train", "--dry-run", "--json")
        assert done.json["settings"]["detected"]["above"] == above
        (pets / "README.txt").touch()


def announce(here: InProcess, arguments: str, body: str = "") -> None:
    """The source `evil`, announced with more arguments; `body` goes before the announcement."""
    plant(here.site, SOURCE, "pass")
    module = here.site / "hostile_plugin.py"
    text = module.read_text().replace("hookimpl,", "hookimpl, Recognition,", 1)
    text = text.replace('"does harm", load)', f'"does harm", load, {arguments})')
    module.write_text(text + body)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("recognizes=['*images?idx?-ubyte*']", "files such as `t10k-images-idx3-ubyte.gz`"),
        ("examine=lambda look: Recognition('exact', 'digits')", "digits"),
    ],
)
def test_two_that_fit_equally_are_both_named(
    here: InProcess, drawn: Path, tmp_path: Path, arguments: str, reason: str
) -> None:
    announce(here, arguments)
    done = here.run("-C", tmp_path / "r", "build", "x", "--raw", str(drawn))
    assert done.code == 2
    command, last = "tfrecreg build x --source", f"--raw {drawn}"
    assert done.err.splitlines() == [
        f"error: `{drawn}` fits 2 sources equally: `evil` (it has {reason}) and `mnist` (it has "
        "4 IDX files, such as `t10k-images-idx3-ubyte.gz`)",
        f"hint: {command} evil {last}; or {command} mnist {last}",
    ]


@pytest.mark.parametrize(
    ("examine", "told"),
    [
        ("lambda look: 1 / 0", "ZeroDivisionError: division by zero (hostile_plugin.py, line "),
        (
            "lambda look: 'mine'",
            "TypeError: expected a Recognition or None, found an object of type `str`",
        ),
    ],
)
def test_a_source_that_fails_to_look_is_reported_and_passed_over(
    here: InProcess, drawn: Path, tmp_path: Path, examine: str, told: str
) -> None:
    announce(here, f"examine={examine}")
    done = here.run("-C", tmp_path / "r", "build", "x", "--raw", str(drawn), "--dry-run")
    assert done.code == 0, done.err
    (line,) = (each for each in done.err.splitlines() if "failed in `examine`" in each)
    assert line.startswith("the source `evil` of `hostile` 6.6 failed in `examine`: ")
    assert told in line
    assert line.endswith("so the source was not considered")
