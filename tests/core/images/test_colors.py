"""The colors of classes and of documents: they differ for everybody, and texts can be read."""

from __future__ import annotations

import re
import zlib
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from tfrecreg.core.images.drawing import COLORS, INK, class_color
from tfrecreg.core.images.svg import tokens

Floats = npt.NDArray[np.float64]

# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
# Deficiency", IEEE TVCG 2009: the matrices for a severity of 1, for linear RGB.
SEEN_BY = {
    "all three cones": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
# IEC 61966-2-1: linear RGB of a white of D65 as XYZ.
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(color: str) -> Floats:
    """Linear RGB of a color in hex."""
    parts = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    dark, light = sorted(float(linear(each) @ XYZ[1]) for each in (one, other))
    return (light + 0.05) / (dark + 0.05)


def lab(rgb: Floats) -> Floats:
    """CIELAB of linear RGB."""
    parts = XYZ @ np.clip(rgb, 0, 1) / XYZ.sum(axis=1)
    roots = np.where(parts > 0.008856, np.cbrt(parts), 7.787 * parts + 16 / 116)
    return np.array([116 * roots[1] - 16, 500 * (roots[0] - roots[1]), 200 * (roots[1] - roots[2])])


@pytest.mark.parametrize("eyes", SEEN_BY)
def test_the_colors_of_classes_differ_for_everybody(eyes: str) -> None:
    seen = [lab(SEEN_BY[eyes] @ linear(color)) for color in COLORS]
    nearest = min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2))
    assert nearest > 20


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
