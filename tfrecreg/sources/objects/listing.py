"""The files of raw data, and the paths by which annotations name them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tfrecreg.errors import RawDataError
from tfrecreg.sources.objects.view import SkipImage
from tfrecreg.storage.interface import Entry, Readable
from tfrecreg.text import safe

_MAX_NAME = 255
"""Most bytes of a name that file systems take (`NAME_MAX`)."""
_MAX_PATH = 2048
"""Maximum bytes of a path below the folder of the images: half of Linux's `PATH_MAX`."""
_MAX_LINKS = 10_000
"""Links to folders that are followed: a few that lead to each other are exponentially many."""


def plain_path(text: str) -> str:
    """A relative path as an annotation file has it, without `.` and doubled slashes.

    Raises:
        SkipImage: it is empty, absolute, goes up, or cannot be the name of a file.
    """
    if text.startswith("/") or text[1:3] in (":\\", ":/"):
        raise SkipImage("SRC021", f"the path `{safe(text)}` is absolute")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise SkipImage("SRC021", f"the path `{safe(text)}` has a part `..`")
    try:
        sizes = [len(part.encode("utf-8")) for part in parts]
    except UnicodeEncodeError:
        raise SkipImage("SRC012", f"the name `{safe(text)}` is not UTF-8") from None
    if not parts or "\0" in text or max(sizes) > _MAX_NAME or sum(sizes) > _MAX_PATH:
        raise SkipImage("SRC021", f"`{safe(text)}` is no name of a file")
    return "/".join(parts)


def list_files(raw: Readable, folder: str = "") -> Iterator[Entry]:
    """Everything below a folder that is not a folder, in the order of the paths' bytes.

    Links are followed, also into folders: a file behind a link has its size and the kind ``file``.
    A link that leads nowhere or in a circle has the kind ``link``, a FIFO or a device ``other``.

    Raises:
        RawDataError: there are too many links to folders.
    """
    followed = 0
    waiting = [raw.list(folder)]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
        elif entry.kind != "link":
            if entry.kind != "dir":
                yield entry
        else:
            found = raw.stat(entry.path, follow="all")
            if found is None or found.kind in ("file", "link", "other"):
                yield entry if found is None else replace(found, path=entry.path)
            elif _is_circle(raw, found, entry.path):
                yield entry
            else:
                followed += 1
                if followed > _MAX_LINKS:
                    raise RawDataError(
                        f"`{safe(raw.root)}` has more than {_MAX_LINKS} symbolic links to folders",
                        hint="put the folders themselves there",
                    )
                waiting.append(raw.list(entry.path))


def _is_circle(raw: Readable, found: Entry, path: str) -> bool:
    """Whether a link leads to a folder that it is in."""
    while path:
        path = path.rpartition("/")[0]
        above = raw.stat(path, follow="all")
        if above is not None and (above.device, above.inode) == (found.device, found.inode):
            return True
    return False
