"""The files of raw data, and what is said of several of them.

The features of an annotated image, and files that cannot be one.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from tfrecreg.core.build.sources.interface import Remark
from tfrecreg.core.build.sources.object_options import SkipImage
from tfrecreg.core.example.model import Example
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.images.model import ImageHeader
from tfrecreg.core.storage.interface import Entry, Readable
from tfrecreg.core.values.errors import RawDataError
from tfrecreg.core.values.text import safe

Symlinks = Literal["all", "inside", "none"]
"""Which links are followed: all, those that stay in the raw folder, or none."""

_SYSTEM_NAMES = frozenset(
    {
        *("$recycle.bin", "@eadir", "__macosx", "desktop.ini"),
        *("ehthumbs.db", "icon\r", "lost+found", "thumbs.db"),
    }
)
"""In lower case."""
_MAX_LINKS = 10_000
"""Links to folders that are followed: a few that lead to each other are exponentially many."""


def list_files(raw: Readable, folder: str = "", *, symlinks: Symlinks = "all") -> Iterator[Entry]:
    """Everything below a folder that is not a folder, in the order of the paths' bytes.

    Links are followed, also into folders: a file behind a link has its size and the kind ``file``.
    A link that leads nowhere or in a circle, or that is not followed, has the kind ``link``, a FIFO
    or a device ``other``.

    Args:
        symlinks: which links are followed: all, those that stay in the raw folder, or none.

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
            found = None if symlinks == "none" else raw.stat(entry.path, follow=symlinks)
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


def hidden_part(path: str) -> str:
    """The path up to a name that is hidden or one that systems leave in folders; mostly empty."""
    parts = path.split("/")
    for number, name in enumerate(parts, 1):
        if name.startswith(".") or name.lower() in _SYSTEM_NAMES:
            return "/".join(parts[:number])
    return ""


def link_problem(symlinks: Symlinks) -> str:
    """Why a link was not followed, in words: `a symbolic link, which …`."""
    if symlinks == "none":
        return "a symbolic link, which `symlinks=none` does not follow"
    out = "out of the raw folder, " if symlinks == "inside" else ""
    return f"a symbolic link that leads {out}nowhere or in a circle"


def read_text(
    raw: Readable,
    path: str,
    *,
    limit: int = 1 << 28,
    entry: Entry | None = None,
    symlinks: Symlinks = "all",
) -> str:
    """The text of a small file, without its byte order mark.

    Args:
        entry: what :func:`list_files` says of it, if known; a link is one that was not followed.
        symlinks: which links were followed: all, those that stay in the raw folder, or none.

    Raises:
        RawDataError: it has more than `limit` bytes, is not UTF-8, or is a link not followed.
    """
    if entry is not None and entry.kind == "link":
        raise RawDataError(
            f"`{safe(path)}` is {link_problem(symlinks)}",
            hint="put the file or the folder itself there",
        )
    with raw.open(path) as file:
        if file.size > limit:
            raise RawDataError(
                f"`{safe(path)}` has {file.size:,} bytes, expected at most {limit:,}",
                hint="it is a small text file: check that the right file has this name",
            )
        data = file.read_at(0, limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RawDataError(
            f"`{safe(path)}` is not UTF-8: line {line} has the byte 0x{data[error.start]:02x}",
            hint="write the file again as UTF-8",
        ) from None


def similar_names(split: str, key: str, names: Iterable[str]) -> Iterator[Remark]:
    """One remark on names of classes that are equal but for case, spaces or Unicode normal form.

    Args:
        key: the feature that has the classes.
    """
    seen: dict[str, str] = {}
    pairs = []
    for name in filter(None, names):
        plain = " ".join(_plain(name).split())
        if plain in seen:
            pairs.append((seen[plain], name))
        seen.setdefault(plain, name)
    if pairs:
        one, other = (safe(name, limit=60) for name in pairs[0])
        detail = f"`{one}` and `{other}` are two classes"
        yield Remark(split, key, "SRC049", detail, len(pairs))


def similar_paths(split: str, paths: Callable[[], Iterable[str]]) -> Iterator[Remark]:
    """One remark on files whose paths are those of others but for case or Unicode normal form.
    They are listed again if there are any: only hashes are kept of all.
    """
    import numpy as np  # as a plan does, and not who only lists files

    hashes = np.fromiter((hash(_plain(path)) for path in paths()), np.int64)
    hashes.sort()
    twice = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    if not twice:
        return
    seen: dict[str, str] = {}
    similar = []
    for path in paths():
        plain = _plain(path)
        if hash(plain) in twice and seen.setdefault(plain, path) != path:
            similar.append(path)
    if similar:
        yield paths_remark(split, "SRC049", similar, "another file has this name but for case")


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def path_ends(text: str) -> list[str]:
    """A path of another machine without its first folders, the longest end first.

    Separators may be those of Windows; a drive and parts such as `..` are left out.
    """
    parts = [part for part in text.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if parts and parts[0].endswith(":"):
        del parts[0]
    return ["/".join(parts[start:]) for start in range(len(parts))]


def paths_remark(split: str, code: str, paths: Sequence[str], why: str) -> Remark:
    """One remark on several files, which names the first ones."""
    shown = ", ".join(f"`{safe(path, limit=100)}`" for path in paths[:3])
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return Remark(split, paths[0], code, f"{why}: {shown}{more}", len(paths))


def _is_circle(raw: Readable, found: Entry, path: str) -> bool:
    """Whether a link leads to a folder that it is in."""
    while path:
        path = path.rpartition("/")[0]
        above = raw.stat(path, follow="all")
        if above is not None and (above.device, above.inode) == (found.device, found.inode):
            return True
    return False


MAX_IMAGE_BYTES = 1 << 30
"""Maximum size in bytes of a file for a record."""


def image_features(data: bytes, header: ImageHeader, *, filename: str, source_id: str) -> Example:
    """The features of an image itself.

    Args:
        data: the file, which is written byte for byte.
        header: its header.
        filename: the name that its annotations have for it.
        source_id: what identifies it in the raw data.
    """
    return {
        "image/encoded": bytes_feature(data),
        "image/format": bytes_feature(header.format),
        "image/height": int64_feature(header.height),
        "image/width": int64_feature(header.width),
        "image/filename": bytes_feature(filename),
        "image/source_id": bytes_feature(source_id),
        "image/key/sha256": bytes_feature(hashlib.sha256(data).hexdigest()),
    }


def image_size(path: str, entry: Entry | None, *, symlinks: Symlinks = "all") -> int:
    """Size in bytes of an image file, or of another file of a record.

    Args:
        path: where it should be.
        entry: what is there, links followed; None for nothing.
        symlinks: which links were followed: all, those that stay in the raw folder, or none.

    Raises:
        SkipImage: it does not exist, is no file, is too large for a record, or has a name that is
            not UTF-8.
    """
    if entry is None:
        raise SkipImage("SRC020", f"there is no file `{safe(path)}`")
    if entry.kind == "link":
        raise SkipImage("SRC011", link_problem(symlinks))
    if entry.kind != "file":
        kind = "a folder" if entry.kind == "dir" else "a FIFO, a socket or a device"
        raise SkipImage("SRC010", f"expected a file, found {kind}")
    if entry.size > MAX_IMAGE_BYTES:
        detail = f"the file has {entry.size} bytes, more than {MAX_IMAGE_BYTES}"
        raise SkipImage("SRC007", detail)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise SkipImage("SRC012", "the name is not UTF-8") from None
    return entry.size
