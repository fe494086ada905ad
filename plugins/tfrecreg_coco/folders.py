"""The folders of a split's images, and the existing ones among the listed images."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from tfrecreg.api import (
    Entry,
    RawDataError,
    Remark,
    SkipImage,
    Storage,
    UsageError,
    image_size,
    path_ends,
    paths_remark,
    safe,
)
from tfrecreg_coco.files import Chosen, format_names, split_and_path, target_kind

_MAX_NAME = 255
"""Most bytes of a name that file systems take (`NAME_MAX`)."""
_MAX_PATH = 2048
"""Maximum bytes of a path below the folder of the images: half of Linux's `PATH_MAX`."""
_PROBED = 20
"""Number of a split's images to look for in a folder before trying another folder."""
_SPELLINGS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
_SUFFIXES = (".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp")


def plain_path(text: str) -> str:
    """A relative path as an annotation file has it, without `.` and doubled slashes."""
    if text.startswith("/") or text[1:3] in (":\\", ":/"):
        raise SkipImage("SRC021", f"the path `{safe(text)}` is absolute")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise SkipImage("SRC021", f"the path `{safe(text)}` has a part `..`")
    sizes = [len(part.encode("utf-8", "surrogateescape")) for part in parts]
    if not parts or "\0" in text or max(sizes) > _MAX_NAME or sum(sizes) > _MAX_PATH:
        raise SkipImage("SRC021", f"`{safe(text)}` is not a file name")
    return "/".join(parts)


class ImageFolder:
    """A folder of images: the files in it, or also below it (`deep`), and the listed ones."""

    def __init__(self, raw: Storage, path: str, *, deep: bool) -> None:
        self.path = path
        self.deep = deep
        self._raw = raw
        self._named: set[str] = set()
        self._moved: list[str] = []
        self._files: dict[str, Entry] = {}
        for entry in raw.list(path, recursive=deep):
            target = raw.stat(entry.path, follow="all") if entry.kind == "link" else entry
            if target is not None and target.kind == "file":
                self._files[entry.path] = target

    def path_of(self, name: str) -> str:
        """Path below the raw folder of the file that annotations call `name`.

        A path of another machine or of Windows is that of the file with the same end.
        """
        for end in _foreign_ends(name):
            path = below(self.path, end)
            if path in self._files:
                if end != name.replace("\\", "/"):
                    self._moved.append(name)
                return path
        return below(self.path, plain_path(name))

    def size_of(self, path: str) -> int:
        """Size in bytes of the file at `path`, which is below the raw folder."""
        self._named.add(path)
        # A file that is not in the folder's listing may be below a link.
        return image_size(path, self._files.get(path) or self._raw.stat(path, follow="all"))

    def moved(self, split: str) -> Iterator[Remark]:
        """One remark on the files that were found by the ends of their paths."""
        if self._moved:
            why = "paths that lead out of the raw folder; the files with the same ends were read"
            yield paths_remark(split, "SRC045", self._moved, why)

    def orphans(self, split: str) -> Iterator[Remark]:
        """One remark on the images that no annotation file named, where there are any."""
        paths = [path for path in self._files if path not in self._named and _is_image(path)]
        if paths:
            detail = f"no annotation file that was read names {format_names(paths)}"
            yield Remark(split, self.path or ".", "SRC030", detail, len(paths))


def _foreign_ends(name: str) -> list[str]:
    """The ends of a path that is none of this folder: absolute, upwards, or with backslashes."""
    foreign = "\\" in name or name.startswith(("/", "../")) or name[1:3] == ":/" or "/../" in name
    return path_ends(name) if foreign and "\0" not in name else []


def _is_image(path: str) -> bool:
    return path.lower().endswith(_SUFFIXES)


