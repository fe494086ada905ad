"""Images, XML and splits: found by `ImageSets`, beside each other, by folders."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tfrecreg.core.build.sources.interface import Skipped


class TestImageSets:
    def several(self, raw: Any, folder: str = "") -> None:
        for name in ("a", "b", "c"):
            raw.entry(name, raw.object(), folder=folder)
        raw.put(f"{folder}ImageSets/Main/train.txt", "a\r\nb\r\n")
        raw.put(f"{folder}ImageSets/Main/val.txt", "\ufeffc\n\n")

    def test_lists_are_splits(self, raw: Any) -> None:
        self.several(raw)
        assert raw.splits() == {
            "train": ["JPEGImages/a.png", "JPEGImages/b.png"],
            "validation": ["JPEGImages/c.png"],
        }
        assert raw.remarks() == []
        assert {"ImageSets/Main/train.txt", "Annotations/a.xml", "JPEGImages/a.png"} <= {
            file.path for file in raw.source().raw_files()
        }

    def test_lists_of_one_class_and_unions_are_left_aside(self, raw: Any) -> None:
        self.several(raw)
        raw.put("ImageSets/Main/cat_train.txt", "a  1\nb -1\n")
        raw.put("ImageSets/Main/cat_val.txt", "c  0\n")
        raw.put("ImageSets/Main/trainval.txt", "a\nb\nc\n")
        assert list(raw.splits()) == ["train", "validation"]
        assert [(each.code, each.key, each.times) for each in raw.remarks()] == [
            ("SRC015", "ImageSets/Main/cat_train.txt", 3)
        ]

    def test_a_union_alone_is_a_split(self, raw: Any) -> None:
        self.several(raw)
        raw.put("ImageSets/Main/trainval.txt", "a\nb\nc\n")
        for name in ("train", "val"):
            (raw.path / f"ImageSets/Main/{name}.txt").unlink()
        assert {split: len(keys) for split, keys in raw.splits().items()} == {"trainval": 3}

    def test_another_folder_of_lists_has_numbers_behind_names(self, raw: Any) -> None:
        self.several(raw)
        raw.put("ImageSets/Layout/train.txt", "a 1\na 2\nb.png\n")
        assert raw.splits(image_set="Layout") == {"train": ["JPEGImages/a.png", "JPEGImages/b.png"]}
        assert raw.codes(image_set="Layout") == {
            "SRC119": 1,
            "SRC117 image": 1,
            "SRC015": 3,
        }

    def test_a_name_that_no_split_can_have_is_refused_unless_others_are_chosen(
        self, raw: Any
    ) -> None:
        self.several(raw)
        raw.put("ImageSets/Main/val-2012.txt", "c\n")
        assert "`ImageSets/Main/val-2012.txt`" in raw.error().message
        assert list(raw.splits(splits=("train",))) == ["train"]

    def test_they_can_be_ignored(self, raw: Any) -> None:
        self.several(raw)
        assert {split: len(keys) for split, keys in raw.splits(image_set="none").items()} == {
            "train": 3
        }

    def test_several_years_are_one_dataset(self, raw: Any) -> None:
        self.several(raw, "VOC2007/")
        raw.entry("a", folder="VOC2012/")
        raw.put("VOC2012/ImageSets/Main/train.txt", "a\n")
        assert raw.splits()["train"] == [
            *("VOC2007/JPEGImages/a.png", "VOC2007/JPEGImages/b.png", "VOC2012/JPEGImages/a.png")
        ]

    def test_what_a_list_names_and_is_not_there_is_skipped(self, raw: Any) -> None:
        self.several(raw)
        raw.put("ImageSets/Main/train.txt", "a\nb\n../../etc/passwd\n")
        assert raw.skipped().code == "SRC112 missing"

    def test_an_image_without_xml_is_skipped_or_background(self, raw: Any) -> None:
        self.several(raw)
        (raw.path / "Annotations/c.xml").unlink()
        assert raw.skipped().code == "SRC112"
        assert raw.codes(unlabeled="background") == {"SRC116 no labels": 1}
        found = raw.made(unlabeled="background")["JPEGImages/c.png"].example
        assert found["image/object/view"].values == ()

    def test_an_xml_without_image_is_skipped(self, raw: Any) -> None:
        self.several(raw)
        (raw.path / "JPEGImages/c.png").unlink()
        assert raw.skipped().code == "SRC112 missing"


class TestLoose:
    @pytest.mark.parametrize(
        ("image", "xml"),
        [
            ("a.png", "a.xml"),
            ("images/a.png", "annotations/a.xml"),
            ("JPEGImages/a.png", "xmls/a.xml"),
            ("a.png", "labels/a.xml"),
            ("set/images/1/a.png", "set/Annotations/1/a.xml"),
        ],
    )
    def test_images_are_beside_the_xml_or_in_a_folder_of_images(
        self, raw: Any, image: str, xml: str
    ) -> None:
        raw.image(image)
        raw.put(xml, raw.xml(raw.object()))
        assert raw.splits() == {"train": [image]}
        assert raw.remarks() == []

    def test_folders_called_like_splits_are_splits(self, raw: Any) -> None:
        for name in ("train/a", "valid/b", "test/c"):
            raw.image(f"{name}.png")
            raw.put(f"{name}.xml", raw.xml())
        assert raw.splits() == {
            "test": ["test/c.png"],
            "train": ["train/a.png"],
            "validation": ["valid/b.png"],
        }

    def test_so_are_those_below_images_and_annotations(self, raw: Any) -> None:
        raw.image("images/train/a.png")
        raw.put("annotations/train/a.xml", raw.xml())
        raw.image("images/b.png")
        raw.put("annotations/b.xml", raw.xml())
        assert raw.splits() == {"train": ["images/train/a.png"]}
        assert raw.codes() == {"SRC015": 1, "SRC117 image": 1}

    def test_the_name_in_the_xml_is_asked_last(self, raw: Any) -> None:
        raw.image("images/photo 1.png")
        raw.put("annotations/0001.xml", raw.xml(more="<filename>C:\\x\\photo 1.png</filename>"))
        assert raw.splits() == {"train": ["images/photo 1.png"]}
        raw.put("annotations/0002.xml", raw.xml(more="<filename>photo 1.png</filename>"))
        assert raw.skipped().code == "SRC114"
        raw.put("annotations/0002.xml", raw.xml(more="<filename>../../x.png</filename>"))
        assert raw.skipped().code == "SRC112 missing"

    def test_an_image_that_only_a_filename_leads_to_is_no_background(self, raw: Any) -> None:
        raw.image("train/photo 1.png")
        raw.image("train/sky.png")
        raw.put("train/0001.xml", raw.xml(more="<filename>photo 1.png</filename>"))
        assert [*raw.made(unlabeled="background")] == ["train/photo 1.png", "train/sky.png"]
        assert raw.codes(unlabeled="background") == {"SRC116 no labels": 1}

    def test_of_several_images_the_usual_format_is_taken(self, raw: Any) -> None:
        raw.image("a.png")
        raw.put("a.jpg", (raw.path / "a.png").read_bytes())
        raw.put("a.xml", raw.xml())
        assert raw.splits() == {"train": ["a.jpg"]}
        assert raw.codes() == {"SRC117 image": 1}


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ({}, {}),
        ({"set/train/a.xml": "<annotation/>"}, {}),  # too deep
        ({"ImageSets/Main/val.txt": "\n", "Annotations/a.xml": "<annotation/>"}, {}),
        ({"ImageSets/Main/val.txt": b"\xe4\n", "Annotations/a.xml": "<annotation/>"}, {}),
        ({"a.xml": "<annotation/>"}, {"splits": ("test",)}),
    ],
)
def test_a_folder_that_is_no_dataset_is_refused(raw: Any, files: Any, options: Any) -> None:
    raw.image("a.png")
    for name, data in files.items():
        raw.put(name, data)
    raw.error(**options)


@pytest.mark.parametrize("symlinks", ["all", "inside", "none"])
def test_links_that_are_not_followed_are_accounted_for(raw: Any, symlinks: str) -> None:
    store = raw.path.parent / "store"
    store.mkdir()
    for name in "abcd":
        raw.entry(name, raw.object())
    raw.entry("c", raw.object("aardvark"))  # the first of all classes, where it is read
    shutil.move(raw.path / "JPEGImages/b.png", store)
    shutil.move(raw.path / "Annotations/c.xml", store)
    shutil.move(raw.path / "JPEGImages/d.png", raw.path / "JPEGImages/other.png")
    (raw.path / "JPEGImages/b.png").symlink_to(store / "b.png")
    (raw.path / "Annotations/c.xml").symlink_to(store / "c.xml")
    (raw.path / "JPEGImages/d.png").symlink_to("other.png")
    raw.put("Annotations/e.xml", raw.xml())
    (raw.path / "JPEGImages/e.png").symlink_to("nowhere.png")
    (raw.path / "JPEGImages/loop").symlink_to("..")
    raw.put("SegmentationClass/none.txt", "")
    (raw.path / "SegmentationClass/a.png").symlink_to(store / "b.png")
    made = raw.made(symlinks=symlinks, masks=("class",))
    skipped = {
        key.rpartition("/")[2]: each.code for key, each in made.items() if isinstance(each, Skipped)
    }
    expected = {"e.png": "SRC111 link"}
    if symlinks != "all":
        expected |= {"b.png": "SRC111 link", "c.png": "SRC110"}
    if symlinks == "none":
        expected |= {"d.png": "SRC111 link"}
    assert skipped == expected
    followed = ["aardvark"] if symlinks == "all" else []
    assert raw.source(symlinks=symlinks).labels()["image/object/class/label"] == [*followed, "cat"]
    times = 1 if symlinks == "all" else 2
    assert raw.codes(symlinks=symlinks, masks=("class",))["SRC015"] == times + 1


@pytest.mark.parametrize("moved", ["ImageSets", "ImageSets/Main", "ImageSets/Main/train.txt"])
def test_lists_behind_a_forbidden_link_are_refused(raw: Any, moved: str) -> None:
    for name in "ab":
        raw.entry(name, raw.object())
    raw.put("ImageSets/Main/train.txt", "a\n")
    raw.put("ImageSets/Main/val.txt", "b\n")
    shutil.move(raw.path / moved, raw.path.parent / "store")
    (raw.path / moved).symlink_to(raw.path.parent / "store")
    splits = {"train": ["JPEGImages/a.png"], "validation": ["JPEGImages/b.png"]}
    assert raw.splits() == splits
    for symlinks in ("inside", "none"):
        raw.error(symlinks=symlinks)
    if moved != "ImageSets/Main/train.txt":
        assert len(raw.splits(symlinks="none", image_set="none")["train"]) == 2
