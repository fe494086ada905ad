"""Which files are read for which split, and where their images are found."""

from __future__ import annotations

from typing import Any

import pytest

from tfrecreg.core.build.sources.interface import Item
from tfrecreg_coco.files import split_names, split_word, task_by_name

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


@pytest.mark.parametrize(
    ("file", "image", "below"),
    [
        ("annotations/instances_train.json", "train/a.png", "annotations/old/instances_val.json"),
        ("train.json", "train/a.png", "old/val.json"),
        ("train/coco.json", "train/a.png", "train/old/instances_val.json"),
    ],
)
def test_files_further_down_are_not_read(raw: Any, file: str, image: str, below: str) -> None:
    put(raw, file, image)
    put(raw, below, "val/b.png")
    assert keys(raw) == [("train", image)]


@pytest.mark.parametrize("is_link", [False, True])
def test_other_places_are_read_where_annotations_is_no_folder(raw: Any, is_link: bool) -> None:
    put(raw, "train.json", "train/a.png")
    if is_link:
        (raw.path / "annotations").symlink_to("nowhere")
    else:
        raw.put("annotations", "see train.json")
    assert keys(raw) == [("train", "train/a.png")]


def test_all_splits_of_a_layout_are_read_train_first(raw: Any) -> None:
    for split in ("valid", "test", "train"):
        put(raw, f"{split}/_annotations.coco.json", f"{split}/a.png")
    assert [split for split, _ in keys(raw)] == ["train", "test", "validation"]
    assert keys(raw, splits=("test",)) == [("test", "test/a.png")]


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

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"annotations": ("x.json",)}, "the option `annotations` names `x.json`, which is not"),
            ({"annotations": ("train2017",)}, "which is not a file in the raw folder"),
            (
                {"images": ("nowhere",)},
                "option `images` names `nowhere`, which is not a folder",
            ),
            ({"images": ("../up",)}, "the option `images`: the path `../up` has a part `..`"),
            ({"images": ("/etc",)}, "the option `images`: the path `/etc` is absolute"),
            ({"images": ("test:train2017",)}, "the option `images` names the split `test`, and"),
            ({"images": ("a", "b")}, "the option `images` has two folders for all"),
            ({"images": ("train:a", "train:b")}, "the option `images` has two folders for `train`"),
            ({"splits": ("test",)}, "the option `splits` names `test`, and there are `train`"),
        ],
    )
    def test_what_is_not_there_is_refused(self, raw: Any, options, says) -> None:
        put(raw, WHERE, "train2017/a.png")
        message, _ = raw.refusal(**options)
        assert says in message

    def test_a_path_out_of_the_folder_is_refused(self, raw: Any) -> None:
        put(raw, WHERE, "train2017/a.png")
        message, _ = raw.refusal(annotations=("../x.json",))
        assert "`../x.json` is not a path below" in message


class TestChoice:
    def test_instances_come_first(self, raw: Any) -> None:
        put(raw, WHERE, "train2017/a.png")
        for other in ("captions", "stuff", "panoptic", "labels"):
            raw.put(f"annotations/{other}_train2017.json", raw.dataset([]))
        described = raw.source().describe()
        assert described["tasks"] == "instances"
        assert described["split train"] == f"instances of {WHERE}; images in train2017"

    def test_one_other_kind_is_read_and_several_have_to_be_chosen_from(self, raw: Any) -> None:
        raw.image_file("train2017/a.png")
        said = {"images": [raw.image(1, "a.png")], "annotations": []}
        raw.put("annotations/captions_train2017.json", said)
        raw.put("annotations/image_info_test2017.json", said)
        assert "image/caption" in raw.values()
        raw.put("annotations/stuff_train2017.json", raw.dataset([]))
        message, hint = raw.refusal()
        assert message == "`annotations` holds stuff, captions, and no instances"
        assert hint == "select: --option tasks=stuff,captions, or one of them"

    def test_two_files_for_one_split_are_refused(self, raw: Any) -> None:
        put(raw, "train.json", "a.png")
        put(raw, "train_v2.json", "a.png")
        message, hint = raw.refusal()
        assert message == (
            "several files hold instances of the split `train`: `train.json`, `train_v2.json`"
        )
        assert hint == "select one: --option annotations=train.json"
        assert len(keys(raw, annotations=("train_v2.json",))) == 1

    def test_a_split_with_a_part_of_the_tasks_is_refused(self, raw: Any) -> None:
        for split in ("train", "val"):
            put(raw, f"annotations/instances_{split}.json", f"images/{split}/a.png")
        raw.put("annotations/captions_train.json", raw.dataset([raw.image(1, "a.png")]))
        tasks = ("instances", "captions")
        message, hint = raw.refusal(tasks=tasks)
        assert message == "the split `validation` has instances, no captions"
        assert hint == "leave it out, or the task: --option splits=train"
        assert keys(raw, tasks=tasks, splits=("train",)) == [("train", "images/train/a.png")]

    def test_splits_of_images_alone_can_be_added(self, raw: Any) -> None:
        put(raw, WHERE, "train2017/a.png")
        put(raw, "annotations/image_info_test2017.json", "test2017/b.png")
        assert [split for split, _ in keys(raw)] == ["train"]
        tasks = ("instances", "images")
        assert [split for split, _ in keys(raw, tasks=tasks)] == ["train", "test"]

    def test_a_task_that_no_file_serves_is_refused(self, raw: Any) -> None:
        put(raw, WHERE, "train2017/a.png")
        message, _ = raw.refusal(tasks=("panoptic",))
        assert message == f"no file holds panoptic: found `{WHERE}`"

    def test_labels_of_whole_images_are_refused(self, raw: Any) -> None:
        data = raw.dataset([raw.image(1)], [{"id": 1, "image_id": 1, "category_id": 1}])
        for path in ("annotations/labels_train.json", "some.json"):
            raw.put(path, data)
            message, hint = raw.refusal()
            assert message == f"`{path}`: labels of whole images are not read"
            assert "imagefolder" in hint
            (raw.path / path).unlink()

    def test_a_file_of_another_kind_than_its_name_says_is_refused(self, raw: Any) -> None:
        put(raw, "annotations/captions_train2017.json", "train2017/a.png")
        message, _ = raw.refusal()
        assert message == (
            "`annotations/captions_train2017.json` holds no captions: its annotations have no "
            "`caption`"
        )

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


