"""Raw data that a source recognizes by the names of their files, for hints: nothing is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from shlex import quote

from tfrecreg.core.plugins.manager import Plugins
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.storage.remote.urls import is_url
from tfrecreg.core.values.text import safe


def build_hint(place: str, known: Plugins) -> str:
    """The command that builds from raw data; empty if no source recognizes them."""
    # A name says more than a wildcard: images are in the folders of many sources.
    found = [
        (sum(map(glob.count, "*[")), each.name, folder)
        for each in known.every(SourceRecord)
        for folder, glob in _matching(place, each.record)
    ]
    if not found:
        return ""
    _, name, folder = min(found)
    return (
        f"these are raw data of the source `{name}`: tfrecreg build NAME --source {name} --raw "
        f"{safe(quote(folder), limit=1000)}"
    )


def raw_folder(place: str, record: SourceRecord) -> str:
    """The folder with raw data of a source at, above or below a path; empty if there is none."""
    return next((folder for folder, _ in _matching(place, record)), "")


def _matching(place: str, record: SourceRecord) -> Iterator[tuple[str, str]]:
    """The folder with raw data of a source, and the glob that recognizes them, if any does."""
    if is_url(place):
        return
    path = Path(os.path.abspath(place))  # noqa: PTH100 - links stay
    # A folder that may not be looked at, and an invalid glob of a plugin.
    with suppress(OSError, ValueError, NotImplementedError):
        for look in (_at_or_above, _below):
            for glob in record.recognizes:
                found = look(path, glob)
                if found is not None:
                    yield str(found) if Path(place).is_absolute() else os.path.relpath(found), glob
                    return


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
