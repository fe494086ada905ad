"""Folders that people publish: every file of them ends as written or as skipped for a reason."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tfrecreg.core.example.decode import decode
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.reader import scan
from tfrecreg.core.storage.local import LocalStorage

pytestmark = pytest.mark.realdata


def at(raw, folder: Path):
    """The source of a folder of the real data, which is read where it lies."""
    raw.path = folder
    return raw


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def faithful(made, folder: Path) -> None:
    """Every written image is its file, byte for byte."""
    for (_, key), found in made.written.items():
        data = (folder / key).read_bytes()
        assert found["image/encoded"] == data
        assert found["image/key/sha256"].decode() == hashlib.sha256(data).hexdigest()
        assert found["image/filename"].decode() == key.rpartition("/")[2]


def test_dali_has_47_images_of_19_classes(raw, realdata) -> None:
    folder = realdata / "imagefolder/dali"
    made = at(raw, folder).made()
    assert made.splits() == {"train": 47}
    assert made.skipped == {}
    assert made.remarks == [
        ("train", "LICENSE", "SRC015", "stray files: `LICENSE`, `image_list.txt`", 2)
    ]
    names = raw.source().labels()["image/class/label"]
    assert names == sorted(
        (path.name for path in folder.iterdir() if path.is_dir()), key=str.encode
    )
    assert len(names) == 19
    assert (names[0], names[-1]) == ("100", "84")  # by bytes: labels are positions, not numbers
    assert made.labels()["84/peacock-90051_640.jpg"] == (18, "84")
    assert {found["image/format"] for found in made.written.values()} == {b"jpeg"}
    faithful(made, folder)


def test_dali_with_its_list_is_the_same_as_by_its_folders(raw, realdata) -> None:
    at(raw, realdata / "imagefolder/dali")
    made = raw.made("label_file=image_list.txt")
    assert made.written == raw.made().written
    assert [remark.detail for remark in made.remarks] == ["stray files: `LICENSE`"]


def test_tfrecorder_has_three_splits_of_two_images(raw, realdata) -> None:
    folder = realdata / "imagefolder/tfrecorder/images"
    made = at(raw, folder).made()
    assert made.splits() == {"test": 2, "train": 2, "validation": 2}
    assert made.skipped == {}
    assert raw.source().labels() == {"image/class/label": ["cat", "goat"]}
    upper = {"train": "TRAIN", "validation": "VALIDATION", "test": "TEST"}
    for (split, key), found in made.written.items():
        path = raw.source().raw_path(split, key)
        assert path == f"{upper[split]}/{key}"
        assert found["image/encoded"] == (folder / path).read_bytes()
    assert {
        key: (found["image/height"], found["image/width"])
        for (_, key), found in made.written.items()
    } == {
        "cat/cat-640x853-1.jpg": (853, 640),
        "cat/cat-800x600-2.jpg": (600, 800),
        "cat/cat-800x600-3.jpg": (600, 800),
        "goat/goat-320x320-2.jpg": (213, 320),
        "goat/goat-640x427-3.jpg": (427, 640),
        "goat/goat-640x640-1.jpg": (560, 640),
    }


def test_the_two_classes_of_digits_are_read_from_their_images(raw, realdata) -> None:
    folder = realdata / "mnist/two-class/training-images-insta"
    made = at(raw, folder).made()
    assert made.splits() == {"train": 102}
    assert Counter(text for _, text in made.labels().values()) == {"1": 53, "3": 49}
    assert made.skipped == {}
    faithful(made, folder)
    at(raw, folder.parent).error()


def test_raccoons_are_the_bytes_of_that_projects_own_records(raw, realdata) -> None:
    folder = realdata / "tfrecord/raccoon"
    storage = LocalStorage(folder)
    theirs = {}
    for event in scan(storage, "data/test.record"):
        if isinstance(event, RecordBatch):
            for payload in event.payloads():
                example = decode(payload)
                name = example["image/filename"].values[0].decode()
                theirs[name] = example
    assert len(theirs) == 40
    raw.path.joinpath("raccoon").mkdir()
    for name in theirs:
        shutil.copyfile(folder / "images" / name, raw.path / "raccoon" / name)
    ours = {key.rpartition("/")[2]: found for (_, key), found in raw.made().written.items()}
    assert sorted(ours) == sorted(theirs)
    for name, example in theirs.items():
        assert ours[name]["image/encoded"] == example["image/encoded"].values[0]


@pytest.mark.parametrize("mode", ["header", "decode"])
def test_every_odd_image_is_written_or_skipped_for_a_reason(raw, realdata, mode) -> None:
    if mode == "decode":
        pytest.importorskip("PIL", reason="Pillow is not installed")
    folder = realdata / "images-odd"
    made = at(raw, folder).made(f"verify={mode}")
    accounted = {key for _, key in made.written} | {key for _, key in made.skipped}
    assert accounted == files(folder)
    assert all(code.startswith("SRC") and detail for code, detail in made.skipped.values())
    faithful(made, folder)


def test_headers_alone_decide_so_about_the_odd_images(raw, realdata) -> None:
    made = at(raw, realdata / "images-odd").made()
    skipped: dict[str, Counter[str]] = {}
    for key, code in made.codes().items():
        skipped.setdefault(key.split("/")[0], Counter())[code] += 1
    assert Counter(key.split("/")[0] for _, key in made.written) == {
        "dali": 26,
        "exif-orientation": 18,
        "libjpeg-turbo": 10,
        "pillow": 25,
        "pngsuite": 163,
        "tfdv": 6,
    }
    assert skipped == {
        "dali": {"SRC110 empty": 1, "SRC110 format": 12},
        "exif-orientation": {"SRC110 format": 1},
        "libjpeg-turbo": {"SRC110 format": 4},
        "pillow": {"SRC110 format": 7, "SRC110 header": 1, "SRC110 size": 1},
        "pngsuite": {"SRC110 format": 9, "SRC110 header": 6},
        "tfdv": {"SRC110 format": 2},
    }
    assert {remark.key for remark in made.remarks} == {
        "pillow/decompression_bomb.gif",
        "pillow/l2rgb_read.bmp",
        "pillow/truncated_image.png",
        "pillow/truncated_jpeg.jpg",
    }


MAY_DECODE = {
    # What a build of Pillow decodes of these depends on the libraries that it was built with.
    "dali/single/jpeg_lossless/0/cat-1245673_640_grayscale_16bit.jpg",
    "dali/single/jpeg_lossless/0/cat-3449999_640_grayscale_12bit.jpg",
    "dali/single/jpeg_lossless/0/cat-3449999_640_grayscale_16bit.jpg",
    "dali/single/jpeg_lossless/0/cat-3449999_640_grayscale_8bit.jpg",
    "libjpeg-turbo/monkey12.jpg",
}


@pytest.mark.medium
def test_decoding_finds_what_headers_do_not_say(raw, realdata) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    at(raw, realdata / "images-odd")
    header, decoded = raw.made(), raw.made("verify=decode")
    more = {key: code for key, code in decoded.codes().items() if key not in header.codes()}
    assert header.codes().items() <= decoded.codes().items()
    assert {key: code for key, code in more.items() if key not in MAY_DECODE} == {
        "pillow/decompression_bomb.gif": "SRC110 costly",
        "pillow/l2rgb_read.bmp": "SRC110 pixels",
        "pillow/truncated_image.png": "SRC110 pixels",
        "pillow/truncated_jpeg.jpg": "SRC110 pixels",
        "pillow/unknown_compression_method.png": "SRC110 pixels",
        "pngsuite/xcsn0g01.png": "SRC110 pixels",
        "pngsuite/xdtn0g01.png": "SRC110 pixels",
    }
    assert {more[key] for key in MAY_DECODE & more.keys()} <= {"SRC110 pixels"}


@pytest.mark.slow
@pytest.mark.parametrize("option", ["reencode=jpeg:80", "resize=64"])
def test_all_that_decodes_can_be_made_anew(raw, realdata, option) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    at(raw, realdata / "images-odd")
    options = ("reencode=jpeg:80", *([option] if option != "reencode=jpeg:80" else []))
    made, decoded = raw.made(*options), raw.made("verify=decode")
    # Only the first frame and no checksums are looked at: nothing more is skipped.
    assert made.codes().keys() <= decoded.codes().keys() | MAY_DECODE
    assert {found["image/format"] for found in made.written.values()} == {b"jpeg"}
    if option != "reencode=jpeg:80":
        for found in made.written.values():
            assert min(found["image/height"], found["image/width"]) <= 64