class TestNothing:
    def test_an_empty_folder_is_refused(self, raw: Any) -> None:
        message, hint = raw.refusal()
        assert message == (
            f"`{raw.path}` holds no annotations: expected JSON in `annotations/`, found nothing"
        )
        assert "--option annotations=FILE" in hint

    def test_other_files_are_shown(self, raw: Any) -> None:
        raw.put("readme.txt", "x")
        raw.put("pics/a.jpg", "x")
        message, _ = raw.refusal()
        assert message.endswith("found `pics`, `readme.txt`")

    def test_other_json_beside_a_dataset_is_passed_over(self, raw: Any) -> None:
        put(raw, "data.json", "a.png")
        raw.put("package.json", {"name": "x", "files": []})
        raw.put("results.json", [{"image_id": 1, "score": 0.5}])
        assert keys(raw) == [("train", "a.png")]

    def test_other_json_alone_is_refused(self, raw: Any) -> None:
        raw.put("package.json", {"name": "x", "files": []})
        message, _ = raw.refusal()
        assert message.startswith("`package.json` is not a COCO dataset: ")

    def test_images_that_are_nowhere_are_refused_at_once(self, raw: Any) -> None:
        put(raw, WHERE, "train2017/a.png", names=("b.png", "c.png"))
        message, hint = raw.refusal()
        assert message == (
            "none of the first 2 images of the split `train` was found: looked for `b.png` and "
            "so on in `train2017`, `annotations`, `.`"
        )
        assert "--option images=FOLDER" in hint
        assert "--option splits=" in hint

    def test_a_file_where_the_folder_should_be_is_refused(self, raw: Any) -> None:
        path = raw.put("file", "x")
        raw.path = path
        message, _ = raw.refusal()
        assert message == f"no such folder: `{path}`"


@pytest.mark.parametrize(
    ("stem", "kind"),
    [
        ("instances_train2017", "instances"),
        ("instances", "instances"),
        ("instances_default", "instances"),
        ("person_keypoints_val2017", "keypoints"),
        ("captions_val2014", "captions"),
        ("panoptic_train2017", "panoptic"),
        ("stuff_val", "stuff"),
        ("image_info_test-dev2017", "images"),
        ("image_info_unlabeled2017", "images"),
        ("labels_train", "labels"),
        ("labels", None),
        ("Instances_Train", "instances"),
        ("panoptic_coco_detection_format", None),
        ("captions_val2014_fakecap_results", None),
        ("instances_mine", None),
        ("train", None),
        ("_annotations.coco", None),
    ],
)
def test_the_kind_is_in_the_usual_names_alone(stem: str, kind: str | None) -> None:
    assert task_by_name(f"annotations/{stem}.json") == kind


@pytest.mark.parametrize(
    ("path", "kind", "word"),
    [
        ("annotations/instances_train2017.json", "instances", "train2017"),
        ("annotations/instances_mine.json", "instances", "mine"),
        ("panoptic_coco_detection_format.json", "instances", ""),
        ("panoptic_examples.json", "panoptic", "examples"),
        ("test_coco.json", "keypoints", "test"),
        ("annotations_val2017.json", "instances", "val2017"),
        ("train_or_test.json", "instances", ""),
        ("valid/_annotations.coco.json", "instances", "valid"),
        ("data/labels.json", "instances", ""),
        ("annotations/labels_train.json", "labels", "train"),
        ("instances.json", "instances", ""),
    ],
)
def test_the_split_is_in_the_name_or_in_the_folders(path: str, kind: str, word: str) -> None:
    assert split_word(path, kind) == word


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["train2017", "val2017", "test2017"], ["train", "validation", "test"]),
        (["train", "valid", ""], ["train", "validation", "train"]),
        (["test-dev2017", "unlabeled2017"], ["test_dev", "unlabeled"]),
        (["train2014", "train2017"], ["train2014", "train2017"]),
        (["val", "dev"], ["val", "dev"]),
        (["default"], ["train"]),
        (["Straße 7"], ["Stra_e_7"]),
        (["---"], ["train"]),
    ],
)
def test_splits_have_their_usual_names_and_are_never_merged(words, names) -> None:
    found = split_names(words)
    assert [found[word] for word in words] == names
