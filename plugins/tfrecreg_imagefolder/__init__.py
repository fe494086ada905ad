"""The bundled source `imagefolder`: images in folders that are named after their classes.

It is a plugin like any other: `tfrecreg.core.plugins.bundled` lists it, and it imports only one
module of the project, `tfrecreg.api`.

- `listing` has the options, and lists the items of class folders, even in folders of splits.
- `label_file` lists the items of a flat folder. Labels come from a label file or from file names.
- `source` has :class:`~tfrecreg_imagefolder.source.ImageFolderSource`, which makes the examples.

The schema is `imagefolder.pbtxt` (in the repository it is in `schemas/`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl, listed

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition

_SUFFIXES = (
    *("[jJ][pP]*[gG]", "[pP][nN][gG]", "[wW][eE][bB][pP]"),
    *("[bB][mM][pP]", "[gG][iI][fF]"),
)
_OTHERS = ("[tT][iI][fF]*", "[hH][eE][iI][cCfF]", "[aA][vV][iI][fF]")
_NO_CLASSES = frozenset(
    {
        *("annotations", "data", "images", "imagesets", "imgs", "jpegimages", "labels", "masks"),
        *("pictures", "raw", "segmentationclass", "segmentationobject"),
    }
)
"""Names of folders of other layouts, in lower case. Images in such a folder share no class."""
_LOOKED_INTO = 40
"""Maximum number of class folders to search for an image."""


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    yield SourceRecord(
        "imagefolder",
        "images in class folders, or in one folder with a label file",
        _load,
        recognizes=[
            f"{split}*/*.{suffix}"
            for split in ("[tT][rR]*/", "[vV][aA]*/", "[tT][eE]*/", "")
            for suffix in _SUFFIXES
        ],
        examine=_examine,
        refuses=[
            *(f"{folder}*.{suffix}" for folder in ("*/*/", "*/", "") for suffix in _OTHERS),
            *(f"*.{suffix}" for suffix in _SUFFIXES),
        ],
    )


def _examine(preview: RawPreview) -> Recognition | None:
    """Recognize class folders, with or without folders of splits above them. Return None if there
    are no class folders, or if at least half of the files in them are not images.
    """
    from tfrecreg.api import Recognition, media_kind, usual_split

    def has_image(folder: str) -> bool:
        inside = (folder, *preview.folders(folder)[:1])
        return any(media_kind(file) == "image" for each in inside for file in preview.files(each))

    folders = preview.folders()
    splits = [path for path in folders if usual_split(path)]
    holding = [path for path in splits if preview.folders(path)]
    if holding:
        candidates = [each for path in holding for each in preview.folders(path)]
        what = f"folders of splits ({listed(holding, most=3)}) with folders of classes"
        beside = [path for path in folders if path not in holding]
    else:
        candidates = [path for path in folders if path not in splits]
        what, beside = "folders of classes", splits
    bare = [path for path in candidates[:_LOOKED_INTO] if not has_image(path)]
    classes = sorted({path.rpartition("/")[2] for path in candidates if path not in bare})
    others = _NO_CLASSES.intersection(map(str.lower, classes))
    if len(classes) == len(others) or len(bare) == _LOOKED_INTO:
        return None
    files = [file for path in candidates[:_LOOKED_INTO] for file in preview.files(path)]
    images = sum(media_kind(file) == "image" for file in files)
    if files and images * 2 <= len(files):
        return None
    usual = len(classes) > 1 and not others
    reason = f"{what} ({listed(classes, most=3)})"
    return Recognition("layout" if usual else "general", reason, [*beside, *bare, *preview.files()])


def _load() -> type[Source]:
    from tfrecreg_imagefolder.source import ImageFolderSource

    return ImageFolderSource
