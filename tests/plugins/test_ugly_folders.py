"""Folders as people have them: of every file it is said whether it is read, skipped or left aside.

Names with blanks, line ends, other scripts and upper-case suffixes; files that systems and tools
leave; empty files; annotations without an image and images without annotations; Windows' line ends.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from cases_support import case
from image_support import png

from tfrecreg.core.build.sources.interface import Item, Remark, Skipped, Written
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.typed_values import parse_options

JUNK = (".DS_Store", "__MACOSX/a/._0.png", "notes.docx", "a/Thumbs.db", "a/._0.png")
IMAGES = ("0.png", "1.PNG", "two words.png", "line\nend.png", "ünï 猫.png")
LEFT_ASIDE = {"SRC015", "SRC117 image"}
"""Codes of remarks that count files, with their cases."""
BOX = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>"
XML = f"\ufeff<annotation>\r\n<object>\r\n<name>\r\ncat</name>{BOX}</object>\r\n</annotation>"


def imagefolder(raw: Path) -> None:
    for name in IMAGES:
        put(raw / "cat" / name, png(9, 9, seed=sum(name.encode())))
    put(raw / "dog/empty.png", b"")
    put(raw / "dog/0.png", png(9, 9))
    (raw / "bird").mkdir()


def yolo(raw: Path) -> None:
    for number, name in enumerate(IMAGES):
        put(raw / "images/train" / name, png(9, 9, seed=sum(name.encode())))
        if number:
            stem = name.rpartition(".")[0]
            put(raw / f"labels/train/{stem}.txt", b"0 0.5 0.5 0.2 0.2\r\n7 0.5 0.5 0.2 0.2\r\n\r\n")
    put(raw / "images/val/empty.png", b"")
    put(raw / "labels/val/empty.txt", b"0 0.5 0.5 0.2 0.2")
    put(raw / "images/other.png", png(9, 9, seed=5))
    put(raw / "labels/train/ghost.txt", b"0 0.5 0.5 0.2 0.2")
    put(raw / "labels/train.cache", b"\0")
    yaml = "path: C:\\Users\\me\\set\r\ntrain: C:\\Users\\me\\set\\images\\train\r\n"
    put(raw / "data.yaml", f"{yaml}val: images\\val\r\nnames: [cat]\r\n".encode())


def voc(raw: Path) -> None:
    for number, name in enumerate(IMAGES):
        put(raw / "JPEGImages" / name, png(9, 9, seed=sum(name.encode())))
        if number:
            put(raw / f"Annotations/{name.rpartition('.')[0]}.xml", XML.encode())
    put(raw / "JPEGImages/empty.png", b"")
    put(raw / "Annotations/empty.xml", XML.encode())
    put(raw / "JPEGImages/torn.png", png(9, 9, seed=3))
    put(raw / "Annotations/torn.XML", XML.encode()[:90])
    put(raw / "Annotations/ghost.xml", XML.encode())


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("make", "written", "skipped", "remarked"),
    [
        (imagefolder, 6, {"SRC110 empty": 1}, {"SRC015": 5, "SRC118": 1}),
        (
            yolo,
            5,
            {"SRC110 empty": 1},
            {
                "SRC015": 7,
                "SRC115 category": 4,
                "SRC047": 4,
                "SRC117 image": 1,
                "SRC116 no labels": 1,
                "SRC116 path": 1,
            },
        ),
        (
            voc,
            4,
            {"SRC110 empty": 1, "SRC112 missing": 1, "SRC110": 1},
            {"SRC015": 5, "SRC117 image": 1},
        ),
    ],
    ids=["imagefolder", "yolo", "voc"],
)
def test_every_file_of_an_ugly_folder_is_accounted_for(
    tmp_path: Path,
    make: object,
    written: int,
    skipped: dict[str, int],
    remarked: dict[str, int],
) -> None:
    assert callable(make)
    make(tmp_path)
    for name in JUNK:
        put(tmp_path / name.replace("a/", "cat/" if make is imagefolder else "a/"), b"x")
    name = make.__name__
    kind = plugins().load(SourceRecord, name)
    given = [] if name == "imagefolder" else ["dangling=drop"]
    source = kind(LocalStorage(tmp_path), parse_options(kind.Options, given, of=name))
    worker = pickle.loads(pickle.dumps(source))
    known = {file.path for file in source.raw_files()}
    made = []
    codes: dict[str, int] = {}
    remarks: list[Remark] = []
    for each in source.items():
        if isinstance(each, Remark):
            remarks.append(each)
            continue
        example = worker.example(each) if isinstance(each, Item) else each
        if isinstance(example, Skipped):
            code = case(example.code, example.detail)
            codes[code] = codes.get(code, 0) + 1
            known.add(example.key)
            assert example.detail.isprintable()
        else:
            made.append(example)
            remarks += example.remarks if isinstance(example, Written) else ()
    times: dict[str, int] = {}
    for remark in remarks:
        code = case(remark.code, remark.detail)
        times[code] = times.get(code, 0) + remark.times
        assert remark.detail.isprintable()
    assert (len(made), codes, times) == (written, skipped, remarked)
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    files = {path for path in files if (tmp_path / path).is_file()}
    left_aside = sum(count for code, count in times.items() if code in LEFT_ASIDE)
    assert len(files & known) + left_aside == len(files)
