"""What lies in the raw folder: files, folders, links that are followed, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tfrecreg.api import RawDataError, Storage, safe

__all__ = ["FolderId", "LeftOut", "Node", "Symlinks", "Walker", "bad_name", "is_utf8"]

Symlinks = Literal["all", "inside", "none"]
FolderId = tuple[int, int]
"""Device and inode."""

_JUNK = frozenset(
    {
        "$recycle.bin",
        "@eadir",
        "__macosx",
        "desktop.ini",
        "ehthumbs.db",
        "icon\r",
        "lost+found",
        "thumbs.db",
    }
)
"""What systems leave in folders, in lower case."""
_DEEPEST = 64
"""Folders below each other."""
_MOST_LINKED = 10_000
"""Links to folders that are followed: a few that lead to each other are exponentially many."""


class Node(NamedTuple):
    """One name in a folder, links followed as far as that is allowed."""

    path: str
    """Below the raw folder."""
    kind: Literal["file", "dir", "bad"]
    """``bad`` is what may not be opened: `code` and `detail` say why."""
    size: int = 0
    """Bytes of a file."""
    id: FolderId = (0, 0)
    """Of a folder: a link that leads into a circle is known by it."""
    code: str = ""
    """``SRC010``, ``SRC011`` or ``SRC012``."""
    detail: str = ""

    @property
    def name(self) -> str:
        """Without the folders."""
        return self.path.rpartition("/")[2]


class LeftOut(NamedTuple):
    """Names of one kind that are no items."""

    split: str
    kind: Literal["hidden", "stray"]
    first: str
    """The path of the first that was met."""
    times: int


@dataclass
class Walker:
    """Looks into folders, and counts what it leaves out.

    Args:
        raw: the raw folder.
        extensions: of the files to take, in any case, with or without the dot; empty for all.
        symlinks: which links are followed: all, those that stay in the raw folder, or none.
        split: which the names that are left out from now on are counted for.
        known: the path of a file that is neither an item nor left out.
    """

    raw: Storage
    extensions: Sequence[str] = ()
    symlinks: Symlinks = "all"
    split: str = ""
    known: str = ""

    def __post_init__(self) -> None:
        self._endings = tuple("." + each.lower().removeprefix(".") for each in self.extensions)
        self._linked = 0
        self._left_out: dict[tuple[str, Literal["hidden", "stray"]], LeftOut] = {}

    @property
    def left_out(self) -> list[LeftOut]:
        """What was left out so far, by split and kind."""
        return [self._left_out[each] for each in sorted(self._left_out)]

    def leave_out(self, kind: Literal["hidden", "stray"], path: str, count: int = 1) -> None:
        """Count a name that is no item, or several that begin with it."""
        known = self._left_out.get((self.split, kind))
        first, before = (known.first, known.times) if known is not None else (path, 0)
        self._left_out[self.split, kind] = LeftOut(self.split, kind, first, before + count)

    def look(self, folder: str) -> Iterator[Node]:
        """The names right in a folder, in the order of their bytes; hidden ones are counted.

        Raises:
            StorageError: the folder cannot be read.
        """
        for entry in self.raw.list(folder, recursive=False):
            name = entry.path.rpartition("/")[2]
            if entry.path == self.known:
                continue
            if name.startswith(".") or name.lower() in _JUNK:
                self.leave_out("hidden", entry.path)
            elif entry.kind == "file":
                yield Node(entry.path, "file", entry.size)
            elif entry.kind == "dir":
                yield Node(entry.path, "dir", 0, (entry.device, entry.inode))
            elif entry.kind == "link":
                yield self._follow(entry.path)
            else:
                detail = "a FIFO, a socket or a device, which is never opened"
                yield Node(entry.path, "bad", code="SRC010", detail=detail)

    def files(self, folder: str, *, above: Sequence[FolderId] = ()) -> Iterator[Node]:
        """Every file below a folder, however deep, and whatever is bad among them.

        Files whose extension is not wanted are counted as stray. A name that is not UTF-8 is bad.

        Args:
            folder: where to look.
            above: the ids of that folder and of those above it.
        """
        for node in self.look(folder):
            if node.kind == "dir":
                yield from self._deeper(node, above)
            elif self._endings and not node.name.lower().endswith(self._endings):
                self.leave_out("stray", node.path)
            elif is_utf8(node.path):
                yield node
            else:
                yield bad_name(node.path)

    def spy(self) -> Walker:
        """One like this for a look ahead: what it leaves out is not counted here."""
        return Walker(self.raw, symlinks=self.symlinks)

    def _deeper(self, node: Node, above: Sequence[FolderId]) -> Iterator[Node]:
        if node.id in above:
            yield Node(node.path, "bad", code="SRC011", detail="a symbolic link in a circle")
        elif len(above) >= _DEEPEST:
            raise RawDataError(
                f"`{safe(node.path)}` lies below {_DEEPEST} folders",
                hint="`--raw` takes the folder of the classes or of the splits",
            )
        else:
            yield from self.files(node.path, above=(*above, node.id))

    def _follow(self, path: str) -> Node:
        if self.symlinks == "none":
            detail = "a symbolic link, and with `symlinks=none` none is followed"
            return Node(path, "bad", code="SRC011", detail=detail)
        found = self.raw.stat(path, follow=self.symlinks)
        if found is None or found.kind == "link":
            out = "out of the raw folder, " if self.symlinks == "inside" else ""
            detail = f"a symbolic link that leads {out}nowhere or in a circle"
            return Node(path, "bad", code="SRC011", detail=detail)
        if found.kind == "other":
            detail = "a symbolic link to a FIFO, a socket or a device, which is never opened"
            return Node(path, "bad", code="SRC010", detail=detail)
        if found.kind == "file":
            return Node(path, "file", found.size)
        self._linked += 1
        if self._linked > _MOST_LINKED:
            raise RawDataError(
                f"`{safe(self.raw.root)}` has more than {_MOST_LINKED} symbolic links to folders",
                hint="--option symlinks=none, or put the folders themselves there",
            )
        return Node(path, "dir", 0, (found.device, found.inode))


def is_utf8(text: str) -> bool:
    """Whether a name from the file system can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def bad_name(path: str) -> Node:
    """What a name that is not UTF-8 comes to: it could be a key only as another name."""
    return Node(path, "bad", code="SRC012", detail="the name is not UTF-8")
