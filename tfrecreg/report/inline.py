"""Pictures in a terminal that has a protocol for them.

Two protocols take encoded pictures, so that nothing is decoded here:

- iTerm2's inline images (https://iterm2.com/documentation-images.html), which WezTerm, Konsole and
  mintty understand as well: any format;
- kitty's graphics protocol (https://sw.kovidgoyal.net/kitty/graphics-protocol/), also Ghostty's:
  PNG.

Large pictures are not shown, whatever the terminal, and elsewhere none is: the words on them are.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Literal

from tfrecreg.operations.format_payload import ShownPicture
from tfrecreg.pictures import PictureHeader

__all__ = ["Way", "find_way", "inline"]

Way = Literal["iterm", "kitty"]
"""How a terminal shows pictures."""

_COLUMNS, _ROWS = 48, 14
"""Cells of the terminal that a picture may take; a cell is about twice as high as it is wide."""
_BYTES = 4 << 20
"""A picture of more bytes,"""
_PIXELS = 1 << 24
"""or of more pixels, is not shown: neither we nor the terminal shall decode a bomb."""
_CHUNK = 4096
"""Bytes of base64 that kitty takes at once."""
_KONSOLE = 220400
"""The version of Konsole that has inline images."""
_INDENT = "    "


def find_way(environment: Mapping[str, str], *, terminal: bool, always: bool = False) -> Way | None:
    """How the terminal that the environment describes shows pictures; None if it does not.

    Args:
        environment: of this process.
        terminal: whether the output goes to a terminal.
        always: whether pictures are asked for wherever the output goes; where the environment says
            nothing, by iTerm2's protocol, which most terminals with pictures have.
    """
    if not terminal and not always:
        return None
    name = environment.get("TERM", "")
    if name == "dumb" and not always:
        return None
    # tmux and screen pass on neither protocol unless they are told to.
    if "TMUX" not in environment and not name.startswith(("screen", "tmux")):
        program = environment.get("TERM_PROGRAM", "")
        if program in ("iTerm.app", "WezTerm", "mintty"):
            return "iterm"
        if environment.get("LC_TERMINAL") == "iTerm2":
            return "iterm"
        if program == "ghostty" or name in ("xterm-kitty", "xterm-ghostty"):
            return "kitty"
        konsole = environment.get("KONSOLE_VERSION", "")
        if konsole.isdecimal() and int(konsole) >= _KONSOLE:
            return "iterm"
    return "iterm" if always else None


def inline(picture: ShownPicture, way: Way) -> str:
    """What to write for the terminal to show the picture, line ends and all; empty for nothing."""
    header, data = picture.header, picture.data
    if header is None or len(data) > _BYTES or header.width * header.height > _PIXELS:
        return ""
    columns, rows = _cells(header)
    if way == "iterm":
        size = f"size={len(data)};width={columns};height={rows}"
        encoded = base64.b64encode(data).decode("ascii")
        return f"{_INDENT}\x1b]1337;File=inline=1;{size}:{encoded}\x07\n"
    return f"{_INDENT}{_kitty(data, columns, rows)}\n" if picture.format == "png" else ""


def _cells(header: PictureHeader) -> tuple[int, int]:
    """The largest place of these proportions within the limits."""
    scale = min(_COLUMNS / (2 * header.width), _ROWS / header.height)
    return max(1, round(2 * header.width * scale)), max(1, round(header.height * scale))


def _kitty(data: bytes, columns: int, rows: int) -> str:
    """Transmit and display (a=T) a PNG (f=100), in chunks, without an answer (q=2)."""
    encoded = base64.b64encode(data).decode("ascii")
    chunks = [encoded[at : at + _CHUNK] for at in range(0, len(encoded), _CHUNK)]
    keys = f"a=T,f=100,q=2,c={columns},r={rows},"
    pieces = []
    for number, chunk in enumerate(chunks, 1):
        more = int(number < len(chunks))
        pieces.append(f"\x1b_G{keys}m={more};{chunk}\x1b\\")
        keys = ""
    return "".join(pieces)
