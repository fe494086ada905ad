"""The style sheet of all documents: colors, fonts and what lies over images."""

from __future__ import annotations

from functools import cache
from importlib import resources

from tfrecreg.core.images.drawing.colors import COLORS, INK


@cache
def tokens() -> str:
    """CSS that defines `--page`, `--text`, `--error` and so on, for light and dark, the colors of
    classes `--c0` to `--c7` with `--ink` for text on them, and the class `overlay`.

    A document is light or dark as its reader prefers; `data-theme` of its root overrides that.
    """
    text = (resources.files("tfrecreg.core.images.drawing") / "tokens.css").read_text(
        encoding="utf-8"
    )
    colors = " ".join(f"--c{number}: {color};" for number, color in enumerate(COLORS))
    return f":root {{ --ink: {INK}; {colors} }}\n{text}"
