"""The colors of classes and of documents: texts can be read on them."""

from __future__ import annotations

import re
import zlib

import pytest

from tfrecreg.core.images.drawing import COLORS, INK, class_color
from tfrecreg.core.images.svg import tokens


def luminance(color: str) -> float:
    """The relative luminance of a color in hex (IEC 61966-2-1)."""
    parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("color", COLORS)
def test_a_name_on_a_color_of_a_class_can_be_read(color: str) -> None:
    assert contrast(color, INK) >= 4.5


def test_a_class_has_the_color_of_its_number_or_of_its_name() -> None:
    assert [class_color(number) for number in (0, 1, 7, 8, 90, -1)] == [0, 1, 7, 0, 2, 7]
    assert class_color("cat") == zlib.crc32(b"cat") % 8
    assert class_color("Küche") == zlib.crc32("Küche".encode()) % 8
    assert class_color("\ud800") in range(8)
    assert {class_color(f"class {number}") for number in range(100)} == set(range(8))


PAIRS = dict(re.findall(r"--([a-z0-9]+): light-dark\(([^)]*)\)", tokens()))


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("below", ["page", "panel"])
def test_texts_and_charts_stand_out_in_light_and_dark(theme: int, below: str) -> None:
    colors = {name: pair.split(", ")[theme] for name, pair in PAIRS.items()}
    texts = ("text", "faint", "link", "error", "warning", "info", "pass")
    assert [name for name in texts if contrast(colors[name], colors[below]) < 4.5] == []
    series = [f"s{number}" for number in range(6)]
    assert [name for name in series if contrast(colors[name], colors[below]) < 3] == []


def test_the_style_sheet_has_all_colors_of_classes() -> None:
    for number, color in enumerate(COLORS):
        assert f"--c{number}: {color};" in tokens()
        assert f".c{number} {{" in tokens()
