"""Folders that several sources can read: exact names beat layouts, and layouts beat suffixes."""

from __future__ import annotations

from pathlib import Path

import pytest
from image_support import png

import tfrecreg
from tfrecreg.errors import UsageError
from tfrecreg.operations.builds.detection import candidates_for, detect_source
from tfrecreg.operations.demo.digits import write_digits
from tfrecreg.operations.init import init
from tfrecreg.plugins.discovery import Announced
from tfrecreg.plugins.manager import Plugins, plugins
from tfrecreg.plugins.records import SourceRecord
from tfrecreg.sources.interface import Source
from tfrecreg.storage.local import LocalStorage
from tfrecreg.storage.raw import RawFolder

OTHERS = {
    "boxes_in_xml": ["Annotations/*.xml", "annotations/*.xml"],
    "boxes_in_text": ["data.yaml", "labels/*.txt", "labels/*/*.txt"],
    "columns": ["*.csv", "*.parquet"],
    "hub": ["*.parquet", "data/*.parquet"],
    "sounds": ["*.[wW][aA][vV]", "*/*.[wW][aA][vV]"],
    "tars": ["*.tar", "[tT]rain*/*.tar"],
}
"""Sources that have globs only."""


def never() -> type[Source]:
    raise AssertionError("a source is not loaded to be considered")


@pytest.fixture(scope="module")
def known() -> Plugins:
    bundled = [each for each in plugins().every(SourceRecord) if each.plugin_id.is_ours]
    taken = {"coco", "imagefolder", "mnist"}
    others = [
        Announced(SourceRecord(name, "x", never, recognizes=globs), name, "other", "1.0", "x")
        for name, globs in OTHERS.items()
    ]
    return Plugins([*(each for each in bundled if each.name in taken), *others])


def write(folder: Path, names: str) -> RawFolder:
    for name in names.split():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(3, 3) if name.endswith((".png", ".jpg")) else b"{}")
    return RawFolder(folder)


@pytest.mark.parametrize(
    ("names", "best"),
    [
        ("images/train/1.jpg labels/train/1.txt data.yaml", "boxes_in_text"),
        ("images/1.jpg labels/1.txt", "boxes_in_text"),
        ("JPEGImages/1.jpg Annotations/1.xml ImageSets/Main/train.txt", "boxes_in_xml"),
        ("JPEGImages/1.jpg SegmentationClass/1.png Annotations/1.xml", "boxes_in_xml"),
        ("cat/1.jpg dog/1.jpg labels.csv", "imagefolder"),
        ("train/cat/1.jpg train/dog/1.jpg test/cat/1.jpg test.csv", "imagefolder"),
        ("1.jpg 2.jpg labels.csv", "columns"),
        ("train/1.jpg train/2.jpg test/3.jpg train.csv", "columns"),
        ("images/1.jpg labels.csv", "columns"),
        ("data/train-00000-of-00001.parquet README.md", "hub"),
        ("annotations/instances_train.json train/1.jpg labels.csv", "coco"),
        ("cat/1.wav dog/1.wav", "sounds"),
        ("train/0.tar test/0.tar", "tars"),
        ("train-images-idx3-ubyte train-labels-idx1-ubyte labels.csv cat/1.png dog/1.png", "mnist"),
    ],
)
def test_the_strongest_is_chosen(known: Plugins, tmp_path: Path, names: str, best: str) -> None:
    found = detect_source(write(tmp_path, names), "raw", known, "x")
    assert found.source == best


@pytest.mark.parametrize(
    ("names", "both"),
    [
        ("train.parquet README.md", ["columns", "hub"]),
        ("annotations/instances_val.json labels/1.txt images/1.jpg", ["boxes_in_text", "coco"]),
        ("1.tar labels.csv", ["columns", "tars"]),
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
    assert candidates_for(write(tmp_path, names), known) == ([], [])


def test_a_program_need_not_name_the_source(tmp_path: Path) -> None:
    init(tmp_path / "registry", with_dvc=False)
    write_digits(LocalStorage(tmp_path / "raw"), train=6, test=4, seed=1)
    dataset = tfrecreg.open(tmp_path / "registry")["digits"]
    built = dataset.build(raw=tmp_path / "raw", progress=False)
    assert built.result.manifest.source.name == "mnist"
    assert built.result.settings.to_json()["detected"]["source"] == "mnist"
