"""The bundled source `folder`: files of any kind. Suffixes decide how they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition

_MEDIA = ("wav", "flac", "mp3", "mp4", "m4a", "mov")
_SUFFIXES = ["".join(f"[{each}{each.upper()}]" for each in suffix) for suffix in _MEDIA]


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    yield SourceRecord(
        "folder",
        "files of any kind; sounds and videos with features from their headers",
        _load,
        recognizes=[f"{depth}*.{suffix}" for depth in ("", "*/", "*/*/") for suffix in _SUFFIXES],
        examine=_examine,
    )


def _examine(preview: RawPreview) -> Recognition | None:
    from tfrecreg.api import Recognition, hidden_part

    files = [path for path in preview.below(2) if not hidden_part(path)]
    suffixes = [path.rpartition(".")[2].lower() for path in files]
    kinds = {each: suffixes.count(each) for each in sorted({*suffixes}) if each in _MEDIA}
    if not kinds:
        return None
    media = sum(kinds.values())
    shown = ", ".join(f"{count:,} `.{suffix}`" for suffix, count in kinds.items())
    reason = f"{preview.counted(media, 'sound or video file')} ({shown})"
    if others := len(files) - media:
        reason += f" and {preview.counted(others, 'other file')}, which would be read as well"
    return Recognition("general", reason, preview.aside(files))


def _load() -> type[Source]:
    from tfrecreg_folder.source import FolderSource

    return FolderSource
