"""Boxes: parts of the image, clipped by little, and refused where nothing can be made of them."""

from __future__ import annotations

import math
import struct
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.errors import StorageError
from tfrecreg_coco.annotations import BadAnnotation
from tfrecreg_coco.objects import Keypoints, fit_box, unclipped_box


def refusal(*bbox: float, clip: float = 1.0) -> str:
    with pytest.raises(BadAnnotation) as caught:
        fit_box(bbox, 100, 80, clip)
    return str(caught.value)


def test_a_box_is_parts_of_the_sides() -> None:
    assert fit_box([10, 20, 30, 40], 100, 80, 1) == (0.1, 0.25, 0.4, 0.75, False)
    assert fit_box([0, 0, 100, 80], 100, 80, 0) == (0, 0, 1, 1, False)


@pytest.mark.parametrize(
    ("bbox", "expected"),
    [
        ((-0.5, 0, 50, 80), (0, 0, 0.495, 1)),
        ((0, -1, 100, 41), (0, 0, 1, 0.5)),
        ((60, 0, 40.01, 80), (0.6, 0, 1, 1)),
        ((0, 40, 100, 41), (0, 0.5, 1, 1)),
        ((-1, -1, 102, 82), (0, 0, 1, 1)),
    ],
)
def test_what_sticks_out_a_little_is_cut_off_and_said(bbox, expected) -> None:
    box = fit_box(bbox, 100, 80, 1)
    assert box[:4] == pytest.approx(expected)
    assert box.clipped


def test_what_no_float32_can_tell_from_the_border_is_not_said() -> None:
    box = fit_box([60.000000001, 0, 40, 80], 100, 80, 1)
    assert box.xmax == 1
    assert not box.clipped


@pytest.mark.parametrize(
    ("bbox", "says"),
    [
        ((math.nan, 0, 1, 1), "which is not finite"),
        ((0, 0, math.inf, 1), "which is not finite"),
        ((1e308, 0, 1e308, 1), "which is not finite"),
        ((0, 0, 0, 1), "which has no area"),
        ((0, 0, 1, -5), "which has no area"),
        ((100, 0, 5, 5), "outside of the 100 × 80 pixels"),
        ((-5, 0, 5, 5), "outside of the 100 × 80 pixels"),
        ((0, 90, 5, 5), "outside of the 100 × 80 pixels"),
        ((50, 0, 60, 80), "sticks out of the 100 × 80 pixels by 10"),
        ((-2.5, 0, 60, 80), "sticks out of the 100 × 80 pixels by 2.5"),
        ((1, 2, 3), "has a box of 3 numbers, not 4"),
        ((), "has no box"),
    ],
)
def test_a_bad_box_is_refused_with_the_reason(bbox, says) -> None:
    assert says in refusal(*bbox)


def test_how_much_is_a_little_can_be_said() -> None:
    assert "sticks out" in refusal(0, 0, 100.5, 80, clip=0)
    assert fit_box([50, 0, 60, 80], 100, 80, 10).xmax == 1


@pytest.mark.parametrize("bbox", [[50, 0, 1e-9, 80], [0, 40, 100, 1e-9], [-0.5, 79, 101, 1e-7]])
def test_a_box_whose_area_float32_cannot_hold_is_refused(bbox: list[float]) -> None:
    assert refusal(*bbox).endswith(", which has no area as float32")
    assert fit_box([0, 0, 1e-9, 1e-9], 100, 80, 0).xmax > 0


def test_a_missing_box_is_refused() -> None:
    with pytest.raises(BadAnnotation, match="has no box"):
        fit_box(None, 100, 80, 1)


numbers = st.floats(width=64) | st.floats(-200, 200)


def fits(bbox: list[float], width: int, height: int, clip: int) -> bool:
    """Whether a box has an area in an image, and sticks out of it by `clip` pixels at most."""
    if len(bbox) != 4 or not all(map(math.isfinite, bbox)):
        return False
    return all(
        -clip <= low < high <= side + clip
        and np.float32(max(low, 0) / side) < np.float32(min(high, side) / side)
        for low, high, side in (
            (bbox[0], bbox[0] + bbox[2], width),
            (bbox[1], bbox[1] + bbox[3], height),
        )
    )


sides = st.integers(1, 200) | st.integers(1, 1 << 16)


