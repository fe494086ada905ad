"""The features of an annotated image, and files that cannot be one."""

from __future__ import annotations

import hashlib

from tfrecreg.core.build.sources.objects.listing import Symlinks, link_problem
from tfrecreg.core.build.sources.objects.view import SkipImage
from tfrecreg.core.example.features import bytes_feature, int64_feature
from tfrecreg.core.example.model import Example
from tfrecreg.core.images.model import ImageHeader
from tfrecreg.core.storage.interface import Entry
from tfrecreg.core.values.text import safe

MAX_IMAGE_BYTES = 1 << 30
"""Maximum size in bytes of a file for a record."""


def image_features(data: bytes, header: ImageHeader, *, filename: str, source_id: str) -> Example:
    """The features of an image itself.

    Args:
        data: the file, which is written byte for byte.
        header: its header.
        filename: the name that its annotations have for it.
        source_id: what identifies it in the raw data.
    """
    return {
        "image/encoded": bytes_feature(data),
        "image/format": bytes_feature(header.format),
        "image/height": int64_feature(header.height),
        "image/width": int64_feature(header.width),
        "image/filename": bytes_feature(filename),
        "image/source_id": bytes_feature(source_id),
        "image/key/sha256": bytes_feature(hashlib.sha256(data).hexdigest()),
    }


def image_size(path: str, entry: Entry | None, *, symlinks: Symlinks = "all") -> int:
    """Size in bytes of an image file, or of another file of a record.

    Args:
        path: where it should be.
        entry: what is there, links followed; None for nothing.
        symlinks: which links were followed: all, those that stay in the raw folder, or none.

    Raises:
        SkipImage: it does not exist, is no file, or is too large for a record.
    """
    if entry is None:
        raise SkipImage("SRC020", f"there is no file `{safe(path)}`")
    if entry.kind == "link":
        raise SkipImage("SRC011", link_problem(symlinks))
    if entry.kind != "file":
        kind = "a folder" if entry.kind == "dir" else "a FIFO, a socket or a device"
        raise SkipImage("SRC010", f"expected a file, found {kind}")
    if entry.size > MAX_IMAGE_BYTES:
        detail = f"the file has {entry.size} bytes, more than {MAX_IMAGE_BYTES}"
        raise SkipImage("SRC007", detail)
    return entry.size
