"""What is written of an image, task by task and option by option."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

import pytest

from tfrecreg.core.schema.check import Checker
from tfrecreg.core.schema.compiled import compile_schema
from tfrecreg.core.schema.proto import parse_schema

TRIANGLE = [10.0, 20.0, 40.0, 20.0, 25.0, 60.0]


def test_the_image_goes_in_as_it_is(raw: Any) -> None:
    raw.one()
    data = (raw.path / "train2017/1.png").read_bytes()
    found = raw.values()
    assert found["image/encoded"] == (data,)
    assert found["image/format"] == (b"png",)
    assert (found["image/height"], found["image/width"]) == ((80,), (100,))
    assert found["image/filename"] == (b"1.png",)
    assert found["image/source_id"] == (b"1",)
    assert found["image/key/sha256"] == (hashlib.sha256(data).hexdigest().encode(),)


def test_objects_have_the_keys_of_the_object_detection_api(raw: Any) -> None:
    raw.one(raw.annotation(7), raw.annotation(8, category_id=3, iscrowd=1, area=2))
    found = raw.values()
    assert found.keys() == raw.of_image | raw.of_objects
    assert found["image/object/bbox/xmin"] == pytest.approx((0.1, 0.1))
    assert found["image/object/bbox/ymin"] == pytest.approx((0.25, 0.25))
    assert found["image/object/bbox/xmax"] == pytest.approx((0.4, 0.4))
    assert found["image/object/bbox/ymax"] == pytest.approx((0.75, 0.75))
    assert found["image/object/class/label"] == (1, 3)
    assert found["image/object/class/text"] == (b"cat", b"dog")
    assert found["image/object/is_crowd"] == (0, 1)
    assert found["image/object/area"] == (900.5, 2)


def test_objects_come_in_the_order_of_the_file_and_in_that_of_their_image(raw: Any) -> None:
    for number in (1, 2):
        raw.image_file(f"train2017/{number}.png")
    mixed = [raw.annotation(id, image=1 + id % 2, area=id) for id in (4, 1, 3, 2, 9, 6)]
    data = raw.dataset([raw.image(2), raw.image(1)], mixed)
    raw.put("annotations/instances_train2017.json", data)
    made = raw.made()
    areas = {key: each.example["image/object/area"].values for key, each in made.items()}
    assert areas == {"train2017/1.png": (4, 2, 6), "train2017/2.png": (1, 3, 9)}


def test_an_image_without_annotations_is_kept_and_its_lists_are_empty(raw: Any) -> None:
    raw.one()
    found = raw.values(masks="polygons")
    polygons = {f"image/object/polygon/{name}" for name in ("x", "y", "points", "parts")}
    assert found.keys() == raw.of_image | raw.of_objects | polygons
    assert all(found[name] == () for name in raw.of_objects | polygons)


def test_is_crowd_is_read_where_a_tool_wrote_it_so(raw: Any) -> None:
    one = raw.annotation(1, is_crowd=1)
    del one["iscrowd"]
    raw.one(one, raw.annotation(2, is_crowd=1), raw.annotation(3, iscrowd=True))
    assert raw.values()["image/object/is_crowd"] == (1, 0, 1)


def test_a_missing_area_is_that_of_the_box_and_a_bad_one_is_said(raw: Any) -> None:
    one = raw.annotation(1)
    del one["area"]
    raw.one(one)
    assert raw.values()["image/object/area"] == (1200,)
    assert raw.remarks() == []
    raw.one(raw.annotation(1, area=-3), raw.annotation(2, area=1e300))
    assert raw.values()["image/object/area"] == (1200,) * 2
    (remark,) = raw.remarks()
    assert (remark.code, remark.times) == ("SRC115 value", 2)
    assert remark.detail == "the annotation 1 has the area -3; the area of its box is used; 2 such"


class TestLabels:
    def test_ids_stay_and_gaps_have_no_name(self, raw: Any) -> None:
        raw.one()
        assert raw.source().labels() == {"image/object/class/label": ["", "cat", "", "dog"]}

    def test_contiguous_labels_count_from_0_and_the_ids_are_recorded(self, raw: Any) -> None:
        raw.one(raw.annotation(1), raw.annotation(2, category_id=3))
        assert raw.values(categories="contiguous")["image/object/class/label"] == (0, 1)
        assert raw.source(categories="contiguous").labels() == {
            "image/object/class/label": ["cat", "dog"],
            "image/object/class/id": ["1", "3"],
        }

    @pytest.mark.parametrize("number", [-1, 1 << 16, 1 << 40])
    def test_ids_that_can_be_no_labels_ask_for_contiguous_ones(self, raw: Any, number) -> None:
        categories = [{"id": 1, "name": "cat"}, {"id": number, "name": "far"}]
        raw.one(raw.annotation(1, category_id=number), categories=categories)
        raw.error()
        labels = raw.values(categories="contiguous")["image/object/class/label"]
        assert labels == ((0,) if number < 0 else (1,))

    @pytest.mark.parametrize("number", [5, 3])
    def test_splits_share_one_list_of_categories(self, raw: Any, number: int) -> None:
        raw.one()
        raw.image_file("val2017/2.png")
        more = raw.dataset([raw.image(2)], categories=[{"id": number, "name": "bird"}])
        raw.put("annotations/instances_val2017.json", more)
        if number == 3:
            raw.error()  # it is a dog in the other split
        else:
            labels = raw.source().labels()["image/object/class/label"]
            assert labels == ["", "cat", "", "dog", "", "bird"]
        assert len(raw.made(splits=("train",))) == 1


class TestBadBoxes:
    def bad(self, raw: Any) -> None:
        raw.one(
            raw.annotation(1),
            raw.annotation(2, bbox=[10, 10, 0, 5]),
            raw.annotation(3, bbox=[90, 10, 50, 5]),
            raw.annotation(4),
        )

    def test_they_are_dropped_and_said(self, raw: Any) -> None:
        self.bad(raw)
        assert len(raw.values()["image/object/area"]) == 2
        (remark,) = raw.remarks()
        assert remark == (
            "train",
            "train2017/1.png",
            "SRC115",
            "the annotation 2 has the box [10, 10, 0, 5], which has no area; it was dropped; "
            "2 such",
            2,
        )

    def test_they_can_be_kept_as_they_are(self, raw: Any) -> None:
        self.bad(raw)
        found = raw.values(bad_boxes="keep")
        assert found["image/object/bbox/xmax"] == pytest.approx((0.4, 0.1, 1.4, 0.4))
        (remark,) = raw.remarks(bad_boxes="keep")
        assert (remark.code, remark.times) == ("SRC115", 2)
        assert "; it was kept" in remark.detail

    def test_their_image_can_be_skipped(self, raw: Any) -> None:
        self.bad(raw)
        assert raw.skipped(bad_boxes="skip-image").code == "SRC113 box"
        raw.error(bad_boxes="fail")

    @pytest.mark.parametrize("box", [None, [], [1, 2, 3]])
    def test_what_is_no_box_is_dropped(self, raw: Any, box) -> None:
        raw.one(raw.annotation(1), raw.annotation(2, bbox=box))
        assert len(raw.values()["image/object/area"]) == 1
        (remark,) = raw.remarks()
        assert (remark.code, remark.times) == ("SRC115", 1)

    def test_float_noise_is_clipped_and_counted(self, raw: Any) -> None:
        raw.one(
            raw.annotation(1, bbox=[60, 0, 40.01, 80]),
            raw.annotation(2, bbox=[-0.3, 0, 5, 5]),
            raw.annotation(3, bbox=[60, 0, 40, 80.0000000001]),
        )
        found = raw.values()
        assert found["image/object/bbox/xmax"][0] == 1
        assert found["image/object/bbox/xmin"][1] == 0
        (remark,) = raw.remarks()
        assert (remark.code, remark.times) == ("SRC116 clipped", 2)
        assert len(raw.values(clip=0.1)["image/object/area"]) == 2


POLYGON = [[10, 20, 40, 20, 40, 60, 10, 60]]
RLE = {"size": [80, 100], "counts": [820, *[40, 40] * 29, 40, 4820]}
"""The pixels of the polygon, column by column."""


def sides(raw: Any, **options: Any) -> list[tuple[float, ...]]:
    found = raw.values(**options)
    names = [f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax")]
    return [*zip(*(found[name] for name in names), strict=True)]


WRAPPED = {"size": [80, 100], "counts": [80, 0, 740, 100, 7080]}
"""An empty run, and one that begins in a column and ends in the next one."""
BOTH = (0.1, 0.25, 0.4, 0.75)


@pytest.mark.parametrize(
    ("shape", "around"), [(POLYGON, BOTH), (RLE, BOTH), (WRAPPED, (0.1, 0, 0.12, 1))]
)
@pytest.mark.parametrize("box", ["absent", None, [], [10, 20, 0, 5], [1] * 5])
def test_the_box_around_the_mask_takes_the_place_of_a_bad_box(
    raw: Any, shape: Any, around: Any, box: Any
) -> None:
    annotation = raw.annotation(5, bbox=box, segmentation=shape)
    if box == "absent":
        del annotation["bbox"]
    raw.one(annotation)
    assert sides(raw) == [pytest.approx(around)]
    assert raw.codes() == {"SRC115 value": 1}


def test_an_option_about_bad_boxes_comes_first(raw: Any) -> None:
    raw.one(raw.annotation(5, bbox=[90, 20, 30, 5], segmentation=POLYGON))
    assert sides(raw, bad_boxes="keep") == [pytest.approx((0.9, 0.25, 1.2, 0.3125))]
    assert raw.skipped(bad_boxes="skip-image").code == "SRC113 box"


@pytest.mark.parametrize("shape", [[[10, 20, 40, 20]], {"size": [80, 100], "counts": [8000]}, 7])
def test_a_segmentation_without_a_mask_gives_no_box(raw: Any, shape: Any) -> None:
    raw.one(raw.annotation(5, bbox=None, segmentation=shape), raw.annotation(6))
    assert len(sides(raw)) == 1
    assert raw.codes() == {"SRC115": 1}


def test_an_image_too_large_for_masks_is_skipped(raw: Any) -> None:
    pytest.importorskip("pycocotools.mask")
    raw.one(raw.annotation(1, segmentation=[TRIANGLE]))
    data = raw.dataset([raw.image(1, width=1 << 20, height=1 << 20)], [])
    raw.put("annotations/instances_train2017.json", data)
    assert raw.skipped(masks="png").code == "SRC113"


def test_boxes_are_measured_against_the_size_that_the_annotations_say(raw: Any) -> None:
    raw.image_file("train2017/1.png", 50, 40)
    data = raw.dataset([raw.image(1)], [raw.annotation(1)])
    raw.put("annotations/instances_train2017.json", data)
    found = raw.values()
    assert (found["image/height"], found["image/width"]) == ((40,), (50,))
    assert found["image/object/bbox/xmin"] == pytest.approx((0.1,))
    (remark,) = raw.remarks()
    assert remark.code == "SRC120"
    assert remark.detail == "50 × 40 pixels, but its annotations say 100 × 80"


@pytest.mark.parametrize("size", [None, 0, -5, 1 << 40, "absent"])
def test_without_a_size_in_the_annotations_the_image_says_it(raw: Any, size) -> None:
    raw.image_file("train2017/1.png", 50, 40)
    image = raw.image(1, width=size, height=size)
    if size == "absent":
        del image["width"], image["height"]
    one = raw.annotation(1, bbox=[5, 4, 5, 4])
    raw.put("annotations/instances_train2017.json", raw.dataset([image], [one]))
    assert raw.values()["image/object/bbox/xmin"] == pytest.approx((0.1,))
    assert raw.remarks() == []


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"masks": "polygons"},
        {"masks": "rle"},
        {"masks": "png"},
        {"tasks": ("instances", "keypoints", "captions")},
        {"tasks": ("captions",)},
        {"bad_boxes": "keep"},
        {"categories": "contiguous"},
    ],
    ids=str,
)
def test_examples_conform_to_the_schema_of_their_options(raw: Any, options) -> None:
    if options.get("masks") in ("rle", "png"):
        pytest.importorskip("pycocotools.mask")
    raw.several()
    path = raw.path / "annotations/instances_train2017.json"
    text = path.read_text().replace('"bbox": [10.0, ', '"bbox": [200.0, ', 1)
    path.write_text(text)
    schema = parse_schema(raw.source(**options).schema(), "s.pbtxt")
    check = Checker(compile_schema(schema))
    made = raw.made(**options)
    assert len(made) == 2
    for each in made.values():
        assert [problem.code.code for problem in check(each.example)] == []
    assert check.absent == {}


def test_raw_files_are_the_files_that_were_read_once_each(raw: Any) -> None:
    raw.several()
    raw.image_file("train2017/orphan.png")
    files = list(raw.source(tasks=("instances", "captions")).raw_files())
    assert sorted(file.path for file in files) == [
        "annotations/captions_train2017.json",
        "annotations/instances_train2017.json",
        "train2017/1.png",
        "train2017/2.png",
    ]
    for file in files:
        assert file.stored == file.decoded == (raw.path / file.path).stat().st_size


@pytest.mark.parametrize("masks", ["none", "polygons"])
def test_items_carry_their_annotations(raw: Any, masks: str) -> None:
    pictured = raw.annotation(2, bbox=None, segmentation=[TRIANGLE], caption="x")
    raw.one(raw.annotation(1, segmentation=[TRIANGLE]), pictured)
    expected = raw.values(masks=masks)
    source = raw.source(masks=masks)
    (item,) = source.items()
    worker = pickle.loads(pickle.dumps(source))
    (raw.path / "annotations/instances_train2017.json").unlink()
    made = worker.example(item).example
    assert {name: feature.values for name, feature in made.items()} == expected
    assert len(expected["image/object/area"]) == 2


class TestTasks:
    def of_both(self, raw: Any, **options: Any) -> list[dict[str, Any]]:
        made = raw.made(**options)
        return [
            {name: feature.values for name, feature in each.example.items()}
            for each in made.values()
        ]

    def test_instances_alone_are_the_default(self, raw: Any) -> None:
        raw.several()
        first, second = self.of_both(raw)
        assert first.keys() == second.keys() == raw.of_image | raw.of_objects
        assert first["image/object/area"] == (1, 2, 3)

    def test_keypoints_join_the_object_of_the_same_id_and_category(self, raw: Any) -> None:
        raw.several()
        first, second = self.of_both(raw, tasks=("instances", "keypoints", "captions"))
        assert first["image/object/area"] == (1, 2, 3, 33, 9)
        assert first["image/object/keypoint/num"] == (0, 1, 0, 2, 1)
        assert first["image/object/keypoint/x"] == pytest.approx(
            (0, 0, 0.5, 0, 0, 0, 0.1, 0.2, 1, 0)
        )
        assert first["image/object/keypoint/y"] == pytest.approx(
            (0, 0, 0.5, 0, 0, 0, 0.1, 0.2, 1, 0)
        )
        assert first["image/object/keypoint/visibility"] == (0, 0, 2, 0, 0, 0, 1, 2, 1, 0)
        assert first["image/caption"] == (b"a\nb", "é".encode())
        assert second["image/caption"] == second["image/object/keypoint/x"] == ()
        assert raw.source(tasks=("keypoints",)).labels()["image/object/keypoint"] == [
            "nose",
            "tail",
        ]

    def test_captions_alone_have_no_objects(self, raw: Any) -> None:
        raw.several()
        first, _ = self.of_both(raw, tasks=("captions",))
        assert first.keys() == raw.of_image | {"image/caption"}
        assert raw.source(tasks=("captions",)).labels() == {}

    def test_images_alone_need_no_annotations(self, raw: Any) -> None:
        raw.several()
        raw.put("annotations/image_info_train2017.json", {"images": [raw.image(1)]})
        (found,) = self.of_both(raw, tasks=("images",))
        assert found.keys() == raw.of_image

    def test_an_object_with_fewer_keypoints_is_filled_up(self, raw: Any) -> None:
        raw.several()
        raw.put(
            "annotations/person_keypoints_train2017.json",
            raw.dataset(
                [raw.image(1)],
                [raw.annotation(2, keypoints=[100, 80, 1]), raw.annotation(5, keypoints=[0] * 6)],
            ),
        )
        first, _ = self.of_both(raw, tasks=("instances", "keypoints"))
        assert first["image/object/keypoint/x"] == (0, 0, 1, 0, 0, 0, 0, 0)
        assert first["image/object/keypoint/num"] == (0, 1, 0, 0)

    @pytest.mark.parametrize("points", [[1, 2, 7], [1, 2], [1, 2, 1, 0]])
    def test_bad_keypoints_and_captions_are_left_out_and_said(
        self, raw: Any, points: list[int]
    ) -> None:
        raw.several()
        raw.put(
            "annotations/person_keypoints_train2017.json",
            raw.dataset([raw.image(1)], [raw.annotation(2, keypoints=points)]),
        )
        said = [{"id": 1, "image_id": 1, "caption": "fine"}]
        said += [{"id": 2, "image_id": 1, "caption": None}, {"id": 3, "image_id": 1}]
        raw.put("annotations/captions_train2017.json", raw.dataset([raw.image(1)], said))
        options = {"tasks": ("instances", "keypoints", "captions")}
        first, _ = self.of_both(raw, **options)
        assert first["image/caption"] == (b"fine",)
        assert set(first["image/object/keypoint/num"]) == {0}
        assert raw.codes(**options) == {"SRC115 keypoints": 1, "SRC115 value": 2}

    def test_stuff_is_objects_of_its_own(self, raw: Any) -> None:
        raw.several()
        raw.put(
            "annotations/stuff_train2017.json", raw.dataset([raw.image(1)], [raw.annotation(1)])
        )
        first, _ = self.of_both(raw, tasks=("instances", "stuff"))
        assert first["image/object/area"] == (1, 2, 3, 900.5)


def test_json_that_is_left_out_among_the_annotations_is_remarked(raw: Any) -> None:
    raw.one()
    raw.put("annotations/other_val.json", "version https://git-lfs.github.com/spec/v1\n")
    raw.put("annotations/results.json", [{"image_id": 1, "category_id": 1, "score": 0.5}])
    found = {each.key: each for each in raw.remarks() if each.code == "SRC015"}
    assert set(found) == {"annotations/other_val.json", "annotations/results.json"}
    assert {each.split for each in found.values()} == {"train"}
