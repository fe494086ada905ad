"""The color of a class.

The rule: a class with a number has the color `number % 8`; a class that has only a name has the
color `crc32(name) % 8`, of the name in UTF-8. So a class has one color in every document, whatever
else is in it. With more than eight classes colors repeat, so a name always stands beside a color.
A script needs no rule: documents and answers name colors by their number, and `tokens.css` has
them as `--c0` to `--c7`.

The eight colors differ for people with each kind of color blindness, by at least 20 in CIELAB, and
:data:`INK` can be read on all of them: `tests/core/images/drawing/test_colors.py` computes both.
"""

from __future__ import annotations

import zlib

COLORS = (
    "#49d8ff",
    "#ff8e00",
    "#149d78",
    "#bd64ac",
    "#feff17",
    "#8b8ffb",
    "#e45433",
    "#a9e5a7",
)
"""Colors of classes in hex, by number."""
INK = "#101418"
"""The color of text on a color of :data:`COLORS`, and of the edges around them."""


def class_color(name: int | str) -> int:
    """The color of a class, as a position in :data:`COLORS`."""
    if isinstance(name, int):
        return name % len(COLORS)
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) % len(COLORS)
