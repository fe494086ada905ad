"""Raw data that a source recognizes by the names of their files, for hints: nothing is read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from shlex import quote

from tfrecreg.plugins.manager import Plugins
from tfrecreg.plugins.records import SourceRecord
from tfrecreg.storage.urls import is_url
from tfrecreg.text import safe


def build_hint(place: str, known: Plugins) -> str:
    """The command that builds from raw data; empty if no source recognizes them.

    Args:
        place: a folder or a file, at most two levels away from the folder that a source reads.
    """
    for each in known.every(SourceRecord):
        folder = raw_folder(place, each.record)
        if folder:
            return (
                f"these are raw data of the source `{each.name}`: tfrecreg build NAME --source "
                f"{each.name} --raw {safe(quote(folder), limit=1000)}"
            )
    return ""


def raw_folder(place: str, record: SourceRecord) -> str:
    """The folder with raw data of a source at, above or below a path; empty if there is none."""
    if is_url(place):
        return ""
    path = Path(os.path.abspath(place))  # noqa: PTH100 - links stay
    # A folder that may not be looked at, and a glob of a plugin that is none.
    with suppress(OSError, ValueError, NotImplementedError):
        for look in (_at_or_above, _below):
            found = next(filter(None, (look(path, each) for each in record.recognizes)), None)
            if found is not None:
                return str(found) if Path(place).is_absolute() else os.path.relpath(found)
    return ""


def _at_or_above(path: Path, pattern: str) -> Path | None:
    parts = PurePosixPath(pattern).parts
    for up in range(len(parts) + 1):
        names, rest = path.parts[len(path.parts) - up :], parts[up:]
        if not all(map(fnmatch, names, parts)):
            continue
        if any(_matches(path, rest)) if rest else path.is_file():
            return path.parents[up - 1] if up else path
    return None


def _below(path: Path, pattern: str) -> Path | None:
    parts = PurePosixPath(pattern).parts
    for above in (("*",), ("*", "*")):
        for found in _matches(path, (*above, *parts)):
            return found.parents[len(parts) - 1]
    return None


def _matches(folder: Path, parts: Iterable[str]) -> Iterable[Path]:
    return folder.glob("/".join(parts))
