"""Images as bytes: which format they have and what their headers say.

For sources, which pass images through as they are, and for whatever looks at records. It needs
neither Pillow nor TensorFlow, decodes no pixel, never reads more than is there, and for whatever
bytes it is given answers or raises :class:`ImageError`.

- `model`: :class:`ImageHeader`, what a header says; :class:`ImageError`, why there is none
- `sniff`: the format by the first bytes, and what other known things begin like
- `read`: :func:`read_header` and :func:`is_truncated`, over the five formats
- `jpeg`, `png`, `gif`, `webp`, `bmp`: one format each
- `decodable`: which of them TensorFlow's decoders refuse
- `decoder`: for those who need pixels: Pillow, in a process with limits, which `decoder_child` is
- `pixels`: for training: Pillow, in this process
"""

from __future__ import annotations

from tfrecreg.images.model import IMAGE_FORMATS, REASONS, ImageError, ImageHeader
from tfrecreg.images.read import is_truncated, read_header
from tfrecreg.images.sniff import sniff

__all__ = [
    "IMAGE_FORMATS",
    "REASONS",
    "ImageError",
    "ImageHeader",
    "is_truncated",
    "read_header",
    "sniff",
]
