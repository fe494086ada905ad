"""Whether a folder has annotations in Pascal VOC's XML, where no source is named."""

from __future__ import annotations

from tfrecreg.api import RawPreview, Recognition
from tfrecreg_voc.raw_listing import MASK_FOLDERS, VOC_SUFFIXES

_LOOKED_INTO = 5
"""XML files in which an annotation is looked for."""


def recognize_annotations(preview: RawPreview) -> Recognition | None:
    """XML files with annotations of images; None if there is no image, or the
    first ones are something else.
    """
    files = preview.below()
    xmls = [path for path in files if path.lower().endswith(".xml")]
    pictures = [path for path in files if path.lower().endswith(VOC_SUFFIXES)]
    masks = {path for path in pictures if set(path.split("/")) & set(MASK_FOLDERS.values())}
    images = [path for path in pictures if path not in masks]
    starts = map(preview.start, xmls[:_LOOKED_INTO] if images else ())
    if not any(b"<annotation" in start for start in starts):
        return None
    lists = [path for path in files if path.endswith(".txt") and "ImageSets" in path.split("/")]
    reason = (
        f"{preview.counted(len(xmls), 'XML file')} with Pascal VOC's annotations and "
        f"{preview.counted(len(images), 'image')}"
    )
    if lists:
        reason += f", {preview.counted(len(lists), 'list')} in `ImageSets`"
    if masks:
        reason += (
            f"; {preview.counted(len(masks), 'mask')} in PNG, read with --option masks=class,object"
        )
    return Recognition("exact", reason, preview.aside([*xmls, *images, *lists]))
