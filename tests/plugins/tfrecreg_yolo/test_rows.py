"""Rows of label files: what they are, and what is said of those that are none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tfrecreg.core.build.sources.interface import Item

SIDES = ("bbox/xmin", "bbox/ymin", "bbox/xmax", "bbox/ymax")


def box(raw: Any, **options: Any) -> list[float]:
    return [value for side in raw.objects(*SIDES, **options).values() for value in side]


def test_a_box_is_its_centre_and_its_sides(raw: Any) -> None:
    raw.one("1 0.5 0.5 0.2 0.5\n")
    assert box(raw) == pytest.approx([0.4, 0.25, 0.6, 0.75])
    found = raw.objects("class/label", "class/text", "is_crowd", "area")
    assert found == {
        "class/label": (1,),
        "class/text": (b"dog",),
        "is_crowd": (0,),
        "area": (pytest.approx(800),),
    }
    assert raw.remarks() == []


@pytest.mark.parametrize(
    "text",
    [
        b"0 0.5 0.5 0.2 0.5",
        b"0 0.5 0.5 0.2 0.5\r\n",
        b"\xef\xbb\xbf0 0.5 0.5 0.2 0.5\n\n",
        b"\n  0\t0.5 0.5  0.2 0.5   \n   \n",
        b"0.0 .5 5e-1 0.2 0.5\r",
        b"0 0.5 0.5 0.2 0.5\r\n\x0c\r\n",
    ],
)
def test_ends_of_lines_blanks_and_marks_do_not_matter(raw: Any, text: bytes) -> None:
    raw.one(text)
    assert box(raw) == pytest.approx([0.4, 0.25, 0.6, 0.75])
    assert raw.remarks() == []


@pytest.mark.parametrize("text", [b"", b"\n", b"\xef\xbb\xbf", b"\r\n \r\n"])
def test_an_empty_file_is_an_image_without_objects(raw: Any, text: bytes) -> None:
    raw.one(text)
    assert box(raw) == []
    assert raw.remarks() == []


@pytest.mark.parametrize("options", [{}, {"task": "detect"}])
@pytest.mark.parametrize(
    "text", [bytes(40), "0 0.5 0.5 0.2 0.5\n".encode("utf-16")], ids=["zeros", "utf-16"]
)
def test_a_file_that_is_no_plain_text_skips_its_image(raw: Any, text: bytes, options: Any) -> None:
    raw.one(text)
    assert raw.skipped(**options).code == "SRC110"


@pytest.mark.parametrize(
    "row",
    [
        *("0 0.5 0.5 0.2", "0 0.5 0.5 0.2 0.5 0.9", "0,0.5,0.5,0.2,0.5", "0 \x1b[31m 0.5 0.2 0.5"),
        *("cat 0.5 0.5 0.2 0.5", "0.5 0.5 0.5 0.2 0.5"),
        *("nan 0.5 0.5 0.2 0.5", "1e300 0.5 0.5 0.2 0.5"),
        *("1_0 .5 .5 .2 .2", "1 .5 .5 .2 .2_0"),
    ],
)
def test_a_row_that_is_none_is_left_out(raw: Any, row: str) -> None:
    raw.one(f"0 0.5 0.5 0.2 0.5\n{row}\n")
    assert len(box(raw, task="detect")) == 4
    (remark,) = raw.remarks(task="detect")
    assert (remark.code, remark.times) == ("SRC115 object", 1)
    assert remark.detail.startswith("the row 2 of `labels/train/a.txt` ")
    assert remark.detail.isprintable()
    assert raw.skipped(task="detect", bad_boxes="skip-image").code == "SRC113"
    raw.error(task="detect", bad_boxes="fail")


@pytest.mark.parametrize(
    "row",
    [
        *("0 nan 0.5 0.2 0.5", "0 0.5 0.5 inf 0.5", "0 0.5 0.5 0 0.5", "0 0.5 0.5 -0.2 0.5"),
        *("0 50 40 20 40", "0 0.98 0.5 0.2 0.5"),
    ],
)
def test_a_bad_box_is_one_as_in_coco(raw: Any, row: str) -> None:
    raw.one(row)
    assert box(raw) == []
    (remark,) = raw.remarks()
    assert remark.code == "SRC115"
    assert remark.detail.startswith("the row 1 of `labels/train/a.txt` has the box [")
    assert raw.skipped(bad_boxes="skip-image").code == "SRC113 box"
    raw.error(bad_boxes="fail")
    assert len(box(raw, bad_boxes="keep")) == 4


def test_a_box_that_is_rounded_over_the_border_is_clipped(raw: Any) -> None:
    raw.one("0 0.333333 0.5 0.666667 1\n")
    assert box(raw)[0] == 0
    raw.one("0 0.333 0.5 0.667 1\n")
    assert box(raw)[0] == 0
    assert raw.codes() == {"SRC116 clipped": 1}


@pytest.mark.parametrize("category", [2, -1])
def test_a_class_that_is_not_listed_is_refused(raw: Any, category: int) -> None:
    raw.one(f"{category} 0.5 0.5 0.2 0.5\n0 0.5 0.5 0.2 0.5")
    raw.error()
    assert len(box(raw, dangling="drop")) == 4
    assert raw.codes(dangling="drop") == {"SRC115 category": 1}


def test_a_row_twice_is_written_twice_and_said(raw: Any) -> None:
    raw.one("0 0.5 0.5 0.2 0.5\n1 0.5 0.5 0.2 0.5\n0 0.5 0.5 0.2 0.5 \n0 0.5 0.5 0.2 0.5\r\n")
    assert raw.objects("class/label") == {"class/label": (0, 1, 0, 0)}
    (remark,) = raw.remarks()
    assert (remark.code, remark.times) == ("SRC116", 2)
    assert remark.detail == "the row 3 of `labels/train/a.txt` repeats the row 1; 2 such"


class TestPolygons:
    TRIANGLE = "0 0.1 0.25 0.5 0.25 0.3 0.75\n"

    def shapes(self, raw: Any, **options: Any) -> dict[str, tuple[Any, ...]]:
        names = ("polygon/x", "polygon/y", "polygon/points", "polygon/parts", "area")
        return raw.objects(*names, **options)

    def test_a_polygon_has_the_box_around_it(self, raw: Any) -> None:
        raw.one(self.TRIANGLE)
        assert box(raw) == pytest.approx([0.1, 0.25, 0.5, 0.75])
        assert self.shapes(raw) == {
            "polygon/x": pytest.approx((0.1, 0.5, 0.3)),
            "polygon/y": pytest.approx((0.25, 0.25, 0.75)),
            "polygon/points": (3,),
            "polygon/parts": (1,),
            "area": (pytest.approx(1600),),
        }

    def test_a_box_among_polygons_has_none(self, raw: Any) -> None:
        raw.one(self.TRIANGLE + "1 0.5 0.5 0.2 0.5\n")
        assert self.shapes(raw)["polygon/parts"] == (1, 0)
        assert raw.codes() == {"SRC115 mask": 1}

    def test_a_polygon_that_is_not_finite_has_no_box(self, raw: Any) -> None:
        raw.one(self.TRIANGLE + "0 nan 0.25 0.5 0.25 0.3 0.75\n")
        assert raw.codes() == {"SRC115": 1}
        assert self.shapes(raw, bad_boxes="keep")["polygon/parts"] == (1, 0)

    def test_four_points_may_be_an_oriented_box(self, raw: Any) -> None:
        raw.one("0 0.1 0.25 0.5 0.25 0.5 0.75 0.1 0.75\n")
        raw.error()
        assert self.shapes(raw, task="obb") == self.shapes(raw, task="segment")

    def test_an_oriented_box_has_four_points(self, raw: Any) -> None:
        raw.one("0 0.1 0.5 0.5 0.25 0.9 0.5 0.5 0.75\n0 0.5 0.5 0.2 0.5\n")
        assert self.shapes(raw, task="obb")["polygon/points"] == (4,)
        assert raw.codes(task="obb") == {"SRC115 object": 1}


class TestKeypoints:
    NAMES = ("keypoint/x", "keypoint/y", "keypoint/visibility", "keypoint/num")

    def test_they_are_shares_with_a_visibility(self, raw: Any) -> None:
        row = "0 0.5 0.5 0.2 0.5 0.4 0.5 2 0 0 0\n"
        raw.one(row, yaml="kpt_shape: [2, 3]\n")
        assert raw.objects(*self.NAMES) == {
            "keypoint/x": (pytest.approx(0.4), 0),
            "keypoint/y": (0.5, 0),
            "keypoint/visibility": (2, 0),
            "keypoint/num": (1,),
        }
        raw.one(row)
        assert raw.objects("keypoint/num", kpt_shape=(2, 3)) == {"keypoint/num": (1,)}

    def test_without_a_visibility_the_origin_is_not_labelled(self, raw: Any) -> None:
        row = "0 0.5 0.5 0.2 0.5 0.4 0.5 0 0 -0.1 -0.1\n"
        raw.one(row, yaml="kpt_shape: [3, 2]\n")
        assert raw.objects("keypoint/visibility") == {"keypoint/visibility": (2, 0, 0)}

    @pytest.mark.parametrize("point", ["0.4 0.5 3", "0.4 0.5 0.5", "nan 0.5 2", "1e300 0.5 1"])
    def test_bad_ones_leave_the_object_without(self, raw: Any, point: str) -> None:
        raw.one(f"0 0.5 0.5 0.2 0.5 {point}\n", yaml="kpt_shape: [1, 3]\n")
        assert raw.objects(*self.NAMES) == {
            "keypoint/x": (0,),
            "keypoint/y": (0,),
            "keypoint/visibility": (0,),
            "keypoint/num": (0,),
        }
        assert raw.codes() == {"SRC115 keypoints": 1}

    def test_their_names_are_a_label_map(self, raw: Any) -> None:
        names = "kpt_names:\n  0: [nose, tail]\n  1: [nose, tail]\n"
        raw.one("", yaml=f"kpt_shape: [2, 3]\n{names}")
        assert raw.source().labels()["image/object/keypoint"] == ("nose", "tail")


NUMBERS = ["0", "1", "2", "1.0", "-0", "0.5", ".5", "5e-1", "0.2", "0.25", "0.999", "1.2", "-1"]
WORDS = st.sampled_from([*NUMBERS, "nan", "inf", "1e999", "x", "0x1", "\0", "é"])
LINES = st.one_of(
    st.lists(WORDS, max_size=7).map(" ".join),
    st.tuples(*[st.sampled_from(["0", "1", "0.5", "0.25", "0.2"])] * 5).map(" \t".join),
    st.sampled_from(["0 0.5 0.5 0.2 0.5", "1 0.5 0.5 0.2 0.5 ", "", "\v0 0.5 0.5 0.2 0.5\f"]),
)
TEXTS = st.tuples(st.sampled_from(["", "\ufeff"]), st.lists(LINES, max_size=5)).flatmap(
    lambda parts: st.sampled_from(["\n", "\r\n", "\r"]).map(
        lambda end: (parts[0] + end.join(parts[1])).encode()
    )
)


@pytest.mark.medium
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS)
@example(text=b"0 0.5 0.5 0.2 0.5\n1 0.25 0.25 0.2 0.2")
@example(text=b"0 0.5 0.5 0.2 0.5\n0  0.5 0.5 0.2 0.5")
@example(text=b"0.5 0.5 0.5 0.2 0.5\n0 0.5 0.5 0.2")
def test_plain_rows_give_what_rows_one_by_one_give(
    raw: Any, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    raw.one(text)
    made = []
    for one_by_one in (False, True):
        with monkeypatch.context() as patch:
            if one_by_one:
                patch.setattr("tfrecreg_yolo.source.plain_rows", lambda *_: None)
            source = raw.source(task="detect", dangling="drop")
            (item,) = [each for each in source.items() if isinstance(each, Item)]
            made.append(source.example(item))
    assert made[0] == made[1]


@pytest.mark.parametrize("options", [{}, {"task": "detect"}])
def test_rows_of_boxes_in_most_files_and_of_polygons_in_some(raw: Any, options: Any) -> None:
    raw.put("data.yaml", "names: [cat, dog]\n")
    for number in range(30):
        rows = "1 0.1 0.1 0.4 0.1 0.4 0.4 0.2 0.5\n1 0.1 0.1 0.4 0.1 0.2 0.5\n"
        raw.images(f"images/{number:02}.png")
        raw.put(f"labels/{number:02}.txt", rows if number == 29 else "0 0.5 0.5 0.2 0.5\n")
    made = raw.made(**options)
    features = {name: each.values for name, each in made["images/29.png"].example.items()}
    assert features["image/object/class/label"] == (1, 1)
    assert features["image/object/bbox/xmin"] == pytest.approx((0.1, 0.1))
    assert features["image/object/bbox/ymax"] == pytest.approx((0.5, 0.5))
    assert sum(len(each.example["image/object/area"].values) for each in made.values()) == 31
