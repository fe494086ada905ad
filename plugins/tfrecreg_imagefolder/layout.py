"""What the folders of the first levels are: splits, classes, or neither. Looks at names only."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from tfrecreg.api import RawDataError, Storage, normal_splits, safe
from tfrecreg_imagefolder.shares import is_split_name
from tfrecreg_imagefolder.walk import FolderId, Node, Walker, is_utf8

__all__ = [
    "DEFAULT_SPLIT",
    "Folder",
    "few",
    "find_folders",
    "is_usual_split",
    "refuse_twins",
    "require_folder",
    "require_utf8",
]

DEFAULT_SPLIT = "train"
_USUAL = frozenset({"train", "validation", "test"})
_TAKES = "`--raw` takes the folder of the classes or of the splits"


class Folder(NamedTuple):
    """A folder of class folders."""

    path: str
    """Below the raw folder; empty for that folder itself."""
    split: str
    """Its split in the normal spelling; the default one where there are no splits."""
    ids: tuple[FolderId, ...]
    """Of it and of the folders above it."""


def require_folder(raw: Storage) -> FolderId:
    """The id of the raw folder.

    Raises:
        RawDataError: there is no such folder.
    """
    here = raw.stat("")
    if here is None or here.kind != "dir":
        raise RawDataError(f"no such folder: `{safe(raw.root, limit=4096)}`", hint=_TAKES)
    return here.device, here.inode


def find_folders(
    walker: Walker, layout: Literal["auto", "class", "split"]
) -> tuple[Literal["class", "split"], list[Folder]]:
    """The folders that hold class folders: the raw folder itself, or one a split.

    Raises:
        RawDataError: there are no folders, or they can be read in more than one way.
    """
    root = require_folder(walker.raw)
    spy = walker.spy()
    top = list(spy.look(""))
    folders = [node for node in top if node.kind == "dir"]
    if not folders:
        raise _nothing(walker.raw, top)
    usual = [node for node in folders if is_usual_split(node.name)]
    if layout == "class" or (layout == "auto" and not _has_splits(walker, folders, usual)):
        return "class", [Folder("", DEFAULT_SPLIT, (root,))]
    for node in top:
        if node.kind == "bad" and is_usual_split(node.name):
            raise RawDataError(
                f"the split folder `{safe(node.path)}` cannot be looked into: {node.detail}",
                hint="put the folder itself there",
            )
    if layout == "auto" and len(usual) < len(folders):
        others = [node.name for node in folders if node not in usual]
        raise RawDataError(
            f"`{safe(walker.raw.root, limit=4096)}` holds folders of splits "
            f"({few(node.name for node in usual)}) and others ({few(others)})",
            hint="say what they are, `--option layout=split` or `--option layout=class`, or take "
            "the others out",
        )
    found = _split_folders(walker, folders, root)
    walker.split = found[0].split
    for left in spy.left_out:
        walker.leave_out(left.kind, left.first, left.times)
    taken = {folder.path for folder in found}
    for node in top:
        if node.path not in taken:
            walker.leave_out("stray", node.path)
    return "split", found


def _has_splits(walker: Walker, folders: Sequence[Node], usual: Sequence[Node]) -> bool:
    """Whether folders called like splits are splits: all are called so, or one holds folders."""
    if not usual or len(usual) == len(folders):
        return bool(usual)
    return any(_holds_folders(walker, node) for node in usual)


def _split_folders(walker: Walker, folders: Sequence[Node], root: FolderId) -> list[Folder]:
    found: list[Node] = []
    for node in folders:
        if _holds_folders(walker, node):
            found.append(node)
        elif is_usual_split(node.name):
            raise RawDataError(
                f"the split folder `{safe(node.path)}` holds no class folders",
                hint="put its pictures into folders of classes, or take it out of the raw folder; "
                "a flat folder with a label file is built alone, with `--option label_file=`",
            )
    if not found:
        names = few(node.name for node in folders)
        raise RawDataError(
            f"no folder of `{safe(walker.raw.root, limit=4096)}` holds class folders: found "
            f"{names}",
            hint="--option layout=class, if these are the classes",
        )
    for node in found:
        if not is_split_name(node.name):
            raise RawDataError(
                f"the folder `{safe(node.name)}` is no name of a split: expected letters, digits "
                "and `_`",
                hint="rename it: the name becomes part of file names",
            )
    refuse_twins((node.name for node in found), "split folders")
    splits = normal_splits([node.name for node in found])
    return [Folder(node.path, splits[node.name], (root, node.id)) for node in found]


def refuse_twins(names: Iterable[str], what: str, hint: str = "") -> None:
    """Refuse names that differ only by case or by Unicode normal form.

    One of them is nearly always a slip, made on a system that takes them for the same, and on
    such a system the raw data could not be unpacked.

    Raises:
        RawDataError: there are such names.
    """
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(_folded(name), name)
        if other != name:
            ways = "case" if _composed(other) != _composed(name) else "Unicode normal form"
            raise RawDataError(
                f"two {what} differ only by {ways}: `{_plain(other)}` and `{_plain(name)}`",
                hint=hint or "rename one of them, or put the files of both into one folder",
            )


def _plain(name: str) -> str:
    """The name, with what is beyond ASCII as escapes: the difference has to be seen."""
    return safe(name.encode("ascii", "backslashreplace").decode("ascii")).replace("\\\\", "\\")


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _folded(name: str) -> str:
    return _composed(_composed(name).casefold())


def is_usual_split(name: str) -> bool:
    """Whether a folder is called like one of the three usual splits, in any spelling."""
    return normal_splits([name])[name] in _USUAL


def _holds_folders(walker: Walker, node: Node) -> bool:
    return any(each.kind == "dir" for each in walker.spy().look(node.path))


def _nothing(raw: Storage, top: Sequence[Node]) -> RawDataError:
    root = safe(raw.root, limit=4096)
    if not top:
        return RawDataError(f"`{root}` is empty: expected folders of classes", hint=_TAKES)
    names = few((node.name for node in top), count=2)
    return RawDataError(
        f"`{root}` holds no folders: expected one for each class or split, found {names}",
        hint="a file that labels the pictures can take the place of folders: "
        "`--option label_file=NAME`",
    )


def few(names: Iterable[str], count: int = 3) -> str:
    """The first names, escaped, and how many more there are."""
    every = list(names)
    shown = ", ".join(f"`{safe(name, limit=60)}`" for name in every[:count])
    return shown + (f" and {len(every) - count} more" if len(every) > count else "")


def require_utf8(path: str) -> None:
    """Refuse a class folder whose name could not be written into the label map.

    Raises:
        RawDataError: the name is not UTF-8.
    """
    if not is_utf8(path):
        raise RawDataError(
            f"the name of the class folder `{safe(path)}` is not UTF-8, and labels are",
            hint="rename it: `convmv -f latin1 -t utf-8 --notest` does it for a whole folder",
        )
