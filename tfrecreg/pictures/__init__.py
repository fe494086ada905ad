"""Pictures as bytes: which format they have and what their headers say.

For sources, which pass pictures through as they are, and for whatever looks at records. It needs
neither Pillow nor TensorFlow, decodes no pixel, never reads more than is there, and for whatever
bytes it is given answers or raises :class:`PictureError`.

- `model`: :class:`PictureHeader`, what a header says; :class:`PictureError`, why there is none
- `sniff`: the format by the first bytes, and what other known things begin like
- `read`: :func:`read_header` and :func:`is_truncated`, over the five formats
- `jpeg`, `png`, `gif`, `webp`, `bmp`: one format each
- `decodable`: which of them TensorFlow's decoders refuse
- `decoder`: for those who need pixels: Pillow, in a process with limits, which `decoder_child` is
"""

from __future__ import annotations

from tfrecreg.pictures.model import FORMATS, REASONS, PictureError, PictureHeader
from tfrecreg.pictures.read import is_truncated, read_header
from tfrecreg.pictures.sniff import sniff

__all__ = [
    "FORMATS",
    "REASONS",
    "PictureError",
    "PictureHeader",
    "is_truncated",
    "read_header",
    "sniff",
]
