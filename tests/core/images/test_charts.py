"""Charts as SVG: where bars and points are, and the texts beside them."""

from __future__ import annotations

from xml.etree import ElementTree

from markupsafe import Markup

from tfrecreg.core.images.svg import Bars, Histogram, Scatter

Numbers = tuple[float, ...]


def places(chart: Markup, name: str, *attributes: str) -> list[tuple[Numbers, str]]:
    """Attributes and text of each element of this name, from `rect` or `text.number`."""
    tag, _, style = name.partition(".")
    return [
        (tuple(float(each.attrib[key]) for key in attributes), "".join(each.itertext()))
        for each in ElementTree.fromstring(chart).iter(tag)
        if not style or each.attrib["class"] == style
    ]


def test_bars_stand_in_rows_between_their_labels_and_numbers() -> None:
    series = (("test", (1000, 0)), ("train", (4000, 1)))
    bars = Bars(heading="Classes", unit="values", labels=("cat", "dog"), series=series)
    chart = bars.svg()
    assert places(chart, "text.label", "x", "y") == [((142, 14), "cat"), ((142, 54), "dog")]
    assert [place for place, _ in places(chart, "rect", "x", "y", "width", "height")] == [
        (150, 3, 66, 14),
        (150, 23, 264, 14),
        (150, 43, 0, 14),
        (150, 63, 0.5, 14),
    ]
    assert places(chart, "text.number", "x", "y") == [
        ((222, 14), "1,000"),
        ((420, 34), "4,000"),
        ((156, 54), "0"),
        ((156.1, 74), "1"),
    ]
    assert [text for _, text in places(chart, "title")] == [
        "cat, test: 1,000",
        "cat, train: 4,000",
        "dog, test: 0",
        "dog, train: 1",
    ]
    root = ElementTree.fromstring(chart)
    assert (root.attrib["viewBox"], root.attrib["aria-label"]) == ("0 0 480 84", "Classes")
    assert [each.attrib["class"] for each in root.iter("rect")] == ["s0", "s1"] * 2


def test_points_stand_on_logarithmic_axes_whose_ticks_are_below_and_beside() -> None:
    chart = Scatter(heading="Sizes", points=((10, 20, 4), (40, 20, 1), (40, 80, 2))).svg()
    assert places(chart, "circle", "cx", "cy", "r") == [
        ((44, 216, 12), "10 × 20 pixels: 4"),
        ((436, 216, 7.5), "40 × 20 pixels: 1"),
        ((436, 44, 9.4), "40 × 80 pixels: 2"),
    ]
    assert places(chart, "text.number", "x", "y") == [
        ((44, 240), "10"),
        ((176.9, 240), "16"),
        ((372.9, 240), "32"),
        ((436, 240), "40"),
        ((30, 220), "20"),
        ((30, 161.7), "32"),
        ((30, 75.7), "64"),
        ((30, 48), "80"),
        ((436, 256), "width in pixels"),
        ((4, 14), "height in pixels"),
    ]
    root = ElementTree.fromstring(chart)
    assert root.attrib["viewBox"] == "0 0 480 260"
    assert [each.attrib["d"] for each in root.iter("path")] == ["M44 216H436M44 216V44"]


def test_columns_stand_side_by_side_and_say_what_they_count() -> None:
    columns = (("0", 64), ("1 to 2", 0), ("3", 1))
    chart = Histogram(heading="x", columns=columns, ends=("0", "3")).svg()
    assert places(chart, "rect", "x", "y", "width", "height") == [
        ((0, 0, 79, 64), ""),
        ((80, 64, 79, 0), ""),
        ((160, 63, 79, 1), ""),
    ]
    assert [text for _, text in places(chart, "title")] == ["0: 64", "1 to 2: 0", "3: 1"]
    texts = [text for _, text in places(chart, "text.number")]
    assert texts == ["0", "3", "up to 64 values"]
    assert Histogram(heading="x", columns=(), ends=("", "")).svg()
