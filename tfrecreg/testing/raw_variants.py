"""Raw data that a source may get: damaged, incomplete, with strange names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from tfrecreg.core.build.sources.interface import RawFile

_FILES = 6
"""Number of raw files that are damaged: the first ones, and the largest."""

STRANGE_FOLDER = "raw \x1b[31m'\"$(é)\n"
"""The name of a folder that no message can print as it is."""
STRANGE_NAMES = (
    "\x1b[2J-cleared",
    "two\nlines",
    "‮-turned",
    "\udcff-no-utf-8",
    "a b'\"$(c)",
    "日本語",
    "-rf",
    "x" * 200,
)
"""Names of files in data of others, without the suffix."""


def damaged(folder: Path, scratch: Path, files: Sequence[RawFile]) -> Iterator[tuple[str, Path]]:
    """Copies of raw data, each with one damage, and what it is."""
    largest = sorted(files, key=lambda each: (-each.stored, each.path))[:_FILES]
    chosen = {each.path: None for each in [*files[:_FILES], *largest]}
    for path in chosen:
        data = (folder / path).read_bytes()
        damages = {
            "is missing": None,
            "is empty": b"",
            "ends in its middle": data[: len(data) // 2],
            "has other bytes": bytes(each ^ 0xA5 for each in data[:4096]),
        }
        for what, content in damages.items():
            yield f"`{path}` {what}", _changed(folder, scratch, path, content)


def _changed(folder: Path, scratch: Path, path: str, content: bytes | None) -> Path:
    copy = fresh_copy(folder, scratch / "damaged")
    if content is None:
        (copy / path).unlink()
    else:
        (copy / path).write_bytes(content)
    return copy


def with_strange_names(folder: Path, scratch: Path, files: Sequence[RawFile]) -> Path:
    """A copy of raw data, where each folder with raw files has more of them, with strange names."""
    copy = fresh_copy(folder, scratch / "strange")
    kinds = {(PurePosixPath(each.path).parent, _suffixes(each.path)): each for each in files}
    for (parent, suffixes), file in kinds.items():
        data = (folder / file.path).read_bytes()
        for name in STRANGE_NAMES:
            (copy / parent / f"{name}{suffixes}").write_bytes(data)
    return copy


def fresh_copy(folder: Path, place: Path) -> Path:
    """A copy of a folder; what was in its place is removed."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place)
    return place


def _suffixes(path: str) -> str:
    suffixes = "".join(PurePosixPath(path).suffixes)
    return suffixes if len(suffixes) < 20 else PurePosixPath(path).suffix