@given(
    st.lists(numbers, max_size=5)
    | st.tuples(*[st.floats(-2, 150)] * 2, *[st.floats(-1, 160)] * 2).map(list),
    sides,
    sides,
)
@settings(max_examples=300)
def test_what_is_written_is_from_0_to_1_and_has_an_area(bbox, width, height) -> None:
    if not fits(bbox, width, height, 1):
        with pytest.raises(BadAnnotation):
            fit_box(bbox, width, height, 1)
        return
    box = fit_box(bbox, width, height, 1)
    for low, high in ((box.xmin, box.xmax), (box.ymin, box.ymax)):
        assert 0 <= low < high <= 1
    packed = struct.unpack("<4f", struct.pack("<4f", *box[:4]))
    assert all(0 <= value <= 1 for value in packed)


@given(st.lists(numbers, min_size=4, max_size=4))
def test_a_box_that_is_kept_fits_into_float32(bbox) -> None:
    box = unclipped_box(bbox, 3, 7)
    assert box is not None
    struct.pack("<4f", *box[:4])


def test_a_box_that_is_kept_is_as_it_was() -> None:
    assert unclipped_box([50, -8, 100, 0], 100, 80) == (0.5, -0.1, 1.5, -0.1, False)
    assert unclipped_box([1, 2, 3], 100, 80) is None
    assert unclipped_box(None, 100, 80) is None
    left, right = (unclipped_box([0, 0, wide, 1], 1, 1) for wide in (1e300, -1e300))
    assert (left.xmax, right.xmax) == (math.inf, -math.inf)


def test_the_order_of_the_sides_is_kept() -> None:
    boxes = [fit_box([left, 0, 10, 10], 100, 80, 1) for left in range(0, 90, 7)]
    assert all(one.xmin < two.xmin for one, two in pairwise(boxes))


def feature(points: Keypoints, name: str) -> list[float]:
    return list(points.features()[f"image/object/keypoint/{name}"].values)


def test_keypoints_are_parts_of_the_sides_and_as_many_an_object() -> None:
    points = Keypoints(2, 100, 80)
    points.add()
    points.add()
    points.set(1, [50, 40, 2, 0, 0, 0])
    assert feature(points, "x") == [0, 0, 0.5, 0]
    assert feature(points, "y") == [0, 0, 0.5, 0]
    assert feature(points, "visibility") == [0, 0, 2, 0]
    assert feature(points, "num") == [0, 1]


def test_an_object_with_fewer_keypoints_is_filled_up() -> None:
    points = Keypoints(3, 100, 80)
    points.add()
    points.set(0, [100, 80, 1])
    assert feature(points, "x") == [1, 0, 0]
    assert feature(points, "num") == [1]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1, 2], "2 numbers, expected 3 for each of 2"),
        ([1, 2, 1] * 3, "9 numbers, expected 3 for each of 2"),
        ([math.nan, 2, 1], "not finite"),
        ([1e300, 2, 1], "not finite"),
        ([1, 2, 3], "a visibility is none of 0, 1 and 2"),
        ([1, 2, 0.5], "a visibility is none of 0, 1 and 2"),
    ],
)
def test_bad_keypoints_leave_the_object_without(values, says) -> None:
    points = Keypoints(2, 100, 80)
    points.add()
    with pytest.raises(BadAnnotation, match=says):
        points.set(0, values)
    assert (feature(points, "x"), feature(points, "visibility"), feature(points, "num")) == (
        [0, 0],
        [0, 0],
        [0],
    )


