"""The records that `head` shows, and their images in terminals with a protocol for them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from rich.console import Console

from tfrecreg.cli.render.console import count, line
from tfrecreg.example.kinds import PayloadKind
from tfrecreg.text import safe

if TYPE_CHECKING:
    from tfrecreg.images import ImageHeader
    from tfrecreg.operations.format_payload import ShownImage, ShownPart
    from tfrecreg.operations.head import ShownRecord


_NAMES = {
    PayloadKind.SEQUENCE_EXAMPLE.value: "a tf.train.SequenceExample",
    PayloadKind.EVENT.value: "a TensorBoard event",
}
"""The names of known payloads that are not Examples."""


_IMAGES = 4
"""The number of images shown per record."""


def print_records(
    console: Console, records: Iterable[ShownRecord], *, protocol: ImageProtocol | None = None
) -> None:
    """Each record with its location, one line per feature, and its images.

    Args:
        console: the output.
        records: the records, read one by one.
        protocol: the terminal's protocol for images; None to show none.
    """
    for each in records:
        _print_record(console, each)
        if protocol is not None:
            for image in each.images[:_IMAGES]:
                # rich would print the escape sequences of the protocol as text.
                console.file.write(inline_image(image, protocol))
        for path in each.saved:
            console.print(line(("  saved: ", "green"), safe(path, limit=1 << 16)))


def _print_record(console: Console, each: ShownRecord) -> None:
    key = f", key {each.key}" if each.key is not None else ""
    place = f", record {each.record}, offset {each.offset}, {each.length:,} bytes{key}"
    console.print(line((each.shard, "bold"), place))
    if each.features is None:
        named = _NAMES.get(each.payload or "")
        if each.payload is None:
            console.print(line(("  ", ""), (each.start, "yellow")))
        elif named is not None:
            console.print(line((f"  {named}", "yellow")))
        else:
            console.print(line(("  not a tf.train.Example: ", "yellow"), each.start))
        _print_rows(console, [_part(part) for part in each.parts])
        return
    rows = [
        (feature.name, _kind(feature.kind, feature.count), feature.shown)
        for feature in each.features
    ]
    _print_rows(console, rows)


def _print_rows(console: Console, rows: Sequence[tuple[str, str, str]]) -> None:
    names = max((len(name) for name, _, _ in rows), default=0)
    kinds = max((len(kind) for _, kind, _ in rows), default=0)
    for name, kind, shown in rows:
        head = (f"  {name:<{names}}  ", "cyan")
        console.print(line(head, f"{kind:<{kinds}}  {shown}", hang=names + kinds + 6))


def _part(part: ShownPart) -> tuple[str, str, str]:
    """A row: part and name, kind, content."""
    name = f"{part.part} {part.name}" if part.name else part.part
    if part.part == "context":
        return name, _kind(part.kind, part.count), part.shown
    if part.part == "list":
        steps = count(part.count, "step")
        return name, f"{steps} of {part.kind}" if part.kind else steps, part.shown
    return name, part.kind, part.shown


def _kind(kind: str, count: int) -> str:
    return kind if count == 1 else f"{kind}[{count}]"


ImageProtocol = Literal["iterm", "kitty"]
"""The two protocols that take encoded images, so that nothing is decoded here.

- iTerm2's inline images (https://iterm2.com/documentation-images.html), which WezTerm, Konsole and
  mintty understand as well: any format
- kitty's graphics protocol (https://sw.kovidgoyal.net/kitty/graphics-protocol/), also of Ghostty:
  PNG only
"""

_COLUMNS, _ROWS = 48, 14
"""Maximum size of an image in cells; a cell is about twice as high as it is wide."""
_BYTES = 4 << 20
"""Maximum size of an image in bytes."""
_PIXELS = 1 << 24
"""Maximum number of pixels of an image, so that the terminal decodes no decompression bomb."""
_CHUNK = 4096
"""Maximum length of a chunk of base64 in kitty's protocol."""
_KONSOLE = 220400
"""The first version of Konsole with inline images."""
_INDENT = "    "


def find_image_protocol(
    environment: Mapping[str, str], *, terminal: bool, always: bool = False
) -> ImageProtocol | None:
    """The protocol of the terminal that the environment describes; None if it has none.

    Args:
        environment: the environment of this process.
        terminal: whether the output goes to a terminal.
        always: whether images are requested wherever the output goes. If the environment does not
            help, iTerm2's protocol is used, which most terminals with images have.
    """
    if not terminal and not always:
        return None
    name = environment.get("TERM", "")
    if name == "dumb" and not always:
        return None
    # tmux and screen pass on neither protocol unless configured to.
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


def inline_image(image: ShownImage, protocol: ImageProtocol) -> str:
    """The escape sequences that show an image, with line ends; empty if it is not shown."""
    header, data = image.header, image.data
    if header is None or len(data) > _BYTES or header.width * header.height > _PIXELS:
        return ""
    columns, rows = _cells(header)
    if protocol == "iterm":
        size = f"size={len(data)};width={columns};height={rows}"
        encoded = base64.b64encode(data).decode("ascii")
        return f"{_INDENT}\x1b]1337;File=inline=1;{size}:{encoded}\x07\n"
    return f"{_INDENT}{_kitty(data, columns, rows)}\n" if image.format == "png" else ""


def _cells(header: ImageHeader) -> tuple[int, int]:
    """The largest number of columns and rows with these proportions within the limits."""
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
