"""The options of the source `imagefolder`, and the items of class folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    Splitter,
    Storage,
    Symlinks,
    UsageError,
    check_stratify,
    collision,
    hidden_part,
    image_size,
    is_split_name,
    link_problem,
    list_files,
    listed,
    normal_splits,
    safe,
)

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp")
"""In lower case; a file with another one can still be an image."""
_RESIZE = re.compile(r"([1-9][0-9]{0,4})(?:x([1-9][0-9]{0,4}))?")
_REENCODE = re.compile(r"png|jpeg:([1-9][0-9]?|100)")
_FIXED = 280
"""Bytes of an example beside its image, the file's name and the class's: keys, numbers, hash."""
_TAKES = "name the folder of the classes or of the splits with `--raw`"


@dataclass(frozen=True)
class ImageFolderOptions:
    """Options of the source `imagefolder`."""

    layout: Literal["auto", "class", "split", "flat"] = "auto"
    """`class`: folders of classes. `split`: folders of splits, with folders of classes in each.
    `flat`: a label file or `class_pattern` names the classes. `auto` finds out which it is."""
    split: tuple[str, ...] = ()
    """Splits by fractions, such as `train=0.8,validation=0.1,test=0.1`. Default: all images of a
    folder without splits are `train`."""
    group: str | None = None
    """With `split`: a regular expression, searched in the path below the class folder. Images with
    the same text in its first group stay in one split: `^(patient[0-9]+)_`."""
    stratify: bool = False
    """With `split`: each split has its share of the images of every class, to within one image."""
    extensions: tuple[str, ...] = ()
    """Take only files with these extensions, such as `jpg,jpeg,png`; a remark counts the others.
    Default: every file is an item. The format of a file is never taken from its name."""
    symlinks: Symlinks = "all"
    """`all`: follow symbolic links wherever they lead, as into DVC's cache. `inside`: follow those
    that stay in the raw folder. `none`: follow none."""
    labels_from: Literal[0, 1] = 0
    """The number of the first class."""
    label_file: str | None = None
    """A file that labels the images: CSV with file and label, lines of file and label, or one label
    per line in the order of the files' names, as ImageNet's synsets. A path from the raw folder on,
    also out of it, or an absolute path."""
    class_pattern: str | None = None
    """A regular expression, searched in the names of files: the text of its first group is the
    class. `^(n[0-9]+)_` for `n01440764_tench.jpg`."""
    twins: Literal["refuse", "apart"] = "refuse"
    """Handling of class names that differ only by case or Unicode normal form: refuse the folder,
    or keep them apart as different classes.
    """
    verify: Literal["header", "decode"] = "header"
    """`header`: read the header of each image. `decode`: decode each completely, and skip
    those that do not decode."""
    sha256: bool = True
    """Whether records have `image/key/sha256`, 64 characters by which `check` finds images that
    have changed."""
    resize: str | None = None
    """Make images smaller: `256` for the shorter side, `320x240` for width and height. Needs
    `reencode`."""
    reencode: str | None = None
    """Encode images again: `jpeg:90` or `png`. Default: their bytes are stored unchanged."""

    def __post_init__(self) -> None:
        Splitter(self.split, self.group)  # which checks both
        check_stratify(self.stratify, self.split, self.group)
        try:
            groups = re.compile(self.class_pattern or "()").groups
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"`class_pattern` cannot be used: {safe(str(error))}") from None
        labels = self.label_file is not None
        problems = {
            "`class_pattern` has no group in parentheses, whose text is the class": not groups,
            "`label_file` and `class_pattern` both name the classes": (
                labels and self.class_pattern is not None
            ),
            "`layout=flat` needs `label_file` or `class_pattern`": (
                self.layout == "flat" and not self.flat
            ),
            f"`{'label_file' if labels else 'class_pattern'}` needs `layout=flat`": (
                self.flat and self.layout in ("class", "split")
            ),
            "`split` and `layout=split` exclude each other: folders are splits already": (
                self.split and self.layout == "split"
            ),
            "`resize` expects the shorter side in pixels or WIDTHxHEIGHT: 256, or 320x240": (
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
    def hashed(self) -> tuple[str, ...]:
        """The shares by which hashes deal images; none where classes do."""
        return () if self.stratify else self.split

    @property
    def flat(self) -> bool:
        """Whether a label file or the names of files take the place of class folders."""
        return self.label_file is not None or self.class_pattern is not None

    @property
    def conversion(self) -> Conversion | None:
        """How images are encoded again; None where their bytes are stored unchanged."""
        if self.reencode is None:
            return None
        format_, _, quality = self.reencode.partition(":")
        found = _RESIZE.fullmatch(self.resize or "")
        first, second = (found[1], found[2]) if found else ("0", None)
        sides = (0, int(first), int(second)) if second else (int(first), 0, 0)
        return Conversion(*sides, format_, int(quality or 0))


class ItemClass(NamedTuple):
    """The data of an item besides its key, packed as MessagePack into its state.

    It is the same for all files of a class folder.
    """

    label: int
    folder: str
    """The part of the file's path before the key: empty, or the split's folder and `/`."""
    name: str
    """The name of the class."""

    def overhead(self, key: str) -> int:
        """Estimated bytes of an example beside its image."""
        return _FIXED + len(key.rpartition("/")[2].encode()) + len(self.name.encode())


@dataclass
class Listing:
    """The content of a raw folder."""

    layout: str
    """In words."""
    classes: list[str]
    """Class names in byte order."""
    entries: list[Item | Skipped]
    remarks: list[Remark]
    """On names that are not items, and on empty class folders."""
    other_files: list[RawFile] = field(default_factory=list)
    """Raw files that are not items: the label file."""

    def raw_files(self) -> Iterator[RawFile]:
        """The files of the items, and the others."""
        yield from self.other_files
        classes: dict[bytes, ItemClass] = {}
        for entry in self.entries:
            if isinstance(entry, Item):
                known = classes.get(entry.state)
                if known is None:
                    known = msgspec.msgpack.decode(entry.state, type=ItemClass)
                    classes[entry.state] = known
                size = entry.size - known.overhead(entry.key)
                # Without a folder before it the key is the path: one string serves as both.
                path = known.folder + entry.key if known.folder else entry.key
                yield RawFile(path, size, size)


class Walk:
    """Looks into folders, and keeps the names that it leaves out."""

    def __init__(self, raw: Storage, options: ImageFolderOptions, label_file: str = "") -> None:
        self.raw = raw
        self.symlinks = options.symlinks
        self._label_file = label_file
        self._suffixes = tuple(f".{each.lower().removeprefix('.')}" for each in options.extensions)
        self._left_out: dict[tuple[str, str], dict[str, None]] = {}

    def leave_out(self, split: str, kind: Literal["hidden", "stray"], path: str) -> None:
        """Keep a name that is not an item."""
        self._left_out.setdefault((split, kind), {})[path] = None

    def left_out(self) -> Iterator[Remark]:
        """A remark on the names left out so far, for each split and kind."""
        for (split, kind), paths in sorted(self._left_out.items()):
            first, times = next(iter(paths)), len(paths)
            names = "name," if times == 1 else "names, the first of them"
            detail = f"{times} {kind} {names} `{safe(first)}`"
            yield Remark(split, first, "SRC015", detail, times)

    def look(self, folder: str, split: str = "") -> Iterator[Entry]:
        """The names directly in a folder, links followed as far as the options allow. Hidden ones
        are left out, of `split` if there is one.
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
        """Path and size of every file below a folder, and why it cannot be opened. Hidden names
        are left out of `split`, and so are other extensions than those of the option.
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
    """The folders that hold class folders, and the split of each: the raw folder itself, whose path
    is empty, or folders of splits.

    Only names and kinds decide; no file is opened.
    """

    def holds_folders(entry: Entry) -> bool:
        return entry.kind == "dir" and any(each.kind == "dir" for each in walk.look(entry.path))

    root = safe(walk.raw.root, limit=4096)
    top = list(walk.look(""))
    folders = [entry for entry in top if entry.kind == "dir"]
    if not folders:
        raise RawDataError(
            f"`{root}` holds no folders: expected one for each class or split",
            hint="a file that labels the images can take the place of folders: "
            "`--option label_file=NAME`; or a pattern that finds the class in a file's name: "
            "`--option 'class_pattern=^(n[0-9]+)_'`",
        )
    usual = [entry for entry in top if entry.kind != "file" and is_usual_split(entry.path)]
    others = [entry.path for entry in folders if entry not in usual]
    # Some folders called like splits are splits if one of them holds folders.
    is_class = layout == "auto" and others and not any(map(holds_folders, usual))
    if layout == "class" or is_class:
        return {"": "train"}
    if layout == "auto" and others:
        raise RawDataError(
            f"`{root}` holds folders of splits ({_paths(usual)}) and others "
            f"({listed(others, most=3)})",
            hint="set `--option layout=split` or `--option layout=class`, or remove the others",
        )
    found = [entry.path for entry in folders if holds_folders(entry)]
    bare = [entry for entry in usual if entry.path not in found]
    if bare or not found:
        raise RawDataError(
            f"no class folders in {_paths(bare or folders)} of `{root}`",
            hint="put the images of a split into folders of classes, or take it out of the raw "
            "folder; or --option layout=class, if these are the classes",
        )
    return refuse_names(found, "split folders")


def list_class_folders(raw: Storage, options: ImageFolderOptions) -> Listing:
    """Items of class folders, with or without split folders above them."""
    walk = Walk(raw, options)
    folders = find_split_folders(walk, options.layout)
    in_splits = "" not in folders
    remarks = _unread(walk, folders) if in_splits else []
    if in_splits and options.split:
        raise UsageError(
            f"`split` assigns images to splits, and `{safe(raw.root, limit=4096)}` has folders of "
            f"splits: {listed(folders, most=3)}",
            hint="leave out the option, or set `--option layout=class` if these are classes",
        )
    splitters = {
        folder: Splitter(options.hashed, options.group, split) for folder, split in folders.items()
    }
    entries: list[Item | Skipped] = []
    classes: dict[str, list[str]] = {}  # the folders that hold one
    for folder, splitter in splitters.items():
        for found in walk.look(folder, splitter.names[0]):
            name = found.path.rpartition("/")[2]
            if found.kind == "dir":
                classes.setdefault(name, []).append(folder)
            elif found.kind == "link":  # it may well be a whole class
                split = splitter.split_of_group(found.path)
                entries.append(Skipped(split, name, "SRC011", link_problem(options.symlinks)))
            else:
                walk.leave_out(splitter.names[0], "stray", found.path)
    names = sort_classes(classes, options, "class folders")
    has_files = False
    for label, name in enumerate(names, start=options.labels_from):
        for folder in classes[name]:
            splitter = splitters[folder]
            prefix = f"{folder}/" if folder else ""
            path = prefix + name
            inside: set[str] = set()
            for entry, below in _class_items(walk, splitter, ItemClass(label, prefix, name)):
                entries.append(entry)
                inside.add(below)
            has_files = has_files or not inside or "" in inside
            if not inside:
                detail = f"no file in the class folder `{safe(path)}` is taken"
                remarks.append(Remark(splitter.names[0], path, "SRC033", detail))
            splits = sorted(filter(is_usual_split, inside))
            if splits and options.layout == "auto":
                raise RawDataError(
                    f"`{safe(path)}` holds folders of splits ({listed(splits)}), where a class "
                    "folder is expected",
                    hint="name the folder directly above the splits with `--raw`, or set "
                    "`--option layout=` if these are the classes",
                )
    if not entries or (options.layout == "auto" and not has_files):
        raise RawDataError(
            f"no file is directly in the class folders {listed(names, most=3)} of "
            f"`{safe(raw.root, limit=4096)}`",
            hint="name the folder directly above the classes or splits with `--raw`, or set "
            "`--option layout=` if these are the classes; `extensions` selects files",
        )
    for splitter in splitters.values():
        splitter.require_all(entries)
    layout = "split/class/file" if in_splits else "class/file"
    return Listing(layout, names, entries, [*walk.left_out(), *remarks])


def _class_items(
    walk: Walk, splitter: Splitter, item_class: ItemClass
) -> Iterator[tuple[Item | Skipped, str]]:
    """The items of a class folder, each with the folder in it that it is in; mostly empty."""
    state = msgspec.msgpack.encode(item_class)
    start = len(item_class.folder)
    path = item_class.folder + item_class.name
    for file, size, problem in walk.files(path, splitter.names[0]):
        key = file[start:] if start else file
        below = file[len(path) + 1 :]
        folder = below.partition("/")[0] if "/" in below else ""
        if problem is None:
            split = splitter.split(file, below)
            yield Item(split, key, size + item_class.overhead(key), state), folder
        else:
            split = splitter.split_of_group(file)
            yield Skipped(split, key, problem.code, problem.detail), folder


def _unread(walk: Walk, folders: Mapping[str, str]) -> list[Remark]:
    """Remarks on the folders that no split reads; all other names are stray."""
    split = next(iter(folders.values()))
    remarks = []
    for entry in walk.look("", split):
        if entry.path not in folders:
            is_folder = entry.kind == "dir"
            below = list_files(walk.raw, entry.path, symlinks=walk.symlinks) if is_folder else ()
            files = [each.kind == "file" and not hidden_part(each.path) for each in below]
            if inside := sum(files):
                number = "1 file" if inside == 1 else f"{inside:,} files"
                detail = f"{number} in the folder `{safe(entry.path)}`, which is not a split"
                remarks.append(Remark(split, entry.path, "SRC034", detail, inside))
            else:
                walk.leave_out(split, "stray", entry.path)
    return remarks


def sort_classes(names: Iterable[str], options: ImageFolderOptions, what: str) -> list[str]:
    """Names of classes in byte order; those that are not UTF-8, or twins, are refused."""
    try:
        found = sorted(names, key=str.encode)
    except UnicodeEncodeError as error:
        raise RawDataError(
            f"the class `{safe(str(error.object))}` is not UTF-8, and labels are",
            hint="rename it: `convmv -f latin1 -t utf-8 --notest` renames a whole folder",
        ) from None
    if options.twins == "refuse" and (twins := collision(found)):
        raise RawDataError(
            f"two {what} {twins}",
            hint="rename one of them, or keep them apart: --option twins=apart",
        )
    return found


def refuse_names(names: Sequence[str], what: str) -> dict[str, str]:
    """The normal spelling of names of splits; those that cannot be one are refused."""
    for name in names:
        if not is_split_name(name):
            raise RawDataError(
                f"`{safe(name)}` cannot be the name of a split: expected letters, digits and `_`",
                hint="rename it: the name becomes part of file names",
            )
    if twins := collision(names):
        raise RawDataError(f"two {what} {twins}", hint="rename one of them")
    return normal_splits(names)


def is_usual_split(name: str) -> bool:
    """Whether a name is `train`, `validation` or `test`, in any spelling."""
    return normal_splits([name])[name] in ("train", "validation", "test")


def _paths(entries: Iterable[Entry]) -> str:
    return listed((entry.path for entry in entries), most=3)
