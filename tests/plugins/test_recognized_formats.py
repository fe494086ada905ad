"""Recognition of folders by the bundled sources: strength, reason and names left aside."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from image_support import png

from tfrecreg.core.build.detection import Candidate, candidates_for
from tfrecreg.core.plugins.manager import Plugins, plugins
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.storage.local import LocalStorage

ROW = b"0 0.5 0.5 0.2 1e-3\n"
XML = b"<?xml version='1.0'?>\n<annotation><filename>1.jpg</filename></annotation>"
README = b"---\nlicense: mit\ndataset_info:\n  features: []\n---\ntext"


def image() -> bytes:
    return png(3, 3)


def tar(*names: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    return file.getvalue()


def parquet(metadata: Mapping[str, str] | None = None) -> bytes:
    file = io.BytesIO()
    table = pa.table({"x": [1]})
    pq.write_table(table.replace_schema_metadata(metadata), file)
    return file.getvalue()


OF_HUB = {"huggingface": '{"info": {"features": {}}}'}


@pytest.fixture(scope="module")
def known() -> Plugins:
    return Plugins([each for each in plugins().every(SourceRecord) if each.plugin_id.is_ours])


def found(folder: Path, known: Plugins, files: Mapping[str, bytes]) -> list[Candidate]:
    """The sources that recognize a folder of some files, the strongest first."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    candidates, failed = candidates_for(LocalStorage(folder), known)
    assert failed == []
    return candidates


