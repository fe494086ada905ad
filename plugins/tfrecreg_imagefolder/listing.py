"""The options of the source `imagefolder`, and the items of class folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from tfrecreg.api import (
    Conversion,
    Entry,
    Item,
    RawDataError,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    Storage,
    Symlinks,
    UsageError,
    collision,
    hidden_part,
    image_size,
    is_split_name,
    link_problem,
    list_files,
    listed,
    normal_splits,
    paths_remark,
    safe,
    usual_split,
)

_RESIZE = re.compile(r"([1-9][0-9]{0,4})(?:x([1-9][0-9]{0,4}))?")
_REENCODE = re.compile(r"png|jpeg:([1-9][0-9]?|100)")
_FIXED = 280
"""Bytes of an example besides its image and the names of file and class: keys, numbers, hash."""


@dataclass(frozen=True)
class ImageFolderOptions:
    """Options of the source `imagefolder`."""

    layout: Literal["auto", "class", "split", "flat"] = "auto"
    """`class`: folders of classes. `split`: folders of splits, with folders of classes in each.
    `flat`: a label file or `class_pattern` names the classes. `auto` detects the layout."""
    extensions: tuple[str, ...] = ()
    """Take only files with these extensions, such as `jpg,jpeg,png`; a remark counts other files.
    Default: every file is an item. The format of a file is never taken from its name."""
    symlinks: Symlinks = "all"
    """`all`: follow all symbolic links, such as links into DVC's cache. `inside`: follow links
    that stay in the raw folder. `none`: follow no links."""
    labels_from: Literal[0, 1] = 0
    """The number of the first class."""
    label_file: str | None = None
    """A file that labels the images. It is CSV with file and label, or each line has a file and a
    label, or only a label. Single labels follow the order of the files' names, like ImageNet's
    synsets. The path is absolute or relative to the raw folder, and may lead out of it."""
    class_pattern: str | None = None
    """A regular expression for the names of files. The text of its first group is the class: for
    example, `^(n[0-9]+)_` finds the class `n01440764` in `n01440764_tench.jpg`."""
    twins: Literal["refuse", "apart"] = "refuse"
    """Handling of class names that differ only by case or Unicode normal form: refuse the folder,
    or keep them apart as different classes.
    """
    verify: Literal["header", "decode"] = "header"
    """`header`: read the header of each image. `decode`: decode each image completely, and skip
    images that do not decode."""
    sha256: bool = True
    """Whether records have the feature `image/key/sha256`. Its 64 characters let `check` find
    images that have changed."""
    resize: str | None = None
    """Make images smaller: `256` for the shorter side, `320x240` for width and height. Needs
    `reencode`."""
    reencode: str | None = None
    """Encode images again: `jpeg:90` or `png`. Default: their bytes are stored unchanged."""

    def __post_init__(self) -> None:
        try:
            groups = re.compile(self.class_pattern or "()").groups
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"`class_pattern` cannot be used: {safe(str(error))}") from None
        is_other_layout = self.layout in (("class", "split") if self.flat else ("flat",))
        problems = {
            "`class_pattern` needs a group in parentheses: its text is the class": not groups,
            "`label_file` and `class_pattern` cannot be used together": (
                self.label_file is not None and self.class_pattern is not None
            ),
            "only `layout=flat` takes `label_file` or `class_pattern`, and it needs one of them": (
                is_other_layout
            ),
            "`resize` expects the shorter side in pixels or WIDTHxHEIGHT, such as 256 or 320x240": (
                self.resize is not None and not _RESIZE.fullmatch(self.resize)
            ),
            "`reencode` expects `png`, or `jpeg:1` to `jpeg:100`": (
                self.reencode is not None and not _REENCODE.fullmatch(self.reencode)
            ),
            "`resize` needs `reencode`: resized images are encoded again": (
                self.resize is not None and self.reencode is None
            ),
        }
        for problem, is_wrong in problems.items():
            if is_wrong:
                raise UsageError(f"wrong options: {problem}")

    @property
    def flat(self) -> bool:
        """True if a label file or file names give the labels; false if class folders do."""
        return self.label_file is not None or self.class_pattern is not None

    @property
    def conversion(self) -> Conversion | None:
        """The new encoding of images; None if their bytes are stored unchanged."""
        if self.reencode is None:
            return None
        format_, _, quality = self.reencode.partition(":")
        found = _RESIZE.fullmatch(self.resize or "")
        first, second = (found[1], found[2]) if found else ("0", None)
        sides = (0, int(first), int(second)) if second else (int(first), 0, 0)
        return Conversion(*sides, format_, int(quality or 0))


class ItemClass(NamedTuple):
    """What an item's state contains, packed as MessagePack. The key is not part of the state.

    The state is the same for all files of a class folder.
    """

    label: int
    folder: str
    """The part of the path before the key. It is empty, or it is the split's folder and `/`."""
    name: str

    def overhead(self, key: str) -> int:
        """Estimated bytes of an example besides its image."""
        return _FIXED + len(key.rpartition("/")[2].encode()) + len(self.name.encode())

    def entry(self, split: str, key: str, size: int, problem: SkipImage | None) -> Item | Skipped:
        """The item of a file of this class, or the reason why the file is skipped."""
        if problem is not None:
            return Skipped(split, key, problem.code, problem.detail)
        return Item(split, key, size + self.overhead(key), _encode(self))


