"""Images, label files and splits: found by the description, by lists, by folders."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest
from image_support import png

from tfrecreg.core.build.sources.interface import Skipped

NAMES = "names: [cat, dog]\n"
TWO = {
    "train": ["images/train/a.png", "images/train/b.png"],
    "validation": ["images/val/c.png"],
}


class TestFolders:
    def test_folders_of_splits_below_images_and_labels(self, raw: Any) -> None:
        raw.two_splits()
        assert raw.splits(classes=("cat",)) == TWO
        assert raw.remarks(classes=("cat",)) == []

    def test_images_and_labels_below_folders_of_splits(self, raw: Any) -> None:
        raw.images("train/images/a.png", "valid/images/b.png", "test/images/c.png")
        for name in ("train/labels/a", "valid/labels/b", "test/labels/c"):
            raw.put(f"{name}.txt", "0 0.5 0.5 0.2 0.5")
        assert raw.splits(classes=("cat",)) == {
            "test": ["test/images/c.png"],
            "train": ["train/images/a.png"],
            "validation": ["valid/images/b.png"],
        }
        assert len(raw.splits(classes=("cat",), splits=("test",))) == 1

    def test_one_folder_is_train(self, raw: Any) -> None:
        raw.images("a.png", "sub/b.JPG")
        raw.put("a.txt", "0 0.5 0.5 0.2 0.5")
        raw.put("sub/b.txt", "0 0.5 0.5 0.2 0.5")
        assert raw.splits(classes=("cat",)) == {"train": ["a.png", "sub/b.JPG"]}
        assert raw.remarks(classes=("cat",)) == []

    def test_the_last_folder_called_images_is_replaced(self, raw: Any) -> None:
        raw.images("images/2024/images/a.png")
        raw.put("images/2024/labels/a.txt", "0 0.5 0.5 0.2 0.5")
        raw.put("labels/2024/images/a.txt", "no label of it")
        assert raw.objects("class/label", classes=("cat",)) == {"class/label": (0,)}

    def test_a_label_file_may_be_beside_its_image(self, raw: Any) -> None:
        raw.images("images/a.png")
        raw.put("images/a.txt", "0 0.5 0.5 0.2 0.5")
        assert raw.objects("class/label", classes=("cat",)) == {"class/label": (0,)}

    def test_images_in_no_split_are_counted(self, raw: Any) -> None:
        raw.two_splits()
        raw.images("images/d.png", "extra/e.png")
        (remark,) = raw.remarks(classes=("cat",))
        assert (remark.code, remark.key, remark.times) == ("SRC117 image", "extra/e.png", 2)
        assert raw.remarks(classes=("cat",), splits=("train",)) == []


class TestDescribed:
    @pytest.mark.parametrize(
        "yaml",
        [
            "train: images/train\nval: images/val\n",
            "path: ../datasets/raw\ntrain: images/train\nval: images/val\ntest:\n",
            "path: /home/me/datasets/raw\ntrain: images/train\nval: images/val\n",
            "path: images\ntrain: train\nval: val\n",
            "train: [images/train]\nval:\n  - images/val\n",
            "train: images\\train\nval: images\\val\n",
        ],
    )
    def test_folders_are_relative_to_the_path_and_to_the_file(self, raw: Any, yaml: str) -> None:
        raw.two_splits()
        raw.put("data.yaml", yaml + NAMES)
        assert raw.splits() == TWO
        assert raw.remarks() == []

    @pytest.mark.parametrize("start", ["../", "/content/set/", "C:\\Users\\me\\set\\"])
    def test_paths_of_another_machine_are_found_by_their_end(self, raw: Any, start: str) -> None:
        raw.two_splits()
        yaml = f"train: '{start}/images/train'\nval: images/val\n{NAMES}"
        raw.put("data.yaml", yaml)
        assert raw.splits() == TWO
        (remark,) = raw.remarks()
        assert (remark.split, remark.code, remark.key) == ("train", "SRC116 path", "images/train")

    @pytest.mark.parametrize("path", ["../secret", "/etc", "images/tests", "*"])
    def test_nothing_outside_of_the_raw_folder_is_looked_at(self, raw: Any, path: str) -> None:
        raw.two_splits()
        secret = raw.path.parent / "secret"
        secret.mkdir()
        (secret / "x.png").write_bytes((raw.path / "images/val/c.png").read_bytes())
        raw.put("data.yaml", f"train: images/train\nval: '{path}'\n{NAMES}")
        assert f"`val` is `{path}`" in raw.error().message
        assert raw.splits(splits=("train",)) == {"train": TWO["train"]}

    def test_splits_that_normalize_alike_stay_apart(self, raw: Any) -> None:
        raw.two_splits()
        raw.put("data.yaml", f"val: images/val\nvalid: images/train\n{NAMES}")
        assert list(raw.splits()) == ["val", "valid"]


class TestLists:
    def test_a_list_names_images_in_any_usual_way(self, raw: Any) -> None:
        raw.two_splits()
        lines = ["\ufeffimages/train/a.png", "./images/train/b.png", "", "  images\\val\\c.png "]
        raw.put("lists/train.txt", "\r\n".join(lines))
        raw.put("data.yaml", f"train: lists/train.txt\n{NAMES}")
        assert raw.splits() == {"train": TWO["train"] + TWO["validation"]}
        assert raw.remarks() == []
        assert "lists/train.txt" in [file.path for file in raw.source().raw_files()]

    def test_lists_called_like_splits_need_no_description(self, raw: Any) -> None:
        raw.two_splits()
        raw.put("train.txt", "images/val/c.png\n")
        raw.put("val.txt", "images/train/a.png\nimages/train/b.png\n")
        assert raw.splits(classes=("cat",)) == {
            "train": TWO["validation"],
            "validation": TWO["train"],
        }
        assert raw.remarks(classes=("cat",)) == []

    def test_a_file_without_a_suffix_is_no_list(self, raw: Any) -> None:
        raw.two_splits()
        raw.put("test", "images/val/c.png\n")
        assert raw.splits(classes=("cat",)) == TWO

    def test_paths_of_another_machine_are_counted(self, raw: Any) -> None:
        raw.two_splits()
        raw.put("train.txt", "/data/images/train/a.png\n/data/images/train/b.png\n")
        raw.put("val.txt", "images/val/c.png")
        (remark,) = raw.remarks(classes=("cat",))
        assert (remark.code, remark.key, remark.times) == ("SRC116 path", "train.txt", 2)

    def test_an_image_twice_is_written_once(self, raw: Any) -> None:
        raw.two_splits()
        raw.put("train.txt", "images/train/a.png\n./images/train/a.png\n")
        assert raw.splits(classes=("cat",)) == {"train": ["images/train/a.png"]}
        assert raw.codes(classes=("cat",)) == {"SRC119": 1, "SRC117 image": 2}

    @pytest.mark.parametrize("line", ["images/train/x.png", "../../etc/passwd", "/etc/passwd"])
    def test_an_image_that_is_not_there_is_skipped(self, raw: Any, line: str) -> None:
        raw.two_splits()
        raw.put("train.txt", f"images/train/a.png\n{line}\n")
        skipped = raw.skipped(classes=("cat",))
        assert (skipped.key, skipped.code) == (line, "SRC112 missing")


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ({"labels/a.txt": ""}, {}),
        ({"images/b.png": png(9, 9)}, {}),  # and no label file
        ({"set/images/train/a.png": png(9, 9), "set/labels/train/a.txt": ""}, {}),
        ({"a.png": png(9, 9), "a.txt": ""}, {"splits": ("test",)}),
        ({"a.png": png(9, 9), "a.txt": "", "train.txt": "\n"}, {}),
        ({"a.png": png(9, 9), "a.txt": "", "train.txt": b"a.png\n\xff.png\n"}, {}),
        ({"a.png": png(9, 9), "a.txt": ""}, {"task": "pose"}),
        ({"a.png": png(9, 9), "a.txt": ""}, {"kpt_shape": (17, 4)}),
    ],
)
def test_a_folder_that_is_no_dataset_is_refused(raw: Any, files: Any, options: Any) -> None:
    for name, data in files.items():
        raw.put(name, data)
    raw.error(classes=("cat",), **options)


class TestRemarks:
    def test_an_image_without_a_label_file_has_no_objects(self, raw: Any) -> None:
        raw.two_splits()
        raw.images("images/train/d.png")
        (remark,) = raw.remarks(classes=("cat",))
        assert (remark.split, remark.code, remark.times) == ("train", "SRC116 no labels", 1)
        assert remark.key == "images/train/d.png"
        found = raw.made(classes=("cat",))["images/train/d.png"].example
        assert found["image/object/class/label"].values == ()
        skipped = raw.skipped(classes=("cat",), unlabeled="skip")
        assert (skipped.key, skipped.code) == ("images/train/d.png", "SRC112")

    def test_a_label_file_without_an_image_is_said(self, raw: Any) -> None:
        raw.two_splits()
        raw.put("labels/train/gone.txt", "0 0.5 0.5 0.2 0.5")
        raw.put("labels/classes.txt", "cat")
        (remark,) = raw.remarks()
        assert (remark.code, remark.key) == ("SRC015", "labels/train/gone.txt")

    def test_all_else_is_counted(self, raw: Any) -> None:
        raw.two_splits()
        for name in ("labels/train.cache", "README.md", "README.roboflow.txt", ".hidden/a.png"):
            raw.put(name, "x")
        (remark,) = raw.remarks(classes=("cat",))
        assert (remark.code, remark.key, remark.times) == ("SRC015", ".hidden/a.png", 4)

    def test_a_name_that_is_not_utf8_is_skipped(self, raw: Any) -> None:
        raw.two_splits()
        name = os.fsdecode(b"images/train/\xff.png")
        (raw.path / name).write_bytes((raw.path / "images/train/a.png").read_bytes())
        listed = raw.source(classes=("cat",)).items()
        (skipped,) = (each for each in listed if isinstance(each, Skipped))
        assert (skipped.code, skipped.detail) == ("SRC111", "the name is not UTF-8")


class TestLinks:
    @pytest.mark.parametrize("symlinks", ["all", "inside", "none"])
    def test_what_is_not_followed_is_accounted_for(self, raw: Any, symlinks: str) -> None:
        raw.two_splits()
        store = raw.path.parent / "store"
        store.mkdir()
        for name in ("images/train/a.png", "labels/train/b.txt"):
            shutil.copy(raw.path / name, store)
        links = {"out.png": store / "a.png", "in.png": "b.png", "gone.png": "nowhere.png"}
        for name, target in links.items():
            (raw.path / "images/train" / name).symlink_to(target)
            raw.put(f"labels/train/{name[:-4]}.txt", "")
        (raw.path / "images/train/loop").symlink_to("..")
        (raw.path / "images/train/more").symlink_to(store)
        raw.images("images/train/d.png")
        (raw.path / "labels/train/d.txt").symlink_to(store / "b.txt")
        made = raw.made(classes=("cat",), symlinks=symlinks)
        found = {key.rpartition("/")[2]: each for key, each in made.items()}
        skipped = {name: each.code for name, each in found.items() if isinstance(each, Skipped)}
        assert (
            skipped
            == {
                "all": {"gone.png": "SRC111 link"},
                "inside": {
                    "gone.png": "SRC111 link",
                    "out.png": "SRC111 link",
                    "d.png": "SRC110",
                },
                "none": dict.fromkeys(("gone.png", "out.png", "in.png"), "SRC111 link")
                | {"d.png": "SRC110"},
            }[symlinks]
        )
        assert ("images/train/more/a.png" in made) == (symlinks == "all")
        remarks = raw.remarks(classes=("cat",), symlinks=symlinks)
        (loop,) = (each for each in remarks if each.code == "SRC015")
        assert (loop.split, loop.key) == ("train", "images/train/loop")
        assert {each.code for each in remarks} <= {"SRC015", "SRC116 no labels"}

    @pytest.mark.parametrize("name", ["data.yaml", "classes.txt", "train.txt"])
    def test_what_describes_the_dataset_is_not_read_through_a_forbidden_link(
        self, raw: Any, name: str
    ) -> None:
        raw.two_splits()
        texts = {"data.yaml": f"train: images/train\n{NAMES}", "classes.txt": "cat\ndog\n"}
        store = raw.path.parent / name
        store.write_text(texts.get(name, "images/train/a.png\n"))
        (raw.path / name).symlink_to(store)
        options = {"classes": ("cat",)} if name == "train.txt" else {}
        assert raw.splits(**options)
        for symlinks in ("inside", "none"):
            assert raw.error(symlinks=symlinks, **options).message.startswith(f"`{name}` is ")


def test_every_file_that_matters_is_a_raw_file(raw: Any) -> None:
    raw.two_splits()
    raw.put("data.yaml", f"train: images/train\n{NAMES}")
    assert {file.path for file in raw.source().raw_files()} == {
        "data.yaml",
        *("images/train/a.png", "images/train/b.png"),
        *("labels/train/a.txt", "labels/train/b.txt"),
    }
    assert raw.source().raw_path("train", "images/train/a.png") == "images/train/a.png"
