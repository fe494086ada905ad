"""Label maps that lie beside shards, and the feature that each is for.

The names of such files are those of TensorFlow's object detection and of tools that export for it:
``label_map.pbtxt``, ``pets_label_map.pbtxt``, ``classes.txt``. They name no feature.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from tfrecreg.foreign.label_maps import parse_label_map
from tfrecreg.label_maps import LabelMap
from tfrecreg.storage.interface import Readable

_MOST_BYTES = 1 << 24
_NAME = re.compile(r"(?:.*[-_.])?label[-_]?map\.pbtxt|classes\.txt", re.IGNORECASE | re.ASCII)
_FOR = ("image/object/class/label", "image/class/label", "label")
"""The features that such a file may be for, the most likely first."""


def feature_of_maps(features: Collection[str]) -> str | None:
    """The feature whose classes a label map without a feature names; None if there is none."""
    return next((name for name in _FOR if name in features), None)


def label_files_in(storage: Readable, folder: str) -> list[str]:
    """The label maps in a folder, as paths, in order of their names."""
    entries = storage.list(folder, recursive=False)
    return sorted(
        entry.path
        for entry in entries
        if entry.kind != "dir" and _NAME.fullmatch(entry.path.rpartition("/")[2])
    )


def read_names_file(storage: Readable, path: str) -> LabelMap:
    """The class names in a label map.

    Raises:
        UsageError: it does not parse, or names no class.
    """
    return parse_label_map(storage.read(path, limit=_MOST_BYTES), f"{storage.root}/{path}")