# All items of a class share their state.
_encode = lru_cache(maxsize=1 << 12)(msgspec.msgpack.encode)
decode_class = msgspec.msgpack.Decoder(ItemClass).decode
"""Decodes the state of an item."""


@dataclass
class Listing:
    layout: str
    """The layout in words."""
    classes: list[str]
    """Class names in byte order."""
    entries: list[Item | Skipped]
    remarks: list[Remark]
    """Remarks on names that are not items, and on empty class folders."""
    other_files: list[RawFile] = field(default_factory=list)
    """Raw files that are not items: the label file."""

    def raw_files(self) -> Iterator[RawFile]:
        """The files of the items, and the other raw files."""
        yield from self.other_files
        for entry in self.entries:
            if isinstance(entry, Item):
                known = decode_class(entry.state)
                size = entry.size - known.overhead(entry.key)
                # Without a folder before it, the path equals the key: one string serves as both.
                path = known.folder + entry.key if known.folder else entry.key
                yield RawFile(path, size, size)


class Walk:
    """Lists folders, and remembers which names it leaves out."""

    def __init__(self, raw: Storage, options: ImageFolderOptions, label_file: str = "") -> None:
        self.raw = raw
        self.symlinks = options.symlinks
        self._label_file = label_file
        self._suffixes = tuple(f".{each.lower().removeprefix('.')}" for each in options.extensions)
        self._left_out: dict[tuple[str, str], dict[str, None]] = {}

    def leave_out(self, split: str, kind: Literal["hidden", "stray"], path: str) -> None:
        self._left_out.setdefault((split, kind), {})[path] = None

    def left_out(self) -> Iterator[Remark]:
        """For each split and kind, a remark on the files that were left out so far."""
        for (split, kind), paths in sorted(self._left_out.items()):
            yield paths_remark(split, "SRC015", [*paths], f"{kind} files")

    def look(self, folder: str, split: str = "") -> Iterator[Entry]:
        """The names directly in a folder. Links are followed if the options allow it. Hidden names
        are left out. Unless `split` is empty, the hidden names are counted for `split`.
        """
        for entry in self.raw.list(folder, recursive=False):
            if hidden_part(entry.path):
                if split:
                    self.leave_out(split, "hidden", entry.path)
            elif entry.kind == "link" and self.symlinks != "none":
                found = self.raw.stat(entry.path, follow=self.symlinks)
                yield entry if found is None else replace(found, path=entry.path)
            else:
                yield entry

    def files(self, folder: str, split: str) -> Iterator[tuple[str, int, SkipImage | None]]:
        """Yield the path and size of every file below a folder. If a file cannot be opened, the
        third value is the reason. Hidden files and files with unwanted extensions are left out.
        They are counted as left-out files of `split`.
        """
        for entry in list_files(self.raw, folder, symlinks=self.symlinks):
            path = entry.path
            if hidden := hidden_part(path):
                self.leave_out(split, "hidden", hidden)
            elif self._suffixes and not path.lower().endswith(self._suffixes):
                self.leave_out(split, "stray", path)
            elif path != self._label_file:
                try:
                    yield path, image_size(path, entry, symlinks=self.symlinks), None
                except SkipImage as problem:
                    yield path, 0, problem


