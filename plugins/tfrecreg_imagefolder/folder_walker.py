"""The content of the raw folder: files, folders, links, ignored names; and the folders that are
splits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from tfrecreg.api import (
    RawDataError,
    Remark,
    Storage,
    Symlinks,
    collision,
    is_split_name,
    link_problem,
    normal_splits,
    safe,
)

FolderId = tuple[int, int]
"""Device and inode."""

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp")
"""In lower case; a file with another one may be an image, too."""
_SYSTEM_NAMES = frozenset(
    {
        *("$recycle.bin", "@eadir", "__macosx", "desktop.ini"),
        *("ehthumbs.db", "icon\r", "lost+found", "thumbs.db"),
    }
)
"""Names that systems leave in folders, in lower case."""
_MAX_DEPTH = 64
"""Folders below each other."""
_MAX_LINKED = 10_000
"""Links to folders that are followed: a few that lead to each other are exponentially many."""
_SPECIAL = "a FIFO, a socket or a device"
_TAKES = "name the folder of the classes or of the splits with `--raw`"


class Node(NamedTuple):
    """One name in a folder, links followed as far as the options allow."""

    path: str
    """Below the raw folder."""
    kind: Literal["file", "dir", "bad"]
    """``bad`` may not be opened: `code` and `detail` say why."""
    size: int = 0
    """Size of a file in bytes."""
    id: FolderId = (0, 0)
    """Id of a folder, which reveals circular links."""
    code: str = ""
    """``SRC010`` to ``SRC013``."""
    detail: str = ""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @classmethod
    def bad(cls, path: str, code: str, detail: str) -> Node:
        """A name that may not be opened."""
        return cls(path, "bad", code=code, detail=detail)


class Walker:
    """Looks into folders, and counts the names that it leaves out."""

    def __init__(
        self,
        raw: Storage,
        extensions: Sequence[str] = (),
        symlinks: Symlinks = "all",
        split: str = "",
        label_file: str = "",
    ) -> None:
        self.raw = raw
        self.split = split
        self._symlinks = symlinks
        self._label_file = label_file
        self._suffixes = tuple("." + each.lower().removeprefix(".") for each in extensions)
        self._linked = 0
        self.unread: list[Remark] = []
        """Remarks on folders that no split reads."""
        self._left_out: dict[tuple[str, str], tuple[str, int]] = {}  # the first, and how many

    def leave_out(self, kind: Literal["hidden", "stray"], path: str) -> None:
        """Count a name that is not an item."""
        first, times = self._left_out.get((self.split, kind), (path, 0))
        self._left_out[self.split, kind] = first, times + 1

    def left_out(self) -> Iterator[Remark]:
        """A remark on the names left out so far, for each split and kind."""
        for (split, kind), (first, times) in sorted(self._left_out.items()):
            names = "name," if times == 1 else "names, the first of them"
            detail = f"{times} {kind} {names} `{safe(first)}`"
            yield Remark(split, first, "SRC015", detail, times)

    def peek(self) -> Walker:
        """A walker with the same rule for links, whose counts are its own."""
        return Walker(self.raw, symlinks=self._symlinks)

    def look(self, folder: str) -> Iterator[Node]:
        """The names right in a folder, in the order of their bytes. Hidden ones are left out."""
        for entry in self.raw.list(folder, recursive=False):
            name = entry.path.rpartition("/")[2]
            if entry.path == self._label_file:
                continue
            if name.startswith(".") or name.lower() in _SYSTEM_NAMES:
                self.leave_out("hidden", entry.path)
            elif entry.kind == "file":
                yield Node(entry.path, "file", entry.size)
            elif entry.kind == "dir":
                yield Node(entry.path, "dir", 0, (entry.device, entry.inode))
            elif entry.kind == "link":
                yield self._follow(entry.path)
            else:
                yield Node.bad(entry.path, "SRC010", f"{_SPECIAL}, which is never opened")

    def files(self, folder: str, *, above: Sequence[FolderId] = ()) -> Iterator[Node]:
        """Every file below a folder, however deep, and every bad name among them.

        Files with other extensions are left out as stray. A name that is not UTF-8 is bad: it could
        be a key only as another name.
        """
        for node in self.look(folder):
            if node.kind == "dir":
                if node.id in above:
                    yield Node.bad(node.path, "SRC011", "a symbolic link in a circle")
                    continue
                if len(above) >= _MAX_DEPTH:
                    raise RawDataError(
                        f"`{safe(node.path)}` is below {_MAX_DEPTH} folders", hint=_TAKES
                    )
                yield from self.files(node.path, above=(*above, node.id))
            elif self._suffixes and not node.name.lower().endswith(self._suffixes):
                self.leave_out("stray", node.path)
            elif not is_utf8(node.path):
                yield Node.bad(node.path, "SRC012", "the name is not UTF-8")
            else:
                yield node

    def _follow(self, path: str) -> Node:
        follow = self._symlinks
        found = None if follow == "none" else self.raw.stat(path, follow=follow)
        if found is None or found.kind == "link":
            return Node.bad(path, "SRC011", link_problem(follow))
        if found.kind == "other":
            detail = f"a symbolic link to {_SPECIAL}, which is never opened"
            return Node.bad(path, "SRC010", detail)
        if found.kind == "file":
            return Node(path, "file", found.size)
        self._linked += 1
        if self._linked > _MAX_LINKED:
            raise RawDataError(
                f"`{safe(self.raw.root)}` has more than {_MAX_LINKED} symbolic links to folders",
                hint="--option symlinks=none, or put the folders themselves there",
            )
        return Node(path, "dir", 0, (found.device, found.inode))


class SplitFolder(NamedTuple):
    """A folder of class folders."""

    path: str
    """Below the raw folder; empty for that folder itself."""
    split: str
    """Its split in the normal spelling; the default one without splits."""
    ids: tuple[FolderId, ...]
    """Ids of the raw folder and of this one."""


def require_folder(raw: Storage) -> FolderId:
    """The id of the raw folder."""
    here = raw.stat("")
    if here is None or here.kind != "dir":
        raise RawDataError(f"no such folder: `{safe(raw.root, limit=4096)}`", hint=_TAKES)
    return here.device, here.inode


def find_split_folders(walker: Walker, layout: str) -> tuple[str, list[SplitFolder]]:
    """The layout, and the folders that hold class folders: the raw folder itself, or one a split.

    Only names and kinds decide; no file is opened.
    """
    root_id = require_folder(walker.raw)
    root = safe(walker.raw.root, limit=4096)
    top = list(walker.peek().look(""))
    folders = [node for node in top if node.kind == "dir"]
    if not top:
        raise RawDataError(f"`{root}` is empty: expected folders of classes", hint=_TAKES)
    if not folders:
        raise RawDataError(
            f"`{root}` holds no folders: expected one for each class or split, found "
            f"{format_names((node.name for node in top), count=2)}",
            hint="a file that labels the images can take the place of folders: "
            "`--option label_file=NAME`; or a pattern that finds the class in a file's name: "
            "`--option 'class_pattern=^(n[0-9]+)_'`",
        )
    usual = [node for node in folders if is_usual_split(node.name)]
    # Some folders called like splits are splits if one of them holds folders.
    if layout == "class" or (
        layout == "auto"
        and len(usual) < len(folders)
        and not any(_holds_folders(walker, node) for node in usual)
    ):
        return "class", [SplitFolder("", "train", (root_id,))]
    for node in top:
        if node.kind == "bad" and is_usual_split(node.name):
            raise RawDataError(
                f"the split folder `{safe(node.path)}` cannot be looked into: {node.detail}",
                hint="put the folder itself there",
            )
    if layout == "auto" and len(usual) < len(folders):
        others = [node.name for node in folders if node not in usual]
        raise RawDataError(
            f"`{root}` holds folders of splits ({format_names(node.name for node in usual)}) and "
            f"others ({format_names(others)})",
            hint="set `--option layout=split` or `--option layout=class`, or remove the others",
        )
    found = _split_folders(walker, folders, root_id)
    walker.split = found[0].split
    taken = {folder.path for folder in found}
    for node in walker.look(""):
        if node.path in taken:
            continue
        inside = _count_files(walker, node) if node.kind == "dir" else 0
        if inside:
            files = "1 file" if inside == 1 else f"{inside:,} files"
            detail = f"{files} in the folder `{safe(node.path)}`, which is not a split"
            walker.unread.append(Remark(found[0].split, node.path, "SRC034", detail, inside))
        else:
            walker.leave_out("stray", node.path)
    return "split", found


def _split_folders(walker: Walker, folders: Sequence[Node], root_id: FolderId) -> list[SplitFolder]:
    found: list[Node] = []
    for node in folders:
        if _holds_folders(walker, node):
            found.append(node)
        elif is_usual_split(node.name):
            raise RawDataError(
                f"the split folder `{safe(node.path)}` holds no class folders",
                hint="put its images into folders of classes, or take it out of the raw folder; "
                "a flat folder with a label file is built alone, with `--option label_file=`",
            )
    if not found:
        raise RawDataError(
            f"no folder of `{safe(walker.raw.root, limit=4096)}` holds class folders: found "
            f"{format_names(node.name for node in folders)}",
            hint="--option layout=class, if these are the classes",
        )
    for node in found:
        if not is_split_name(node.name):
            raise RawDataError(
                f"the name of the folder `{safe(node.name)}` cannot be the name of a split: "
                "expected letters, digits and `_`",
                hint="rename it: the name becomes part of file names",
            )
    reject_name_collisions([node.name for node in found], "split folders")
    splits = normal_splits([node.name for node in found])
    return [SplitFolder(node.path, splits[node.name], (root_id, node.id)) for node in found]


def _count_files(walker: Walker, folder: Node) -> int:
    return sum(each.kind == "file" for each in walker.peek().files(folder.path, above=(folder.id,)))


def _holds_folders(walker: Walker, node: Node) -> bool:
    return any(each.kind == "dir" for each in walker.peek().look(node.path))


def is_usual_split(name: str) -> bool:
    """Whether a folder is called `train`, `validation` or `test`, in any spelling."""
    return normal_splits([name])[name] in ("train", "validation", "test")


def is_utf8(text: str) -> bool:
    """Whether a name from the file system can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def reject_name_collisions(names: Iterable[str], what: str, hint: str = "") -> None:
    """Refuse names that differ only by case or by Unicode normal form."""
    if found := collision(names):
        raise RawDataError(
            f"two {what} {found}",
            hint=hint or "rename one of them, or put the files of both into one folder",
        )


def format_names(names: Iterable[str], count: int = 3) -> str:
    """The first names, escaped, and how many more there are."""
    every = list(names)
    shown = ", ".join(f"`{safe(name, limit=60)}`" for name in every[:count])
    return shown + (f" and {len(every) - count} more" if len(every) > count else "")
