"""The items of a folder: files, or files of one stem, with their splits, classes and features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tfrecreg.api import (
    Item,
    MediaKind,
    RawDataError,
    RawFile,
    Remark,
    Skipped,
    Storage,
    is_split_name,
    media_kind,
    normal_splits,
    safe,
)
from tfrecreg_folder.folder_options import FolderOptions
from tfrecreg_folder.found_files import FileFinder, FoundFile

_DEFAULT_SPLIT = "train"
_USUAL = ("train", "validation", "test")
_FIXED = 300
"""Bytes of an example beside its files."""


class FilePart(NamedTuple):
    """What a file of an item becomes."""

    suffix: str
    """With `pair`, the suffix of the file; else empty."""
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


class Grouping:
    """All items of a folder."""

    def __init__(self, raw: Storage, options: FolderOptions) -> None:
        self._options = options
        finder = FileFinder(raw, options)
        found = finder.files()
        if not found:
            some = ", ".join(f".{each}" for each in sorted(options.taken)) or "any suffix"
            raise RawDataError(
                f"`{safe(raw.root, limit=4096)}` holds no file with {some}",
                hint="name the folder of the files with --raw",
            )
        self.splits, loose = _split_folders(found, options, raw)
        left_out = set(loose)
        found = [each for each in found if each not in left_out]
        finder.leave_out(loose)
        self.files = [each for each in found if not each.code]
        kinds = sorted({media_kind(each.name) for each in self.files})
        self.parts = paired_parts(options) or [FilePart("", kind, kind) for kind in kinds]
        self.classes: list[str] = []
        if options.labels == "folder":
            self.classes = _classes(self.files, self.splits, raw)
        self._numbers = {name: number for number, name in enumerate(self.classes)}
        self.entries = list(self._entries(found))
        split = min((each.split for each in self.entries), default=_DEFAULT_SPLIT)
        self.remarks: list[Remark] = list(finder.remarks(split))

    @property
    def layout(self) -> str:
        """In words."""
        return "splits by folder" if self.splits else "no splits"

    def raw_files(self) -> Iterator[RawFile]:
        """The files of the items."""
        sizes = {each.path: each.size for each in self.files}
        for entry in self.entries:
            if isinstance(entry, Item):
                for path in unpack(entry.state).paths:
                    yield RawFile(path, sizes[path], sizes[path])

    def _entries(self, found: Sequence[FoundFile]) -> Iterator[Item | Skipped]:
        if not self._options.pair:
            for each in found:
                split, key = self._place(each.path)
                if each.code:
                    yield Skipped(split, key, each.code, each.detail)
                else:
                    yield self._item(split, key, [each])
            return
        groups: dict[str, dict[str, list[FoundFile]]] = {}
        for each in found:
            if each.code:
                split, key = self._place(each.path)
                yield Skipped(split, key, each.code, each.detail)
            else:
                groups.setdefault(each.stem, {}).setdefault(each.suffix, []).append(each)
        for stem, group in groups.items():
            split, key = self._place(stem)
            missing = [suffix for suffix in self._options.paired if suffix not in group]
            twice = [suffix for suffix, files in group.items() if len(files) > 1]
            if missing or twice:
                have = ", ".join(f"`{safe(each[0].name, limit=60)}`" for each in group.values())
                what = f"no `.{missing[0]}`" if missing else f"two files `.{twice[0]}`"
                yield Skipped(split, key, "SRC064", f"{what} beside {have}")
            else:
                files = [group[suffix][0] for suffix in self._options.paired]
                yield self._item(split, key, files)

    def _item(self, split: str, key: str, files: Sequence[FoundFile]) -> Item:
        label, name = -1, ""
        if self._options.labels == "folder":
            name = _class_of(files[0].path, self.splits)
            label = self._numbers[name]
        state = FileState([each.path for each in files], label, name)
        size = sum(each.size for each in files) + _FIXED * len(files)
        return Item(split, key, size, msgspec.msgpack.encode(state))

    def _place(self, path: str) -> tuple[str, str]:
        """Split and key: the path below the folder of the split."""
        top, _, rest = path.partition("/")
        if top in self.splits and rest:
            return self.splits[top], rest
        return _DEFAULT_SPLIT, path


def unpack(state: bytes) -> FileState:
    """The state of an item."""
    return msgspec.msgpack.decode(state, type=FileState)


def paired_parts(options: FolderOptions) -> list[FilePart]:
    """What the files of a pair become; empty without `pair`."""
    kinds = [media_kind(f".{suffix}") for suffix in options.paired]
    parts = []
    for suffix, kind in zip(options.paired, kinds, strict=True):
        # Two sounds of a pair, or two texts, are told apart by their suffixes.
        alone = kind != "file" and kinds.count(kind) == 1
        parts.append(FilePart(suffix, kind, kind if alone else suffix))
    return parts


def _split_folders(
    found: Sequence[FoundFile], options: FolderOptions, raw: Storage
) -> tuple[Mapping[str, str], list[FoundFile]]:
    """Split by name of its folder, empty without splits; and the files beside them, left out.

    A `README.md` beside `train/*.wav` is no data. A `.wav` there may be.
    """
    if options.layout == "flat":
        return {}, []
    tops = list(dict.fromkeys(each.path.partition("/")[0] for each in found if "/" in each.path))
    splits = normal_splits(tops)
    usual = [each for each in tops if splits[each] in _USUAL]
    if options.layout == "auto" and not usual:
        return {}, []
    root = safe(raw.root, limit=4096)
    loose = [each for each in found if "/" not in each.path]
    if options.layout == "auto":
        usual_suffixes = {each.suffix for each in found if "/" in each.path}
        others = [each.path for each in loose if each.suffix in usual_suffixes]
        others += [each for each in tops if each not in usual]
        if others:
            raise RawDataError(
                f"`{root}` holds folders of splits ({_names(usual)}) and others ({_names(others)})",
                hint="`--option layout=split` makes each folder a split and leaves out files "
                "beside them; `layout=flat` makes none of them a split",
            )
    if not tops:
        raise RawDataError(
            f"`{root}` holds no folder, and with `layout=split` each folder is a split",
            hint="leave `layout` out, or name the folder that holds those of the splits",
        )
    for name in tops:
        if not is_split_name(name):
            raise RawDataError(
                f"the name of the folder `{safe(name)}` cannot be the name of a split: "
                "expected letters, digits and `_`",
                hint="rename it: the name becomes part of file names",
            )
    return splits, loose


def _classes(files: Sequence[FoundFile], splits: Mapping[str, str], raw: Storage) -> list[str]:
    names = {_class_of(each.path, splits): each.path for each in files}
    if "" in names:
        raise RawDataError(
            f"`{safe(names[''])}` is in no folder of a class, directly in "
            f"`{safe(raw.root, limit=4096)}` or in the folder of a split",
            hint="with `labels=folder` every file is in the folder of its class",
        )
    return sorted(names, key=str.encode)


def _class_of(path: str, splits: Mapping[str, str]) -> str:
    """The folder that a file is in; empty for the raw folder and those of splits."""
    folder = path.rpartition("/")[0]
    if splits:
        folder = folder.partition("/")[2]
    return folder.rpartition("/")[2]


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{safe(name, limit=60)}`" for name in names[:3])
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")
