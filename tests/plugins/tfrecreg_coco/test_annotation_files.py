"""Which files are read for which split, and where their images are found."""

from __future__ import annotations

from typing import Any

import pytest

from tfrecreg.core.build.sources.interface import Item

WHERE = "annotations/instances_train2017.json"


def keys(raw: Any, **options: Any) -> list[tuple[str, str]]:
    listed = raw.source(**options).items()
    return [(each.split, each.key) for each in listed if isinstance(each, Item)]


def put(raw: Any, path: str, *images: str, names: tuple[str, ...] = ()) -> None:
    """A file of annotations of the images, which are at their places."""
    for image in images:
        raw.image_file(image)
    names = names or tuple(image.rpartition("/")[2] for image in images)
    images = [raw.image(number, name) for number, name in enumerate(names, start=1)]
    raw.put(path, raw.dataset(images, [raw.annotation(1)]))


@pytest.mark.parametrize(
    ("file", "image", "split"),
    [
        ("annotations/instances_train2017.json", "train2017/a.png", "train"),
        ("annotations/instances_train2017.json", "images/train2017/a.png", "train"),
        ("annotations/instances_val2017.json", "val2017/a.png", "validation"),
        ("annotations/instances_val.json", "images/val/a.png", "validation"),
        ("annotations/instances_val.json", "valid/a.png", "validation"),
        ("annotations/instances_val2017.json", "images/a.png", "validation"),
        ("annotations/instances_default.json", "images/default/a.png", "train"),
        ("annotations/instances_minival2014.json", "images/a.png", "minival"),
        ("train/_annotations.coco.json", "train/a.png", "train"),
        ("valid/_annotations.coco.json", "valid/a.png", "validation"),
        ("_annotations.coco.json", "a.png", "train"),
        ("instances.json", "images/a.png", "train"),
        ("labels.json", "data/a.png", "train"),
        ("test_coco.json", "a.png", "test"),
        ("val.json", "val/a.png", "validation"),
        ("test/coco.json", "test/a.png", "test"),
        ("test/coco.json", "test/images/a.png", "test"),
    ],
)
def test_usual_layouts_are_found(raw: Any, file: str, image: str, split: str) -> None:
    put(raw, file, image)
    assert keys(raw) == [(split, image)]


def test_all_splits_of_a_layout_are_read_train_first(raw: Any) -> None:
    for split in ("valid", "test", "train"):
        put(raw, f"{split}/_annotations.coco.json", f"{split}/a.png")
    assert [split for split, _ in keys(raw)] == ["train", "test", "validation"]
    assert keys(raw, splits=("test",)) == [("test", "test/a.png")]
    assert not raw.source(splits=("test",)).dataset._documents


def test_splits_may_share_a_folder_of_images(raw: Any) -> None:
    put(raw, "annotations/instances_train.json", "images/a.png")
    put(raw, "annotations/instances_val.json", "images/b.png")
    assert keys(raw) == [("train", "images/a.png"), ("validation", "images/b.png")]
    assert raw.remarks() == []


def test_paths_below_the_folder_are_followed(raw: Any) -> None:
    put(raw, WHERE, "train2017/x/a.png", names=("./x//a.png",))
    assert keys(raw) == [("train", "train2017/x/a.png")]


def test_names_that_begin_with_the_folder_are_found_from_above(raw: Any) -> None:
    put(raw, WHERE, "train2017/a.png", names=("train2017/a.png",))
    assert keys(raw) == [("train", "train2017/a.png")]


class TestGiven:
    def test_files_splits_and_folders_can_be_said(self, raw: Any) -> None:
        put(raw, "x/one.json", "pics/a.png")
        put(raw, "y/two.json", "more/b.png")
        options = {
            "annotations": ("train:x/one.json", "holdout:y/two.json"),
            "images": ("pics", "holdout:more"),
        }
        assert keys(raw, **options) == [("train", "pics/a.png"), ("holdout", "more/b.png")]

    def test_the_raw_folder_itself_can_hold_the_images(self, raw: Any) -> None:
        put(raw, WHERE, "a.png", "train2017/a.png", names=("a.png",))
        assert keys(raw) == [("train", "train2017/a.png")]
        assert keys(raw, images=(".",)) == [("train", "a.png")]

    def test_files_that_are_named_are_all_read(self, raw: Any) -> None:
        put(raw, WHERE, "train2017/a.png")
        said = raw.dataset([raw.image(1, "a.png")], [{"id": 1, "image_id": 1, "caption": "x"}])
        raw.put("annotations/captions_train2017.json", said)
        both = (WHERE, "annotations/captions_train2017.json")
        assert "image/caption" in raw.values(annotations=both)
        assert "image/caption" not in raw.values()


