"""The items of a folder: files, or files of one stem, with their splits, classes and features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from tfrecreg.api import (
    Entry,
    Item,
    MediaKind,
    RawDataError,
    RawFile,
    Remark,
    Skipped,
    Storage,
    Symlinks,
    UsageError,
    hidden_part,
    is_split_name,
    link_problem,
    list_files,
    listed,
    media_kind,
    normal_splits,
    safe,
)

_DEFAULT_SPLIT = "train"
_USUAL = ("train", "validation", "test")
_FIXED = 300
"""Bytes of an example beside its files."""


@dataclass(frozen=True)
class FolderOptions:
    """Options of the source `folder`."""

    suffixes: tuple[str, ...] = ()
    """Take only files with these suffixes, such as `wav,flac`, in any case; a remark counts the
    others. Default: every file."""
    pair: tuple[str, ...] = ()
    """Files that differ by these suffixes only are one record: `wav,txt` for `clip.wav` beside
    `clip.txt`. Only files with these suffixes are taken."""
    labels: Literal["none", "folder"] = "none"
    """`folder`: the folder that a file is in is its class."""
    layout: Literal["auto", "split", "flat"] = "auto"
    """`split`: the top-level folders are splits. `flat`: all files are `train`. `auto`: they are
    splits if all of them have names of splits."""
    symlinks: Symlinks = "all"
    """`all`: follow symbolic links wherever they lead. `inside`: follow those that stay in the raw
    folder. `none`: follow none."""

    def __post_init__(self) -> None:
        if self.pair and (self.suffixes or len({*self.paired}) < max(len(self.pair), 2)):
            raise UsageError(
                "the option `pair` needs two different suffixes or more, and excludes `suffixes`",
                hint="--option pair=wav,txt",
            )

    @property
    def paired(self) -> tuple[str, ...]:
        """The suffixes of `pair`, in lower case and without the dot."""
        return tuple(each.lower().removeprefix(".") for each in self.pair)

    @property
    def taken(self) -> frozenset[str]:
        """The suffixes that are taken; empty for all."""
        suffixes = (each.lower().removeprefix(".") for each in self.suffixes)
        return frozenset(self.paired or suffixes)


class FilePart(NamedTuple):
    """What a file of an item becomes."""

    kind: MediaKind
    base: str
    """The names of the features begin with it."""


class FileState(NamedTuple):
    """The state of an item, packed as MessagePack."""

    paths: list[str]
    """Below the raw folder: one, or one of each suffix of `pair`."""
    label: int
    """The number of the class; -1 without labels."""
    name: str
    """The name of the class; empty without labels."""


class FoundFile(NamedTuple):
    """A file, or a name that cannot be opened."""

    path: str
    size: int
    code: str = ""
    """Why it cannot be opened: the code; empty if it can."""
    detail: str = ""

    @property
    def suffix(self) -> str:
        """What follows the last dot of the name, in lower case; empty without one."""
        stem, dot, suffix = self.path.rpartition("/")[2].rpartition(".")
        return suffix.lower() if dot and stem else ""

    @property
    def stem(self) -> str:
        """The path without the suffix."""
        return self.path[: -len(self.suffix) - 1] if self.suffix else self.path


class Listing:
    """All items of a folder."""

    def __init__(self, raw: Storage, options: FolderOptions) -> None:
        self._options = options
        self._root = safe(raw.root, limit=4096)
        hidden: dict[str, None] = {}
        stray: list[str] = []
        found: list[FoundFile] = []
        for entry in list_files(raw, symlinks=options.symlinks):
            each = _found(entry, options)
            if name := hidden_part(each.path):
                hidden[name] = None
            elif options.taken and not each.code and each.suffix not in options.taken:
                stray.append(each.path)
            else:
                found.append(each)
        found.sort()
        if not found:
            some = ", ".join(f".{each}" for each in sorted(options.taken)) or "any suffix"
            raise RawDataError(
                f"`{self._root}` holds no file with {some}",
                hint="name the folder of the files with --raw",
            )
        self.splits = self._split_folders(found)
        """Split by name of its folder; empty without splits."""
        if self.splits:
            # A `README.md` beside `train/*.wav` is no data.
            stray += [each.path for each in found if "/" not in each.path]
            found = [each for each in found if "/" in each.path]
        self.files = [each for each in found if not each.code]
        kinds = sorted({media_kind(each.path) for each in self.files})
        self.parts = paired_parts(options) or [FilePart(kind, kind) for kind in kinds]
        self.classes: list[str] = []
        if options.labels == "folder":
            names = {self._class_of(each.path): each.path for each in self.files}
            if "" in names:
                raise RawDataError(
                    f"`{safe(names[''])}` is in no folder of a class, directly in `{self._root}` "
                    "or in the folder of a split",
                    hint="with `labels=folder` every file is in the folder of its class",
                )
            self.classes = sorted(names, key=str.encode)
        self._numbers = {name: number for number, name in enumerate(self.classes)}
        self.entries = list(self._entries(found))
        split = min((each.split for each in self.entries), default=_DEFAULT_SPLIT)
        self.remarks: list[Remark] = []
        for kind, left_out in (("hidden", list(hidden)), ("stray", stray)):
            if left_out:
                words = "name," if len(left_out) == 1 else "names, the first of them"
                detail = f"{len(left_out)} {kind} {words} `{safe(left_out[0])}`"
                self.remarks.append(Remark(split, left_out[0], "SRC015", detail, len(left_out)))

    def raw_files(self) -> Iterator[RawFile]:
        """The files of the items."""
        sizes = {each.path: each.size for each in self.files}
        for entry in self.entries:
            if isinstance(entry, Item):
                for path in unpack(entry.state).paths:
                    yield RawFile(path, sizes[path], sizes[path])

    def _split_folders(self, found: Sequence[FoundFile]) -> Mapping[str, str]:
        layout = self._options.layout
        tops = dict.fromkeys(each.path.partition("/")[0] for each in found if "/" in each.path)
        splits = normal_splits(tops)
        usual = [each for each in tops if splits[each] in _USUAL]
        if layout == "flat" or (layout == "auto" and not usual):
            return {}
        if layout == "auto":
            suffixes = {each.suffix for each in found if "/" in each.path}
            loose = [each for each in found if "/" not in each.path]
            others = [each.path for each in loose if each.suffix in suffixes]
            others += [each for each in tops if each not in usual]
            if others:
                raise RawDataError(
                    f"`{self._root}` holds folders of splits ({listed(usual, most=3)}) and others "
                    f"({listed(others, most=3)})",
                    hint="`--option layout=split` makes each folder a split and leaves out files "
                    "beside them; `layout=flat` makes none of them a split",
                )
        wrong = [each for each in tops if not is_split_name(each)]
        if wrong or not tops:
            raise RawDataError(
                f"with `layout=split` each folder in `{self._root}` is a split, and its name has "
                f"letters, digits and `_`; other folders: {listed(wrong, most=3)}",
                hint="rename them, or leave `layout` out",
            )
        return splits

    def _entries(self, found: Sequence[FoundFile]) -> Iterator[Item | Skipped]:
        groups: dict[str, dict[str, list[FoundFile]]] = {}
        for each in found:
            split, key = self._place(each.path)
            if each.code:
                yield Skipped(split, key, each.code, each.detail)
            elif self._options.pair:
                groups.setdefault(each.stem, {}).setdefault(each.suffix, []).append(each)
            else:
                yield self._item(split, key, [each])
        for stem, group in groups.items():
            split, key = self._place(stem)
            missing = [suffix for suffix in self._options.paired if suffix not in group]
            twice = [suffix for suffix, files in group.items() if len(files) > 1]
            if missing or twice:
                names = [each[0].path.rpartition("/")[2] for each in group.values()]
                have = ", ".join(f"`{safe(name, limit=60)}`" for name in names)
                what = f"no `.{missing[0]}`" if missing else f"two files `.{twice[0]}`"
                yield Skipped(split, key, "SRC064", f"{what} beside {have}")
            else:
                files = [group[suffix][0] for suffix in self._options.paired]
                yield self._item(split, key, files)

    def _item(self, split: str, key: str, files: Sequence[FoundFile]) -> Item:
        name = self._class_of(files[0].path) if self.classes else ""
        state = FileState([each.path for each in files], self._numbers.get(name, -1), name)
        size = sum(each.size for each in files) + _FIXED * len(files)
        return Item(split, key, size, msgspec.msgpack.encode(state))

    def _place(self, path: str) -> tuple[str, str]:
        """Split and key: the path below the folder of the split."""
        top, _, rest = path.partition("/")
        if top in self.splits and rest:
            return self.splits[top], rest
        return _DEFAULT_SPLIT, path

    def _class_of(self, path: str) -> str:
        """The folder that a file is in; empty for the raw folder and those of splits."""
        folder = path.rpartition("/")[0]
        if self.splits:
            folder = folder.partition("/")[2]
        return folder.rpartition("/")[2]


def unpack(state: bytes) -> FileState:
    """The state of an item."""
    return msgspec.msgpack.decode(state, type=FileState)


def paired_parts(options: FolderOptions) -> list[FilePart]:
    """What the files of a pair become; empty without `pair`."""
    kinds = [media_kind(f".{suffix}") for suffix in options.paired]
    parts = []
    for suffix, kind in zip(options.paired, kinds, strict=True):
        # Two sounds of a pair, or two texts, differ by their suffixes.
        alone = kind != "file" and kinds.count(kind) == 1
        parts.append(FilePart(kind, kind if alone else suffix))
    return parts


def _found(entry: Entry, options: FolderOptions) -> FoundFile:
    found = FoundFile(entry.path, entry.size)
    if entry.kind == "link":
        return found._replace(size=0, code="SRC011", detail=link_problem(options.symlinks))
    if entry.kind != "file":
        detail = "a FIFO, a socket or a device, which is never opened"
        return found._replace(code="SRC010", detail=detail)
    if options.taken and found.suffix not in options.taken:
        return found
    try:
        entry.path.encode()
    except UnicodeEncodeError:
        return found._replace(code="SRC012", detail="the name is not UTF-8")
    return found
