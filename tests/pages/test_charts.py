"""Charts as SVG: where bars and points are, and the texts beside them."""

from __future__ import annotations

from xml.etree import ElementTree

from markupsafe import Markup

from tfrecreg.pages.content import Bars, Scatter, Series
from tfrecreg.pages.svg import bar_chart, scatter_chart

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
    test = Series(name="test", values=(1000, 0))
    train = Series(name="train", values=(4000, 1))
    bars = Bars(heading="Classes", unit="values", labels=("cat", "dog"), series=(test, train))
    chart = bar_chart(bars)
    assert places(chart, "text.label", "x", "y") == [((172, 14), "cat"), ((172, 54), "dog")]
    assert [place for place, _ in places(chart, "rect", "x", "y", "width", "height")] == [
        (180, 3, 95, 14),
        (180, 23, 380, 14),
        (180, 43, 0, 14),
        (180, 63, 0.5, 14),
    ]
    assert places(chart, "text.number", "x", "y") == [
        ((281, 14), "1,000"),
        ((566, 34), "4,000"),
        ((186, 54), "0"),
        ((186.1, 74), "1"),
    ]
    assert [text for _, text in places(chart, "title")] == [
        "cat, test: 1,000",
        "cat, train: 4,000",
        "dog, test: 0",
        "dog, train: 1",
    ]
    root = ElementTree.fromstring(chart)
    assert (root.attrib["viewBox"], root.attrib["aria-label"]) == ("0 0 640 84", "Classes")
    assert [each.attrib["class"] for each in root.iter("rect")] == ["s0", "s1"] * 2


def test_points_stand_on_logarithmic_axes_whose_ticks_are_below_and_beside() -> None:
    chart = scatter_chart(Scatter(heading="Sizes", points=((10, 20, 4), (40, 20, 1), (40, 80, 2))))
    assert places(chart, "circle", "cx", "cy", "r") == [
        ((44, 276, 12), "10 × 20 pixels: 4"),
        ((596, 276, 7.5), "40 × 20 pixels: 1"),
        ((596, 44, 9.4), "40 × 80 pixels: 2"),
    ]
    assert places(chart, "text.number", "x", "y") == [
        ((44, 294), "10"),
        ((231.1, 294), "16"),
        ((596, 294), "40"),
        ((38, 280), "20"),
        ((38, 201.3), "32"),
        ((38, 48), "80"),
    ]
    root = ElementTree.fromstring(chart)
    assert root.attrib["viewBox"] == "0 0 640 320"
    assert [each.attrib["d"] for each in root.iter("path")] == ["M44 276H596M44 276V44"]
