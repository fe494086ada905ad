"""What is drawn over the image of a record, and its SVG."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hostile_support import NAMES
from PIL import Image

from tfrecreg.core.example.values import to_example
from tfrecreg.core.images.drawing import (
    COLORS,
    ClassMark,
    Drawing,
    DrawnObject,
    Strip,
    class_color,
    draw_over,
    drawing_of,
    marks_of,
    overlay,
)
from tfrecreg.core.values.text import safe

LABEL = "image/object/class/label"


def floats(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def boxes(*sides: tuple[float, float, float, float]) -> dict[str, object]:
    """Features of boxes by their left, right, top and bottom sides."""
    names = ("xmin", "xmax", "ymin", "ymax")
    columns = zip(*sides, strict=True)
    return {
        f"image/object/bbox/{name}": floats(*each)
        for name, each in zip(names, columns, strict=True)
    }


def drawn(
    values: dict[str, object], labels: dict[str, list[str]] | None = None
) -> tuple[DrawnObject, ...]:
    return drawing_of(to_example(values), labels or {}).objects


def test_boxes_are_clipped_and_have_the_classes_of_their_objects() -> None:
    record = {
        **boxes((0.25, 0.5, 0.0, 0.5), (-1.0, 2.0, float("nan"), 1.0)),
        "image/object/class/text": ["cat", "dog"],
    }
    first, second = drawn(record)
    assert first.box == Strip(0.25, 0.0, 0.25, 0.5)
    assert second.box == Strip(0.0, 0.0, 1.0, 1.0)
    assert first.mark == ClassMark("cat", class_color("cat"))
    assert second.mark == ClassMark("dog", class_color("dog"))
    assert drawn({**record, "image/object/bbox/xmin": floats(0.25)}) == ()


def test_keypoints_and_polygons_belong_to_their_objects() -> None:
    record = {
        LABEL: [1, 2],
        "image/object/keypoint/x": floats(0.5, 0.1, 0.2, 0.3),
        "image/object/keypoint/y": floats(0.5, 0.1, 0.2, 2.0),
        "image/object/keypoint/visibility": [2, 0, 1, 2],
        "image/object/polygon/x": floats(0.0, 0.5, 1.5, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
        "image/object/polygon/y": floats(0.0, 0.5, 1.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
        "image/object/polygon/points": [3, 3, 3],
        "image/object/polygon/parts": [1, 2],
    }
    first, second = drawn(record)
    assert first.points == ((0.5, 0.5),)
    assert np.array(second.points) == pytest.approx(np.array([(0.2, 0.2), (0.3, 1.0)]))
    assert first.polygons == (((0.0, 0.0), (0.5, 0.5), (1.0, 1.0)),)
    assert [len(each) for each in second.polygons] == [3, 3]


def test_a_record_has_its_class_or_those_of_its_objects() -> None:
    names = {"image/class/label": ["cat", "dog"]}
    assert marks_of(to_example({"image/class/label": 1}), names) == (ClassMark("dog", 1),)
    assert marks_of(to_example({"image/class/label": 7, "image/class/text": "x"}), {}) == (
        ClassMark("x", 7),
    )
    objects = to_example({LABEL: [1, 3, 3]})
    assert marks_of(objects, {}) == (ClassMark("3", 3, 2), ClassMark("1", 1, 1))
    assert marks_of(to_example({"x": 1}), {}) == ()


def test_what_is_drawn_is_bounded() -> None:
    many = [(0.0, 1.0, 0.0, 1.0)] * 5000
    drawing = drawing_of(to_example({**boxes(*many), LABEL: [1] * 5000}), {})
    assert (len(drawing.objects), drawing.more) == (60, 4940)
    assert len(overlay(drawing)) < 30_000
    points = {f"image/object/keypoint/{side}": floats(*[0.5] * 5000) for side in "xy"}
    assert sum(len(each.points) for each in drawn(points)) == 400


def test_the_svg_has_a_group_for_each_class_and_a_name_for_each_box() -> None:
    record = {
        **boxes((0.1, 0.3, 0.2, 0.4), (0.5, 0.6, 0.5, 0.6), (0.7, 0.9, 0.99, 1.0)),
        LABEL: [1, 1, 2],
    }
    svg = ElementTree.fromstring(overlay(drawing_of(to_example(record), {})))
    groups = {each.attrib["data-name"]: each for each in svg.iter("g")}
    assert list(groups) == ["1", "2"]
    colors = [each.attrib["stroke"] for each in groups["1"].iter("path")]
    assert colors[1:] == [COLORS[1]]
    lines = {each.attrib["d"] for each in groups["1"].iter("path")}
    assert lines == {"M100 200h200v200H100zM500 500h100v100H500z"}
    names = [(each.text, each.attrib["x"], each.attrib["y"]) for each in svg.iter("text")]
    assert names == [("1", "10%", "20%"), ("1", "50%", "50%"), ("2", "90%", "94%")]
    assert [each.attrib["text-anchor"] for each in svg.iter("text")] == ["start", "start", "end"]
    assert overlay(Drawing()) == ""


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_hostile_class_stays_a_name(name: str) -> None:
    mark = ClassMark(safe(name), 1)
    box = DrawnObject(mark=mark, box=Strip(0, 0, 1, 1), points=((0.5, 0.5),))
    svg = ElementTree.fromstring(overlay(Drawing(objects=(box,))))
    assert [each.tag for each in svg.iter()] == [
        *("svg", "svg", "g", "title", "path", "path", "path", "path"),
        *(["text"] if mark.name else []),
    ]
    assert {each.attrib["data-name"] for each in svg.iter("g")} == {mark.name}


class TestMasks:
    """Run lengths and images as masks."""

    SIZE = (40, 80)
    """Height and width."""

    def covered(self, masks: dict[str, object]) -> np.ndarray[Any, Any]:
        """What the strips cover, at the size of the image."""
        height, width = self.SIZE
        covered = np.zeros(self.SIZE, np.bool_)
        for strip in (strip for each in drawn(masks) for strip in each.strips):
            top, left = round(strip.top * height), round(strip.left * width)
            bottom = top + round(strip.height * height)
            covered[top:bottom, left : left + round(strip.width * width)] = True
        return covered

    def mask(self) -> np.ndarray[Any, Any]:
        """A block of whole columns and a part of others, on lines that are drawn."""
        mask = np.zeros(self.SIZE, np.uint8)
        mask[10:30, 20:40] = 1
        mask[:, 50:60] = 1
        mask[0, 60:62] = 1  # the run before it ends here
        return mask

    def test_run_lengths_are_drawn(self) -> None:
        coder = pytest.importorskip("pycocotools.mask", reason="the extra `coco` is not installed")
        counts = coder.encode(np.asfortranarray(self.mask()))["counts"]
        masks: dict[str, object] = {
            "image/object/rle/counts": [b"\xff", counts],
            "image/object/rle/size": [40, 80] * 2,
        }
        assert (self.covered(masks) == self.mask().astype(np.bool_)).all()
        first, second = drawn(masks)
        assert first.strips == ()
        assert second.strips[0] == Strip(20 / 80, 10 / 40, 2 / 80, 20 / 40)
        assert 'd="M250 250h25v500H250z' in overlay(Drawing(objects=(second,)))

    @pytest.mark.parametrize("value", [1, 255])
    def test_images_are_drawn(self, value: int) -> None:
        images = [b"no image", png(np.zeros((40, 80, 3), np.uint8)), png(self.mask() * value)]
        masks: dict[str, object] = {"image/object/mask": images}
        assert (self.covered(masks) == self.mask().astype(np.bool_)).all()
        assert [bool(each.strips) for each in drawn(masks)] == [False, False, True]

    @pytest.mark.parametrize(
        ("counts", "size"),
        [
            (b"", [40, 80]),
            (b"0", [40, 80]),
            (b"00000000", [0, 80]),
            (b"01", [-40, -80]),
            (b"0oooooooo1", [40, 80]),  # a number of too many digits
            (b"0`1", [1, 1]),  # beyond the end
            (b"0N", [40, 80]),  # less than nothing
            (b"01", [40]),
        ],
    )
    def test_what_covers_nothing_is_not_drawn(self, counts: bytes, size: list[int]) -> None:
        masks: dict[str, object] = {
            "image/object/rle/counts": [counts],
            "image/object/rle/size": size,
        }
        assert not self.covered(masks).any()
        assert "fill-opacity" not in overlay(drawing_of(to_example(masks), {}))


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    out = BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def test_a_notebook_draws_over_the_first_image() -> None:
    record = to_example({**boxes((0, 1, 0, 1)), LABEL: [3]})
    first, second = draw_over(record, ["<img>", "<img>"])
    assert first.startswith('<div style="position:relative')
    assert overlay(drawing_of(record, {})) in first
    assert second == "<img>"
    assert list(draw_over(None, ["<img>"])) == list(draw_over(to_example({"x": 1}), ["<img>"]))
