"""Whether a folder has label files of the YOLO family, where no source is named."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tfrecreg.api import RawPreview, Recognition, listed
from tfrecreg_yolo.raw_listing import YOLO_SUFFIXES, label_paths

_DESCRIBES = re.compile(rb"^[ \t]*(?:names|nc|classes|train|kpt_shape)[ \t]*[:=]", re.MULTILINE)
_DESCRIPTIONS = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml", "obj.data")
_LISTS = ("classes.txt", "obj.names", "train.txt", "val.txt", "valid.txt", "test.txt")
_LOOKED_INTO = 10
"""Label files in which a row is looked for: those of images without objects are empty."""


def recognize_label_files(preview: RawPreview) -> Recognition | None:
    """Why: label files with rows of numbers, or a file that describes them. None without either, or
    without images.
    """
    files = preview.below()
    texts = {path for path in files if path.endswith(".txt")}
    images = [path for path in files if path.lower().endswith(YOLO_SUFFIXES)]
    labels = [found for path in images if (found := _label_of(path, texts))]
    described = [
        path
        for path in preview.files()
        if path in _DESCRIPTIONS and _DESCRIBES.search(preview.start(path))
    ]
    if not images or not (described or _have_rows(preview, labels)):
        return None
    reason = f"{preview.counted(len(images), 'image')}, {len(labels):,} with YOLO's label files"
    if described:
        reason += f", described by {listed(described)}"
    beside = [path for path in preview.files() if path in _LISTS]
    return Recognition("exact", reason, preview.aside([*images, *labels, *described, *beside]))


def _label_of(image: str, texts: set[str]) -> str:
    return next((path for path in label_paths(image) if path in texts), "")


def _have_rows(preview: RawPreview, labels: Iterable[str]) -> bool:
    for path in [each for each in labels if "labels" in each.split("/")][:_LOOKED_INTO]:
        words = preview.start(path).partition(b"\n")[0].split()
        if words:
            return len(words) >= 5 and all(map(_is_number, words))
    return False


def _is_number(word: bytes) -> bool:
    return word.lstrip(b"-").replace(b".", b"", 1).replace(b"e-", b"", 1).isdigit()