class TestPanoptic:
    def panoptic(self, raw: Any, **more: Any) -> None:
        raw.image_file("train2017/1.png")
        png = raw.png(100, 80, b"\x05\x01\x00" * 8000, colour=2)
        raw.put("annotations/panoptic_train2017/1.png", png)
        categories = [
            {"id": 1, "name": "cat", "isthing": 1},
            {"id": 3, "name": "sky", "isthing": 0},
        ]
        segment = {"id": 261, "category_id": 3, "bbox": raw.box, "area": 8000, "iscrowd": 0}
        annotation = {"image_id": 1, "file_name": "1.png", "segments_info": [segment], **more}
        data = raw.dataset([raw.image(1)], [annotation], categories=categories)
        raw.put("annotations/panoptic_train2017.json", data)

    def test_segments_are_listed_and_their_png_goes_in_as_it_is(self, raw: Any) -> None:
        self.panoptic(raw)
        found = raw.values()
        data = (raw.path / "annotations/panoptic_train2017/1.png").read_bytes()
        prefix = "image/panoptic/segment"
        assert found["image/panoptic/encoded"] == (data,)
        assert found[f"{prefix}/id"] == (261,)
        assert found[f"{prefix}/class/label"] == (3,)
        assert found[f"{prefix}/class/text"] == (b"sky",)
        assert found[f"{prefix}/is_thing"] == found[f"{prefix}/is_crowd"] == (0,)
        assert found[f"{prefix}/area"] == (8000,)
        assert found[f"{prefix}/bbox/xmin"] == pytest.approx((0.1,))
        assert not any(name.startswith("image/object") for name in found)
        assert raw.source().labels() == {f"{prefix}/class/label": ["", "cat", "", "sky"]}

    def test_an_image_without_segments_is_kept(self, raw: Any) -> None:
        self.panoptic(raw)
        raw.image_file("train2017/2.png")
        data = raw.dataset([raw.image(2)], [])
        raw.put("annotations/panoptic_train2017.json", data)
        assert raw.values()["image/panoptic/encoded"] == ()

    @pytest.mark.parametrize(
        ("file", "says"),
        [
            (b"", "the PNG of its segments: the file has no bytes"),
            (b"\xff\xd8\xff", "the PNG of its segments: "),
            (b"GIF89a\x64\0\x50\0\x80\0\0", "painted in a gif, not a PNG"),
            ("other size", "has 80 × 100 pixels, expected 100 × 80"),
            ("none", "the PNG of its segments: there is no file"),
        ],
    )
    def test_a_png_that_does_not_fit_skips_the_image(self, raw: Any, file, says) -> None:
        self.panoptic(raw)
        path = raw.path / "annotations/panoptic_train2017/1.png"
        if file == "none":
            path.rename(path.with_name("2.png"))
            message, _ = raw.refusal()
            assert "none of the first 1 PNGs of the split `train` was found" in message
            assert says in raw.skipped(segments=("annotations/panoptic_train2017",)).detail
            return
        path.write_bytes(raw.png(80, 100) if isinstance(file, str) else file)
        skipped = raw.skipped()
        assert skipped.code == "SRC031"
        assert says in skipped.detail

    @pytest.mark.parametrize(
        ("file", "feature"),
        [
            ("train2017/1.png", "image/encoded"),
            ("annotations/panoptic_train2017/1.png", "image/panoptic/encoded"),
        ],
    )
    def test_a_file_is_read_up_to_the_limit_of_images(
        self, raw: Any, monkeypatch: pytest.MonkeyPatch, file: str, feature: str
    ) -> None:
        self.panoptic(raw)
        path = raw.path / file
        size = 1000
        monkeypatch.setattr("tfrecreg_coco.source.MAX_IMAGE_BYTES", size)
        path.write_bytes(path.read_bytes().ljust(size, b"\0"))
        assert raw.values()[feature] == (path.read_bytes(),)
        with path.open("ab") as more:
            more.write(b"\0")
        with pytest.raises(StorageError, match=f"{size + 1} bytes, more than the {size} that are"):
            raw.values()

    @pytest.mark.parametrize(
        ("more", "says"),
        [
            ({"segments_info": [{"id": -1, "category_id": 1}]}, "a segment has the id -1"),
            ({"segments_info": [{"category_id": 1}]}, "a segment has the id None"),
            ({"segments_info": [5]}, "a segment has the id None"),
            ({"segments_info": None}, "has no list of segments"),
            ({"file_name": "../1.png"}, "has a part `..`"),
            ({"file_name": None}, "has no `file_name`"),
        ],
    )
    def test_segments_that_cannot_be_used_skip_the_image(self, raw: Any, more, says) -> None:
        self.panoptic(raw, **more)
        skipped = raw.skipped()
        assert skipped.code == "SRC031"
        assert says in skipped.detail

    def test_two_panoptic_annotations_skip_the_image(self, raw: Any) -> None:
        self.panoptic(raw)
        one = {"image_id": 1, "file_name": "1.png", "segments_info": []}
        raw.put("annotations/panoptic_train2017.json", raw.dataset([raw.image(1)], [one, one]))
        assert raw.skipped().detail == "it has 2 panoptic annotations, not one"

    def test_a_segment_without_category_follows_the_option(self, raw: Any) -> None:
        segment = {"id": 1, "category_id": 77, "bbox": raw.box, "area": 1}
        self.panoptic(raw, segments_info=[segment])
        message, hint = raw.refusal()
        assert message == (
            "`train2017/1.png`: the segment 1 refers to a category that is not listed: 77"
        )
        assert "dangling=drop" in hint
        assert raw.values(dangling="drop")["image/panoptic/segment/id"] == ()
        assert [each.code for each in raw.remarks(dangling="drop")] == ["SRC025"]