def unread_folders(
    raw: Storage, used: Mapping[str, ImageFolder], aside: Collection[str], split: str
) -> Iterator[Remark]:
    """A remark on each folder with images that no split reads, the outermost ones."""
    parts = [path.split("/") for path in (*used, *aside)]
    above = {"/".join(each[:end]) for each in parts for end in range(len(each))}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        name = folder.rpartition("/")[2]
        passed = folder in aside or (folder in used and used[folder].deep)
        if passed or name.startswith((".", "panoptic")) or name == "annotations":
            continue
        inside = folder in used or folder in above
        paths = []
        for entry in raw.list(folder, recursive=not inside):
            if inside and target_kind(raw, entry.path) == "dir":
                waiting.append(entry.path)
            elif folder not in used and _is_image(entry.path):
                paths.append(entry.path)
        if paths:
            images = "the image" if len(paths) == 1 else f"any of the {len(paths):,} images"
            detail = (
                f"no annotation file that was read names {images} in the folder, such as "
                f"`{safe(min(paths))}`"
            )
            yield Remark(split, folder or ".", "SRC030", detail, len(paths))


class FolderFinder:
    """Finds the folder of each split: the one that an option names, or a usual one."""

    def __init__(
        self,
        raw: Storage,
        option: Literal["images", "segments"],
        values: Sequence[str],
        splits: Collection[str],
    ) -> None:
        self._raw = raw
        self._option = option
        self._named: dict[str, str] = {}  # by split; under "" the folder of all other splits
        for split, path in map(split_and_path, values):
            if split and split not in splits:
                raise UsageError(
                    f"the option `{option}` names the split `{safe(split)}`, and there are "
                    + ", ".join(f"`{each}`" for each in sorted(splits)),
                    hint="leave out `SPLIT:` for a folder of all splits",
                )
            if split in self._named:
                raise UsageError(
                    f"the option `{option}` has two folders for {f'`{split}`' if split else 'all'}",
                    hint=f"--option {option}=train:FOLDER,validation:FOLDER",
                )
            try:
                self._named[split] = "" if path in (".", "./") else plain_path(path)
            except SkipImage as error:
                raise UsageError(
                    f"the option `{option}`: {error.detail}",
                    hint="paths are relative to the raw folder, and stay in it",
                ) from None

    def find(
        self, split: str, candidates: Sequence[str], names: Sequence[str], urls: Callable[[], str]
    ) -> str:
        """The folder of a split's files."""
        raw = self._raw
        named = self._named.get(split, self._named.get(""))
        if named is not None:
            if target_kind(raw, named) != "dir":
                raise UsageError(
                    f"the option `{self._option}` names `{safe(named)}`, which is not a folder in "
                    "the raw folder",
                    hint="paths are relative to the raw folder: `--dry-run` lists the files found",
                )
            return named
        wanted = []
        for name in names[:_PROBED]:
            for path in (name, *_foreign_ends(name)):
                with suppress(SkipImage):
                    wanted.append(plain_path(path))
        searched = []
        for folder in dict.fromkeys(candidates):
            if target_kind(raw, folder) == "dir":
                searched.append(folder or ".")
                if any(target_kind(raw, below(folder, name)) for name in wanted):
                    return folder
        if not wanted:
            return candidates[0]
        kind = "images" if self._option == "images" else "PNGs"
        member = urls()
        online = f"; their URLs (`{safe(member)}`) are not fetched" if member else ""
        fetch = "download them into `images`; " if member else ""
        raise RawDataError(
            f"none of the first {len(names[:_PROBED])} {kind} of the split `{split}` was found: "
            f"looked for `{safe(wanted[0])}` and so on in {format_names(searched, 6)}{online}",
            hint=f"{fetch}--option {self._option}=FOLDER names the folder; --option splits= leaves "
            "a split out",
        )


def usual_folders(json_path: str, chosen: Chosen) -> list[str]:
    """The folders that usually hold a split's images, the most likely first."""
    own = json_path.rpartition("/")[0]
    above, _, last = own.rpartition("/")
    base = above if last == "annotations" else own
    words = dict.fromkeys([*chosen.words, chosen.split, *_SPELLINGS.get(chosen.split, ())])
    of_split = [
        below(base, folder) for word in words if word for folder in (word, f"images/{word}")
    ]
    return [*of_split, own, below(base, "images"), below(base, "data"), base, ""]


def below(folder: str, path: str) -> str:
    """The path of what is at `path` in a folder."""
    return f"{folder}/{path}" if folder else path
