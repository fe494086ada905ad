"""The drawing of the words: from raw data to training, and what a build consists of."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

__all__ = ["concepts_drawing"]

WIDTH, HEIGHT = 950, 388

STYLE = """\
text { font: 14px ui-sans-serif, Helvetica, Arial, sans-serif; fill: #1d2733; }
.word { font-weight: 600; font-size: 16px; }
.code { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.verb { fill: #0b57a4; font-weight: 600; }
rect { fill: #ffffff; stroke: #5b6b7b; stroke-width: 1.5; }
.paper { fill: #f4f6f8; stroke: none; }
.made { fill: #e7f0fa; }
.fixed { fill: #e6f4ea; stroke: #2f7d46; stroke-width: 2; }
path { stroke: #5b6b7b; stroke-width: 1.5; fill: none; }
.loose { stroke-dasharray: 4 4; }"""


class Box(NamedTuple):
    """A word, with lines below it."""

    x: int
    y: int
    width: int
    height: int
    word: str
    lines: tuple[str, ...] = ()
    kind: str = ""
    """The class of its style."""


BOXES = (
    Box(20, 56, 160, 84, "raw data", ("raw/pets/cat/1.jpg", "raw/pets/dog/2.jpg", "…")),
    Box(286, 56, 170, 84, "build", ("data/pets", "the next one", "replaces it"), "made"),
    Box(604, 56, 170, 84, "release", ("registry/pets/1.0.0", "never changes"), "fixed"),
    Box(838, 56, 92, 84, "training"),
    Box(20, 220, 160, 68, "dataset", ("datasets/pets.toml", "its settings")),
    Box(286, 220, 170, 68, "manifest", ("size and digest", "of every file"), "made"),
    Box(286, 300, 170, 68, "schema", ("what every record", "has to contain"), "made"),
    Box(496, 220, 96, 68, "split", ("train", "test"), "made"),
    Box(640, 220, 130, 68, "shard", ("00000-of-00002", "a TFRecord file"), "made"),
    Box(818, 220, 112, 68, "record", ("one example",), "made"),
)

ARROWS = (
    # From and to, as (x, y), the verb above it, the text below.
    ((180, 98), (286, 98), "build", "by a source"),
    ((456, 98), (604, 98), "check, release", "if the gate passes"),
    ((774, 98), (838, 98), "load", ""),
    ((592, 254), (640, 254), "", ""),
    ((770, 254), (818, 254), "", ""),
)

LINES = (
    ("loose", "M100 220V140"),
    ("loose", "M370 140V220"),
    ("loose", "M370 288V300"),
    ("loose", "M370 180H544V220"),
)

NOTES = (
    (20, 34, "", "Reference:"),
    (286, 34, "code", "pets"),
    (604, 34, "code", "pets@1.0.0  pets@1.*  pets@latest"),
    (496, 340, "verb", "check looks at all of this,"),
    (496, 358, "verb", "and reports findings"),
)


def concepts_drawing() -> str:
    """The SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>A source makes a build of raw data; a build that passes becomes a release</title>",
        f"<style>\n{STYLE}\n</style>",
        '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#5b6b7b;stroke:none"/></marker>',
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
    ]
    parts += [f'<path class="{kind}" d="{line}"/>' for kind, line in LINES]
    for box in BOXES:
        x, y, width, height, word, lines, kind = box
        parts.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
        )
        parts.append(_text(x + 12, y + 22, "word", word))
        parts += [_text(x + 12, y + 38 + 16 * row, "code", line) for row, line in enumerate(lines)]
    for (x, y), (end, _), above, below in ARROWS:
        parts.append(f'<path d="M{x} {y}H{end}" marker-end="url(#tip)"/>')
        middle = (x + end) // 2
        parts.append(_text(middle, y - 8, "verb", above, middle=True))
        parts.append(_text(middle, y + 20, "", below, middle=True))
    parts += [_text(*note) for note in NOTES]
    return "\n".join([*filter(None, parts), "</svg>"]) + "\n"


def _text(x: int, y: int, kind: str, text: str, *, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text class="{kind}" x="{x}" y="{y}"{anchor}>{escape(text)}</text>' if text else ""
