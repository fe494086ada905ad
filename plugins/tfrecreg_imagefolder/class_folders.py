"""Whether folders are those of classes, by the names of folders and of the first files in them."""

from __future__ import annotations

from tfrecreg.api import RawPreview, Recognition
from tfrecreg_imagefolder.folder_walker import IMAGE_SUFFIXES, format_names, is_usual_split

_NO_CLASSES = frozenset(
    {
        *("annotations", "data", "images", "imagesets", "imgs", "jpegimages", "labels", "masks"),
        *("pictures", "raw", "segmentationclass", "segmentationobject"),
    }
)
"""Folders of other layouts, in lower case: the images in one of them have no class in common."""
_LOOKED_INTO = 40
"""Number of class folders in which an image is looked for."""


def recognize_class_folders(preview: RawPreview) -> Recognition | None:
    """Class folders, with or without folders of splits above them; None if there are none, or half
    of the files in them are no images.
    """
    folders = preview.folders()
    splits = [path for path in folders if is_usual_split(path)]
    holding = [path for path in splits if preview.folders(path)]
    if holding:
        candidates = [each for path in holding for each in preview.folders(path)]
        what = f"folders of splits ({format_names(holding)}) with folders of classes"
        beside = [path for path in folders if path not in holding]
    else:
        candidates = [path for path in folders if path not in splits]
        what, beside = "folders of classes", splits
    bare = [path for path in candidates[:_LOOKED_INTO] if not _has_image(preview, path)]
    classes = sorted({path.rpartition("/")[2] for path in candidates if path not in bare})
    others = _NO_CLASSES.intersection(map(str.lower, classes))
    if len(classes) == len(others) or len(bare) == _LOOKED_INTO:
        return None
    files = [file for path in candidates[:_LOOKED_INTO] for file in preview.files(path)]
    images = sum(file.lower().endswith(IMAGE_SUFFIXES) for file in files)
    if files and images * 2 <= len(files):
        return None
    usual = len(classes) > 1 and not others
    reason = f"{what} ({format_names(classes)})"
    return Recognition("layout" if usual else "general", reason, [*beside, *bare, *preview.files()])


def _has_image(preview: RawPreview, folder: str) -> bool:
    """Whether a folder has an image in it, or in the first folder of it."""
    return any(
        file.lower().endswith(IMAGE_SUFFIXES)
        for each in (folder, *preview.folders(folder)[:1])
        for file in preview.files(each)
    )