def find_split_folders(walk: Walk, layout: str) -> dict[str, str]:
    """Find folders that contain class folders, and map their paths to splits. Such a folder belongs
    to a split, or it is the raw folder. The path of the raw folder is empty.

    Only names and kinds decide; no file is opened.
    """

    def holds_folders(path: str) -> bool:
        return path in folders and any(each.kind == "dir" for each in walk.look(path))

    root = safe(walk.raw.root, limit=4096)
    top = list(walk.look(""))
    folders = [entry.path for entry in top if entry.kind == "dir"]
    if not folders:
        raise RawDataError(
            f"`{root}` holds no folders: expected one for each class or split",
            hint="`--option label_file=NAME` takes the classes from a file; `class_pattern` takes "
            "them from the names of the images",
        )
    usual = [each.path for each in top if each.kind != "file" and usual_split(each.path)]
    others = [path for path in folders if path not in usual]
    # Several folders with names of splits are splits if one of them contains folders.
    is_class = layout == "auto" and others and not any(map(holds_folders, usual))
    if layout == "class" or is_class:
        return {"": "train"}
    if layout == "auto" and others:
        raise RawDataError(
            f"`{root}` holds folders named like splits ({listed(usual, most=3)}) beside other "
            f"folders ({listed(others, most=3)}): set the option `layout` to `split` or `class`"
        )
    found = [path for path in folders if holds_folders(path)]
    bare = [path for path in usual if path not in found]
    if bare or not found:
        raise RawDataError(
            f"`{root}` has no class folders in {listed(bare or folders, most=3)}",
            hint="if these folders are the classes, set --option layout=class",
        )
    return refuse_names(found, "split folders")


def list_class_folders(raw: Storage, options: ImageFolderOptions) -> Listing:
    """Items of class folders, with or without split folders above them."""
    walk = Walk(raw, options)
    splits = find_split_folders(walk, options.layout)
    in_splits = "" not in splits
    remarks: list[Remark] = []
    first = next(iter(splits.values()))
    for entry in walk.look("", first) if in_splits else ():
        if entry.path not in splits:
            is_folder = entry.kind == "dir"
            below = list_files(raw, entry.path, symlinks=options.symlinks) if is_folder else ()
            for path in [each.path for each in below] or [entry.path]:
                walk.leave_out(first, "stray", path)
    entries: list[Item | Skipped] = []
    classes: dict[str, list[str]] = {}  # the parent folders of each class
    for folder, split in splits.items():
        for found in walk.look(folder, split):
            name = found.path.rpartition("/")[2]
            if found.kind == "dir":
                classes.setdefault(name, []).append(folder)
            elif found.kind == "link":  # it may lead to a whole class
                entries.append(Skipped(split, name, "SRC111", link_problem(options.symlinks)))
            else:
                walk.leave_out(split, "stray", found.path)
    names = sort_classes(classes, options, "class folders")
    has_files = False
    for label, name in enumerate(names, start=options.labels_from):
        for folder in classes[name]:
            split = splits[folder]
            item_class = ItemClass(label, f"{folder}/" if folder else "", name)
            path = item_class.folder + name
            before = len(entries)
            for file, size, problem in walk.files(path, split):
                inner, slash, _ = file[len(path) + 1 :].partition("/")
                has_files = has_files or not slash
                if slash and options.layout == "auto" and usual_split(inner):
                    raise RawDataError(
                        f"the class folder `{safe(path)}` holds the split folder `{safe(inner)}`",
                        hint="put the class folders into split folders, as in `train/cat`; "
                        "--option layout=class takes all files of each class folder",
                    )
                key = file[len(item_class.folder) :]
                entries.append(item_class.entry(split, key, size, problem))
            if len(entries) == before:
                has_files = True
                detail = f"no file in the class folder `{safe(path)}` is taken"
                remarks.append(Remark(split, path, "SRC118", detail))
    if not entries or (options.layout == "auto" and not has_files):
        raise RawDataError(
            f"no file is directly in the class folders {listed(names, most=3)} of "
            f"`{safe(raw.root, limit=4096)}`",
            hint="`--raw` takes the folder directly above the class folders or split folders; if "
            "the class folders are right, set `--option layout=split` (class folders inside split "
            "folders) or `--option layout=class`",
        )
    layout = "split/class/file" if in_splits else "class/file"
    return Listing(layout, names, entries, [*walk.left_out(), *remarks])


def sort_classes(names: Iterable[str], options: ImageFolderOptions, what: str) -> list[str]:
    """Class names in byte order. Names that are not UTF-8 are refused, and so are twins."""
    try:
        found = sorted(names, key=str.encode)
    except UnicodeEncodeError as error:
        raise RawDataError(
            f"the class `{safe(str(error.object))}` is not UTF-8, but labels must be UTF-8"
        ) from None
    if options.twins == "refuse" and (twins := collision(found)):
        raise RawDataError(f"two {what} {twins}", hint="--option twins=apart keeps them apart")
    return found


def refuse_names(names: Sequence[str], what: str) -> dict[str, str]:
    """Map split names to their usual spellings. Names that no split can have are refused."""
    for name in names:
        if not is_split_name(name):
            raise RawDataError(
                f"`{name}` cannot be the name of a split: expected letters, digits and `_`"
            )
    if twins := collision(names):
        raise RawDataError(f"two {what} {twins}")
    return normal_splits(names)