class TestChoice:
    def test_instances_come_first(self, raw: Any) -> None:
        put(raw, WHERE, "train2017/a.png")
        for other in ("captions", "stuff", "panoptic"):
            raw.put(f"annotations/{other}_train2017.json", raw.dataset([]))
        described = raw.source().describe()
        assert described["tasks"] == "instances"
        assert described["split train"] == f"instances of {WHERE}; images in train2017"

    def test_splits_of_images_alone_can_be_added(self, raw: Any) -> None:
        put(raw, WHERE, "train2017/a.png")
        put(raw, "annotations/image_info_test2017.json", "test2017/b.png")
        assert [split for split, _ in keys(raw)] == ["train"]
        tasks = ("instances", "images")
        assert [split for split, _ in keys(raw, tasks=tasks)] == ["train", "test"]

    def test_the_kind_of_other_names_is_told_by_the_first_annotation(self, raw: Any) -> None:
        raw.image_file("a.png")
        image = raw.image(1, "a.png")
        kinds = {
            "image/object/bbox/xmin": raw.annotation(1),
            "image/object/keypoint/x": raw.annotation(1, keypoints=[1, 2, 2]),
            "image/caption": {"id": 1, "image_id": 1, "caption": "x"},
        }
        for feature, annotation in kinds.items():
            raw.put("some.json", raw.dataset([image], [annotation]))
            assert feature in raw.values()
        raw.put("some.json", {"images": [image]})
        assert not any("object" in name for name in raw.values())
        raw.put("some.json", raw.dataset([image]))
        assert raw.values()["image/object/area"] == ()


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["train2014", "train2017"], ["train2014", "train2017"]),
        (["val", "dev"], ["dev", "val"]),
        (["test-dev2017", "train2017"], ["test_dev", "train"]),
        (["indoor", "outdoor"], ["indoor", "outdoor"]),
    ],
)
def test_splits_are_never_merged(raw: Any, words: list[str], names: list[str]) -> None:
    for word in words:
        put(raw, f"annotations/instances_{word}.json", f"{word}/a.png")
    assert sorted(split for split, _ in keys(raw)) == names


def test_other_json_beside_a_dataset_is_passed_over(raw: Any) -> None:
    put(raw, "data.json", "a.png")
    raw.put("package.json", {"name": "x", "files": []})
    raw.put("results.json", [{"image_id": 1, "score": 0.5}])
    assert keys(raw) == [("train", "a.png")]


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ({}, {}),
        ({"train.json": "a.png", "train_v2.json": "a.png"}, {}),
        ({WHERE: "train2017/a.png"}, {"tasks": ("panoptic",)}),
        ({WHERE: "train2017/a.png"}, {"splits": ("test",)}),
        ({WHERE: "train2017/a.png"}, {"annotations": ("x.json",)}),
        ({WHERE: "train2017/a.png"}, {"annotations": ("../x.json",)}),
    ],
)
def test_files_that_do_not_fit_are_refused(raw: Any, files: Any, options: Any) -> None:
    for path, image in files.items():
        put(raw, path, image)
    raw.error(**options)


def test_images_that_are_nowhere_are_refused_at_once(raw: Any) -> None:
    put(raw, WHERE, "train2017/a.png", names=("b.png", "c.png"))
    assert "none of the first 2 images of the split `train` was found" in raw.error().message


def test_no_file_outside_of_the_raw_folder_is_read(raw: Any) -> None:
    put(raw, WHERE, "train2017/a.png")
    (raw.path.parent / "up").mkdir()
    (raw.path.parent / "up/a.png").write_bytes((raw.path / "train2017/a.png").read_bytes())
    assert raw.skipped(images=("../up",)).code == "SRC112 missing"


@pytest.mark.parametrize(
    "name", ["images\\{}.png", "..\\..\\up\\4\\{}.png", "C:\\up\\{}.png", "/data/up/{}.png"]
)
def test_paths_of_another_machine_are_files_with_the_same_end(raw: Any, name: str) -> None:
    for number in (1, 2):
        raw.image_file(f"images/{number}.png")
    images = [raw.image(number, name.format(number)) for number in (1, 2)]
    raw.put("result.json", raw.dataset(images, [raw.annotation(1), raw.annotation(2, image=2)]))
    assert raw.splits() == {"train": ["images/1.png", "images/2.png"]}
    assert raw.codes() == ({} if name.startswith("images") else {"SRC116 path": 2})
