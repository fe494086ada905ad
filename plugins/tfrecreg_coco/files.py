"""Where the pictures of a split lie, and which of those that are named are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tfrecreg.api import RawDataError, Remark, Storage, UsageError, safe
from tfrecreg_coco.layout import Chosen, few
from tfrecreg_coco.options import named

__all__ = ["Folder", "Misplaced", "find_folder", "given_folders", "plain_path", "usual_folders"]

_MAX_BYTES = 1 << 30
"""Of a file that goes into a record."""
_MAX_NAME = 255
"""Bytes of a name that file systems take (`NAME_MAX`)."""
_MAX_PATH = 2048
"""Bytes of a path below the folder of the pictures: half of what Linux takes (`PATH_MAX`)."""
_LOOK = 20
"""So many of a split's pictures are looked for in a folder before it is taken for another's."""
_SAME = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
_PICTURES = (".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp")


class Misplaced(Exception):
    """A file that is named can not be read from where it is named to be."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


def plain_path(text: str) -> str:
    """A relative path as an annotation file says it, without `.` and doubled slashes.

    Raises:
        Misplaced: it is empty, absolute, goes up, or no file's name could be so.
    """
    if text.startswith("/") or text[1:3] in (":\\", ":/"):
        raise Misplaced("SRC021", f"the path `{safe(text)}` is absolute")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Misplaced("SRC021", f"the path `{safe(text)}` has a part `..`")
    try:
        sizes = [len(part.encode("utf-8")) for part in parts]
    except UnicodeEncodeError:
        raise Misplaced("SRC012", f"the name `{safe(text)}` is not UTF-8") from None
    if not parts or "\0" in text or max(sizes) > _MAX_NAME or sum(sizes) > _MAX_PATH:
        raise Misplaced("SRC021", f"`{safe(text)}` is no name of a file")
    return "/".join(parts)


class Folder:
    """A folder of pictures: what is in it, and which of that was named."""

    def __init__(self, raw: Storage, path: str, *, deep: bool) -> None:
        self.path = path
        self._raw = raw
        self._named: set[str] = set()
        self._sizes = dict(_files(raw, path, deep))

    def join(self, path: str) -> str:
        """`path` in this folder, as a path below the raw folder."""
        return f"{self.path}/{path}" if self.path else path

    def find(self, path: str) -> int:
        """Bytes of the file at `path`, which is below the raw folder.

        Raises:
            Misplaced: there is none, or none that may be read.
        """
        self._named.add(path)
        size = self._sizes.get(path)
        if size is None:
            size = _look(self._raw, path)
        if size > _MAX_BYTES:
            raise Misplaced("SRC007", f"the file has {size} bytes, more than {_MAX_BYTES}")
        return size

    def orphans(self, split: str) -> Iterator[Remark]:
        """One remark on the pictures that nobody named, where there are any."""
        alone = [
            path
            for path in self._sizes
            if path not in self._named and path.lower().endswith(_PICTURES)
        ]
        if alone:
            detail = f"no annotation file that was read names {few(alone)}"
            yield Remark(split, self.path or ".", "SRC030", detail, len(alone))


def _files(raw: Storage, folder: str, deep: bool) -> Iterator[tuple[str, int]]:
    """Paths and bytes of the files in a folder, and of those that links in it lead to."""
    for entry in raw.list(folder, recursive=deep):
        found = raw.stat(entry.path, follow="all") if entry.kind == "link" else entry
        if found is not None and found.kind == "file":
            yield entry.path, found.size


def _look(raw: Storage, path: str) -> int:
    """Bytes of a file that was not in its folder's listing: it may lie behind a link.

    Raises:
        Misplaced: there is none, or none that may be read.
    """
    entry = raw.stat(path, follow="all")
    if entry is None:
        raise Misplaced("SRC020", f"there is no file `{safe(path)}`")
    if entry.kind == "link":
        raise Misplaced("SRC011", "a symbolic link that leads nowhere or in a circle")
    if entry.kind != "file":
        what = "a folder" if entry.kind == "dir" else "a FIFO, a socket or a device"
        raise Misplaced("SRC010", f"expected a file, found {what}")
    return entry.size


