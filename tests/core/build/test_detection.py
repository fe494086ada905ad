"""Folders that several sources can read: exact names beat layouts, and layouts beat suffixes."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from image_support import png

import tfrecreg
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.detection import candidates_for, detect_source, glob_strength
from tfrecreg.core.build.sources.interface import Source
from tfrecreg.core.plugins.manager import Announced, Plugins, plugins
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.registry.init import init
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError

ANNOTATION = b"<annotation><size/></annotation>"
CONTENTS = {
    ".png": png(3, 3),
    ".jpg": png(3, 3),
    ".txt": b"0 0.5 0.5 0.2 0.2\n",
    ".yaml": b"names: [cat]\n",
    ".xml": ANNOTATION,
}


@pytest.fixture(scope="module")
def known() -> Plugins:
    bundled = [each for each in plugins().every(SourceRecord) if each.plugin_id.is_ours]
    return Plugins(bundled)


def write(folder: Path, names: str) -> LocalStorage:
    for name in names.split():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENTS.get(path.suffix, b"{}"))
        if path.suffix == ".tar":
            with tarfile.open(path, "w") as archive:
                archive.addfile(tarfile.TarInfo("1.jpg"))
    return LocalStorage(folder)


@pytest.mark.parametrize(
    ("names", "best"),
    [
        ("images/train/1.jpg labels/train/1.txt data.yaml", "yolo"),
        ("images/1.jpg labels/1.txt", "yolo"),
        ("JPEGImages/1.jpg Annotations/1.xml ImageSets/Main/train.txt", "voc"),
        ("JPEGImages/1.jpg SegmentationClass/1.png Annotations/1.xml", "voc"),
        ("cat/1.jpg dog/1.jpg labels.csv", "imagefolder"),
        ("train/cat/1.jpg train/dog/1.jpg test/cat/1.jpg test.csv", "imagefolder"),
        ("1.jpg 2.jpg labels.csv", "table"),
        ("train/1.jpg train/2.jpg test/3.jpg train.csv", "table"),
        ("images/1.jpg labels.csv", "table"),
        ("data/train-00000-of-00001.parquet README.md", "huggingface"),
        ("annotations/instances_train.json train/1.jpg labels.csv", "coco"),
        ("cat/1.wav dog/1.wav", "folder"),
        ("train/0.tar test/0.tar", "webdataset"),
        ("train.parquet README.md", "table"),
        ("train-images-idx3-ubyte train-labels-idx1-ubyte labels.csv cat/1.png dog/1.png", "mnist"),
    ],
)
def test_the_strongest_is_chosen(known: Plugins, tmp_path: Path, names: str, best: str) -> None:
    found = detect_source(write(tmp_path, names), "raw", known, "x")
    assert found.chosen.source == best


@pytest.mark.parametrize(
    ("names", "both"),
    [
        ("annotations/instances_val.json labels/1.txt images/1.jpg", ["coco", "yolo"]),
        ("1.tar labels.csv", ["table", "webdataset"]),
    ],
)
def test_two_of_the_strongest_are_named(
    known: Plugins, tmp_path: Path, names: str, both: list[str]
) -> None:
    raw = write(tmp_path, names)
    with pytest.raises(UsageError) as caught:
        detect_source(raw, "my raw", known, "x")
    assert caught.value.exit_code == 2
    assert caught.value.message.startswith("`my raw` fits 2 sources equally: ")
    assert caught.value.hint == "; or ".join(
        f"tfrecreg build x --source {name} --raw 'my raw'" for name in both
    )


@pytest.mark.parametrize("names", ["1.jpg 2.jpg", "images/1.jpg", "notes/1.txt", ".git/1.csv"])
def test_what_no_source_reads_alone_is_not_guessed(
    known: Plugins, tmp_path: Path, names: str
) -> None:
    candidates, failed = candidates_for(write(tmp_path, names), known)
    assert {each.found.strength for each in candidates} <= {"refused"}
    assert failed == []


@pytest.mark.parametrize(
    ("glob", "strength"),
    [("odd/*.csv", "exact"), ("no/*.csv", "general"), ("[vV]al/*.csv", "general")],
)
def test_a_name_of_three_letters_that_is_no_split_is_exact(glob: str, strength: str) -> None:
    assert glob_strength(glob) == strength


def test_globs_of_more_levels_than_the_folder_has_find_nothing() -> None:
    record = SourceRecord("mine", "", lambda: Source, recognizes=["*/*/null"])
    known = Plugins([Announced(record, "mine", "mine", "1.0", "mine")])
    with pytest.raises(UsageError, match="`/dev` does not look like the raw data of any source"):
        detect_source(LocalStorage("/dev"), "/dev", known, "x")


def test_a_program_need_not_name_the_source(tmp_path: Path) -> None:
    init(tmp_path / "registry", with_dvc=False)
    write_digits(LocalStorage(tmp_path / "raw"), train=6, test=4, seed=1)
    dataset = tfrecreg.open(tmp_path / "registry")["digits"]
    built = dataset.build(raw=tmp_path / "raw", progress=False)
    assert built.result.manifest.source.name == "mnist"
    assert built.result.settings.to_json()["detected"]["source"] == "mnist"
