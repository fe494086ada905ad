"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition

_SUFFIXES = (
    *("[jJ][pP]*[gG]", "[pP][nN][gG]", "[wW][eE][bB][pP]"),
    *("[bB][mM][pP]", "[gG][iI][fF]"),
)
_OTHERS = ("[tT][iI][fF]*", "[hH][eE][iI][cCfF]", "[aA][vV][iI][fF]")


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `imagefolder`."""
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
    from tfrecreg_imagefolder.class_folders import recognize_class_folders

    return recognize_class_folders(preview)


def _load() -> type[Source]:
    from tfrecreg_imagefolder.source import ImageFolderSource

    return ImageFolderSource