class Place(NamedTuple):
    """What an option says of folders."""

    option: str
    by_split: Mapping[str, str]
    """Folder by split; under "" that of all other splits."""


def given_folders(option: str, values: tuple[str, ...], splits: Iterable[str]) -> Place:
    """The folders that the option `images` or `segments` names, by split.

    Raises:
        UsageError: one for a split that there is not, two for one, or no path.
    """
    found: dict[str, str] = {}
    known = set(splits)
    for split, path in named(values):
        if split and split not in known:
            raise UsageError(
                f"the option `{option}` names the split `{safe(split)}`, and there are "
                + ", ".join(f"`{each}`" for each in sorted(known)),
                hint="leave `SPLIT:` away for a folder of all splits",
            )
        if split in found:
            raise UsageError(
                f"the option `{option}` has two folders for {f'`{split}`' if split else 'all'}",
                hint=f"--option {option}=train:FOLDER,validation:FOLDER",
            )
        try:
            found[split] = "" if path in (".", "./") else plain_path(path)
        except Misplaced as error:
            raise UsageError(
                f"the option `{option}`: {error.detail}",
                hint="paths are relative to the raw folder, and stay in it",
            ) from None
    return Place(option, found)


def find_folder(
    raw: Storage, place: Place, chosen: Chosen, near: list[str], names: list[str], what: str
) -> str:
    """The folder in which the files of a split lie.

    Args:
        raw: the raw data.
        place: what the options say.
        chosen: the split.
        near: folders to look into, in this order, after those that are named like the split.
        names: files that should be in it, as annotations name them.
        what: what they are, for messages: ``"pictures"``.

    Raises:
        UsageError: the option names no folder.
        RawDataError: none of the files is in any of the usual places.
    """
    given = place.by_split.get(chosen.split, place.by_split.get(""))
    if given is not None:
        if _kind(raw, given) != "dir":
            raise UsageError(
                f"the option `{place.option}` names `{safe(given)}`, which is no folder in the "
                "raw folder",
                hint="paths are relative to the raw folder: `--dry-run` shows what is found",
            )
        return given
    wanted = []
    for name in names[:_LOOK]:
        try:
            wanted.append(plain_path(name))
        except Misplaced:
            continue
    candidates = list(dict.fromkeys(near))
    for folder in candidates:
        kind = _kind(raw, folder)
        if kind == "link":
            raise RawDataError(
                f"the folder `{safe(folder)}` is a symbolic link that leads nowhere",
                hint="correct the link, or put the folder itself there",
            )
        prefix = f"{folder}/" if folder else ""
        if kind == "dir" and any(_kind(raw, prefix + name) for name in wanted):
            return folder
    if not wanted:
        return candidates[0]
    places = few((folder or "." for folder in candidates if _kind(raw, folder) == "dir"), 6)
    raise RawDataError(
        f"none of the first {len(wanted)} {what} of the split `{chosen.split}` was found: looked "
        f"for `{safe(wanted[0])}` and so on in {places}",
        hint=f"--option {place.option}=FOLDER says where; --option splits= leaves a split out",
    )


def usual_folders(json_path: str, chosen: Chosen) -> list[str]:
    """The folders that a split's pictures usually lie in, the likeliest first."""
    own = json_path.rpartition("/")[0]
    above, _, last = own.rpartition("/")
    base = above if last == "annotations" else own
    words = dict.fromkeys([*chosen.words, chosen.split, *_SAME.get(chosen.split, ())])
    named_so = [
        _below(base, folder) for word in words if word for folder in (word, f"images/{word}")
    ]
    return [*named_so, own, _below(base, "images"), _below(base, "data"), base, ""]


def _below(base: str, path: str) -> str:
    return f"{base}/{path}" if base else path


def _kind(raw: Storage, path: str) -> str:
    entry = raw.stat(path, follow="all")
    return entry.kind if entry is not None else ""