@pytest.mark.parametrize(
    ("files", "source", "strength", "aside"),
    [
        pytest.param(
            {
                "data.yaml": b"train: images/train\nnames: [cat]\n",
                "images/train/1.jpg": image(),
                "images/train/2.jpg": image(),
                "labels/train/1.txt": ROW,
                "labels.cache": b"x",
            },
            *("yolo", "exact", ["labels.cache"]),
            id="yolo",
        ),
        pytest.param(
            {
                "classes.txt": b"cat\n",
                "train/images/1.jpg": image(),
                "train/images/2.jpg": image(),
                "train/labels/1.txt": b"",
                "train/labels/2.txt": ROW,
                "notes/README.txt": b"hello",
            },
            *("yolo", "exact", ["notes"]),
            id="yolo-without-description",
        ),
        pytest.param(
            {
                "VOC2007/Annotations/1.xml": XML,
                "VOC2007/JPEGImages/1.jpg": image(),
                "VOC2007/ImageSets/Main/train.txt": b"1\n",
                "VOC2007/SegmentationClass/1.png": image(),
                "readme.html": b"x",
            },
            *("voc", "exact", ["readme.html"]),
            id="voc",
        ),
        pytest.param(
            {"train/1.xml": XML, "train/1.jpg": image(), "x.md": b""},
            *("voc", "exact", ["x.md"]),
            id="voc-beside-images",
        ),
        pytest.param(
            {
                "train.csv": b"id,label\n1,2\n",
                "test.csv": b"id\n1\n",
                "sample_submission.csv": b"id\n",
                "notes.md": b"x",
                "images/1.jpg": image(),
            },
            *("table", "general", ["notes.md", "sample_submission.csv"]),
            id="table",
        ),
        pytest.param(
            {
                "train/metadata.jsonl": b'{"file_name": "1.jpg", "text": "a cat"}\n',
                "train/1.jpg": image(),
                "test/metadata.csv": b"text,file_name\na cat,1.jpg\n",
                "test/1.jpg": image(),
                "notes.md": b"",
            },
            *("table", "exact", ["notes.md"]),
            id="metadata-of-hugging-face",
        ),
        pytest.param(
            {"a.csv": b"x\n1\n", "b.csv": b"x\n1\n"},
            *("table", "general", []),
            id="tables-without-splits",
        ),
        pytest.param(
            {"x.parquet": parquet(), "README.md": b"# Mine\n"},
            *("table", "layout", ["README.md"]),
            id="parquet-without-features",
        ),
        pytest.param(
            {"a/1.wav": b"", "b/2.MP3": b"", "b/3.wav": b"", "notes.md": b"", "Thumbs.db": b""},
            *("folder", "general", ["Thumbs.db"]),
            id="folder",
        ),
        pytest.param(
            {
                "train/0.tar": tar("./a/1.jpg", "./a/1.cls", "a/2.JPG", "a/2.cls"),
                "test/0.tar": b"no archive",
                "labels.csv": b"x\n",
            },
            *("webdataset", "layout", ["labels.csv"]),
            id="webdataset",
        ),
        pytest.param(
            {
                "0.tar": tar("1.json"),
                "tfrecreg.json": b"{}",
                "schema.pbtxt": b"",
                "more.txt": b"",
            },
            *("webdataset", "layout", ["more.txt"]),
            id="webdataset-exported",
        ),
        pytest.param(
            {"train.parquet": parquet(), "README.md": README, "x.csv": b"x\n"},
            *("huggingface", "exact", ["x.csv"]),
            id="huggingface-by-readme",
        ),
        pytest.param(
            {"train.parquet": parquet(OF_HUB), "README.md": b"# Mine\n"},
            *("huggingface", "exact", []),
            id="huggingface-by-schema",
        ),
        pytest.param(
            {"data/train-00000-of-00001.parquet": parquet(), "more": b""},
            *("huggingface", "layout", ["more"]),
            id="huggingface-by-names",
        ),
    ],
)
def test_what_is_used_and_what_is_left_aside(
    known: Plugins,
    tmp_path: Path,
    files: Mapping[str, bytes],
    source: str,
    strength: str,
    aside: list[str],
) -> None:
    candidates = found(tmp_path, known, files)
    best = [each for each in candidates if each.found.strength == candidates[0].found.strength]
    assert [each.source for each in best] == [source]
    assert best[0].found.strength == strength
    assert list(best[0].found.aside) == aside


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"data.yaml": b"stages:\n  build:\n", "1.txt": b""}, id="another-yaml"),
        pytest.param({"labels/1.txt": b"a cat\n", "images/1.jpg": image()}, id="texts"),
        pytest.param({"labels/1.txt": ROW}, id="no-image"),
        pytest.param({"Annotations/1.xml": b"<html/>", "images/1.jpg": image()}, id="another-xml"),
        pytest.param({"Annotations/1.xml": b"", "images/1.jpg": image()}, id="an-empty-xml"),
        pytest.param({"annotations/1.xml": XML}, id="xml-alone"),
        pytest.param({"data.yaml": b"names: [cat]\n"}, id="description-alone"),
        pytest.param({"0.tar": b"no archive"}, id="no-tar"),
        pytest.param({"0.tar": tar("README")}, id="members-without-a-suffix"),
        pytest.param({"0.tar": b""}, id="an-empty-tar"),
        pytest.param({"a/x.parquet": b""}, id="too-deep"),
    ],
)
def test_contents_of_another_kind_are_not_recognized(
    known: Plugins, tmp_path: Path, files: Mapping[str, bytes]
) -> None:
    candidates = found(tmp_path, known, files)
    assert [each.source for each in candidates if each.found.strength != "refused"] == []
    tars = any(path.endswith(".tar") for path in files)
    assert [each.source for each in candidates] == (["webdataset"] if tars else [])


@pytest.mark.parametrize("split", ["TRAIN", "Val", "tEST", "testing"])
@pytest.mark.parametrize(
    ("file", "data", "source"),
    [
        ("cat/1.png", image(), "imagefolder"),
        ("1.tar", tar("a.txt"), "webdataset"),
        ("1.xml", XML, "voc"),
    ],
)
def test_folders_of_splits_are_seen_in_any_case_of_letters(
    known: Plugins, tmp_path: Path, split: str, file: str, data: bytes, source: str
) -> None:
    files = {f"{split}/{file}": data}
    if source == "voc":
        files[f"{split}/1.jpg"] = image()
    assert found(tmp_path, known, files)[0].source == source
