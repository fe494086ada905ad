"""Raw data or a folder at another level, where TFRecords or raw data are meant: the hint names what
fits.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hostile_plugin_support import InProcess, plant_source
from hostile_plugin_support import here as here  # the fixtures
from hostile_plugin_support import place as place
from image_support import png


@pytest.fixture
def root(tmp_path: Path, drawn: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with raw data of three sources."""
    folder = tmp_path / "root"
    shutil.copytree(drawn, folder / "digits/raw")
    for name in ("train/cat", "train/dog", "test/cat"):
        (folder / "pets" / name).mkdir(parents=True)
        (folder / "pets" / name / "1.PNG").write_bytes(png(3, 3))
    (folder / "boxes/annotations").mkdir(parents=True)
    (folder / "boxes/annotations/instances_val.json").write_text("{}")
    (folder / "boxes/val").mkdir()
    (folder / "boxes/val/1.jpg").write_bytes(b"")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("named", "source", "folder"),
    [
        ("digits/raw", "mnist", "digits/raw"),
        ("digits", "mnist", "digits/raw"),
        ("pets", "imagefolder", "pets"),
        ("pets/train", "imagefolder", "pets"),
        ("pets/train/cat", "imagefolder", "pets"),
        ("boxes", "coco", "boxes"),
        ("boxes/annotations", "coco", "boxes"),
    ],
)
@pytest.mark.parametrize("command", ["check", "head", "digest"])
def test_a_folder_of_raw_data(
    cli, root: Path, command: str, named: str, source: str, folder: str
) -> None:
    done = cli(command, named)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        f"error: there is no TFRecord file below the folder `{named}`",
        f"hint: these are raw data of the source `{source}`: tfrecreg build NAME --source {source} "
        f"--raw {folder}",
    ]


def test_a_file_of_raw_data(cli, root: Path) -> None:
    (name,) = (each.name for each in Path("digits/raw").glob("train-images*"))
    done = cli("head", f"digits/raw/{name}", "--json")
    assert done.code == 2
    assert done.json["error"]["hint"] == (
        "these are raw data of the source `mnist`: tfrecreg build NAME --source mnist --raw "
        "digits/raw"
    )
    assert "is not a TFRecord" in done.err


def test_the_path_is_quoted_for_a_shell(cli, root: Path) -> None:
    Path("digits").rename("my digits")
    done = cli("check", root / "my digits")
    assert f"--raw '{root}/my digits/raw'" in done.err


def test_a_folder_of_nothing_known(cli, root: Path) -> None:
    Path("empty").mkdir()
    done = cli("check", "empty")
    assert done.code == 2
    assert done.err.splitlines()[1].startswith("hint: quote globs")


@pytest.mark.parametrize(
    ("recognizes", "hint"),
    [
        ("['*.evil']", "tfrecreg build NAME --source evil --raw raw"),
        ("['/x']", "is left out"),
        ("'*.evil'", "is left out"),
        ("[5]", "is left out"),
    ],
)
def test_the_source_of_a_plugin(
    here: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recognizes: str, hint: str
) -> None:
    plant_source(here.site, "pass")
    text = (here.site / "hostile_plugin.py").read_text()
    (here.site / "hostile_plugin.py").write_text(
        text.replace('"does harm", load)', f'"does harm", load, recognizes={recognizes})')
    )
    (tmp_path / "mine/raw").mkdir(parents=True)
    (tmp_path / "mine/raw/a.evil").touch()
    monkeypatch.chdir(tmp_path / "mine")
    done = here.run("check", "raw")
    assert done.code == 2
    assert hint in done.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("source", "named", "hint"),
    [
        ("mnist", "digits", "`{root}/digits/raw` has files for it: name that with `--raw`"),
        ("coco", ".", "`{root}/boxes` has files for it: name that with `--raw`"),
        (
            "imagefolder",
            "pets/train/cat",
            "`{root}/pets` has files for it: name that with `--raw`; or a file that labels the "
            "images can take the place of folders: `--option label_file=NAME`; or a pattern that "
            "finds the class in a file's name: `--option 'class_pattern=^(n[0-9]+)_'`",
        ),
    ],
)
def test_raw_data_of_a_build_one_level_away(
    cli, root: Path, registry: Path, source: str, named: str, hint: str
) -> None:
    done = cli("build", "x", "--source", source, "--raw", root / named)
    assert done.code == 2
    assert done.err.splitlines()[-1] == f"hint: {hint.format(root=root)}"


@pytest.mark.medium
def test_the_folder_of_a_dataset_one_level_away(cli, raw: Path, registry: Path) -> None:
    done = cli("build", "digits", "--source", "mnist", "--raw", raw, "--release", "1.0.0")
    assert done.code == 0, done.err
    done = cli("check", "data/digits/index")
    assert (done.code, done.err.splitlines()[1]) == (
        2,
        f"hint: `{registry}/data/digits` is the folder of a build or a release",
    )
    for above in ("registry", "registry/digits"):
        assert cli("check", above).err.splitlines()[1] == (
            "hint: `registry/digits/1.0.0` is the folder of a build or a release"
        )
    assert cli("check", "registry/digits/1.0.0").code == 0
