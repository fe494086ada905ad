"""The bundled source `voc`: images with annotations in Pascal VOC's XML.

The page `docs/sources/boxes.md` says what is read. :class:`~tfrecreg_voc.source.VocSource` reads
the XML, and :class:`tfrecreg.api.ObjectSource` makes examples.

Schemas: `voc.pbtxt`, the parts `voc_*.pbtxt`, and `objects.pbtxt`, which all object sources use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition

_LOOKED_INTO = 5
"""Number of XML files that are searched for an annotation."""


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    yield SourceRecord(
        "voc",
        "images with Pascal VOC's XML: boxes, and the PNGs of segmentations",
        _load,
        recognizes=[
            *("Annotations/*.xml", "VOC*/Annotations/*.xml", "*/VOC*/Annotations/*.xml"),
            *("annotations/*.xml", "xml*/*.xml", "labels/*.xml"),
            *("[tT][rR]*/*.xml", "[vV][aA]*/*.xml", "[tT][eE]*/*.xml", "*.xml"),
        ],
        examine=_examine,
    )


def _examine(preview: RawPreview) -> Recognition | None:
    from tfrecreg.api import Recognition
    from tfrecreg_voc.source import MASK_FOLDERS, VOC_SUFFIXES

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
    return Recognition("exact", reason, preview.aside([*xmls, *images, *lists]))


def _load() -> type[Source]:
    from tfrecreg_voc.source import VocSource

    return VocSource
