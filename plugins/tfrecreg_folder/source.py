"""The source `folder`: each file, or each group of files with one stem, becomes one example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from tfrecreg.api import (
    Entry,
    Feature,
    ImageError,
    Item,
    MediaError,
    MediaKind,
    RawDataError,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    Source,
    Storage,
    Symlinks,
    UsageError,
    Written,
    bytes_feature,
    feature_schema,
    hidden_part,
    image_size,
    int64_feature,
    is_split_name,
    list_files,
    listed,
    media_codecs,
    media_features,
    media_kind,
    media_schema,
    normal_splits,
    paths_remark,
    read_media_file,
    safe,
    usual_split,
)

_DEFAULT_SPLIT = "train"
_FIXED = 300
"""Estimated number of bytes that a file adds to an example, not counting the file's content."""


@dataclass(frozen=True)
class FolderOptions:
    """Options of the source `folder`."""

    suffixes: tuple[str, ...] = ()
    """Take only files with these suffixes, such as `wav,flac`, in upper or lower case; a remark
    counts the other files. Default: every file."""
    pair: tuple[str, ...] = ()
    """Files that differ only by these suffixes form one record. For example, `wav,txt` makes one
    record of `clip.wav` and `clip.txt`. Only files with these suffixes are taken."""
    labels: Literal["none", "folder"] = "none"
    """`folder`: the name of a file's folder is its class."""
    layout: Literal["auto", "split", "flat"] = "auto"
    """`split`: the top-level folders are splits. `flat`: all files are `train`. `auto`: the folders
    are splits if all of them have names of splits."""
    symlinks: Symlinks = "all"
    """`all`: follow all symbolic links. `inside`: follow links that stay in the raw
    folder. `none`: follow no links."""

    def __post_init__(self) -> None:
        if self.pair and (self.suffixes or len({*self.paired}) < max(len(self.pair), 2)):
            raise UsageError(
                "`pair` needs at least two different suffixes, and cannot be used with `suffixes`"
            )

    @property
    def paired(self) -> tuple[str, ...]:
        """The suffixes of `pair`, in lower case and without the dot."""
        return tuple(each.lower().removeprefix(".") for each in self.pair)

    @property
    def taken(self) -> frozenset[str]:
        """The suffixes of the files that are taken; empty if all files are taken."""
        suffixes = (each.lower().removeprefix(".") for each in self.suffixes)
        return frozenset(self.paired or suffixes)


class FileState(NamedTuple):
    """The state of an item, packed as MessagePack."""

    paths: list[str]
    """Paths below the raw folder: one, or one per suffix of `pair`."""
    label: int
    """-1 without labels."""
    name: str


class Listing:
    def __init__(self, raw: Storage, options: FolderOptions) -> None:
        self._options = options
        self._root = raw.root
        hidden: dict[str, None] = {}
        stray: list[str] = []
        found: list[Entry] = []
        for entry in list_files(raw, symlinks=options.symlinks):
            suffix = suffix_of(entry.path)
            if name := hidden_part(entry.path):
                hidden[name] = None
            elif options.taken and entry.kind == "file" and suffix not in options.taken:
                stray.append(entry.path)
            else:
                found.append(entry)
        if not found:
            some = ", ".join(f".{each}" for each in sorted(options.taken)) or "any suffix"
            raise RawDataError(f"`{raw.root}` holds no file with {some}")
        self.splits = self._split_folders([each.path for each in found])
        """The split of each folder, by the folder's name; empty if no folder is a split."""
        if self.splits:
            # A `README.md` next to the folder `train` is not data.
            stray += [each.path for each in found if "/" not in each.path]
            found = [each for each in found if "/" in each.path]
        self.sizes: dict[str, int] = {}
        self.entries: list[Item | Skipped] = []
        for entry in found:
            try:
                size = image_size(entry.path, entry, symlinks=options.symlinks)
                self.sizes[entry.path] = size
            except SkipImage as problem:
                place = self._place(entry.path)
                self.entries.append(Skipped(*place, problem.code, problem.detail))
        kinds = sorted({media_kind(path) for path in self.sizes})
        self.parts = paired_parts(options) or [(kind, kind) for kind in kinds]
        self.classes: list[str] = []
        if options.labels == "folder":
            names = {self._class_of(path): path for path in self.sizes}
            if "" in names:
                raise RawDataError(
                    f"`{names['']}` has no class: it is not in the folder of a class, but directly "
                    f"in `{raw.root}` or in the folder of a split"
                )
            self.classes = sorted(names, key=str.encode)
        self._numbers = {name: number for number, name in enumerate(self.classes)}
        if options.pair:
            self.entries += self._pairs()
        else:
            self.entries += (self._item(*self._place(path), [path]) for path in self.sizes)
        split = min(each.split for each in self.entries)
        left_out = {"hidden files": [*hidden], "other files": stray}
        self.remarks = [
            paths_remark(split, "SRC015", paths, why) for why, paths in left_out.items() if paths
        ]

    def _split_folders(self, paths: Sequence[str]) -> Mapping[str, str]:
        layout = self._options.layout
        tops = dict.fromkeys(path.partition("/")[0] for path in paths if "/" in path)
        usual = [each for each in tops if usual_split(each)]
        if layout == "flat" or (layout == "auto" and not usual):
            return {}
        others = [each for each in tops if each not in usual]
        if layout == "auto" and others:
            raise RawDataError(
                f"`{self._root}` holds folders named like splits ({listed(usual, most=3)}) "
                f"beside other folders ({listed(others, most=3)})",
                hint="`--option layout=split` makes each folder a split; `layout=flat` makes none "
                "of them a split",
            )
        wrong = [each for each in tops if not is_split_name(each)]
        if wrong or not tops:
            raise RawDataError(
                f"`layout=split` needs folders in `{self._root}` whose names consist of letters, "
                f"digits and `_`; folders with other names: {listed(wrong, most=3)}"
            )
        return normal_splits(tops)

    def _pairs(self) -> Iterator[Item | Skipped]:
        groups: dict[str, dict[str, list[str]]] = {}
        for path in self.sizes:
            suffix = suffix_of(path)
            groups.setdefault(path[: -len(suffix) - 1], {}).setdefault(suffix, []).append(path)
        for stem, group in groups.items():
            split, key = self._place(stem)
            missing = [suffix for suffix in self._options.paired if suffix not in group]
            twice = [suffix for suffix, paths in group.items() if len(paths) > 1]
            if missing or twice:
                names = [paths[0].rpartition("/")[2] for paths in group.values()]
                have = ", ".join(f"`{safe(name, limit=60)}`" for name in names)
                what = f"no `.{missing[0]}`" if missing else f"two `.{twice[0]}` files"
                yield Skipped(split, key, "SRC112", f"{what} next to {have}")
            else:
                yield self._item(split, key, [group[each][0] for each in self._options.paired])

    def _item(self, split: str, key: str, paths: list[str]) -> Item:
        name = self._class_of(paths[0]) if self.classes else ""
        state = FileState(paths, self._numbers.get(name, -1), name)
        size = sum(self.sizes[path] + _FIXED for path in paths)
        return Item(split, key, size, msgspec.msgpack.encode(state))

    def _place(self, path: str) -> tuple[str, str]:
        """The split and the key of a file. The key is the path below the folder of the split."""
        top, _, rest = path.partition("/")
        if top in self.splits and rest:
            return self.splits[top], rest
        return _DEFAULT_SPLIT, path

    def _class_of(self, path: str) -> str:
        """The name of the folder with the file; empty if that is the raw folder or a split's
        folder."""
        return self._place(path)[1].rpartition("/")[0].rpartition("/")[2]


unpack = msgspec.msgpack.Decoder(FileState).decode
"""Decodes the state of an item."""


def paired_parts(options: FolderOptions) -> list[tuple[MediaKind, str]]:
    """The kind of each file of a pair, and the prefix of its features' names. Empty if the option
    `pair` is not set.
    """
    kinds = [media_kind(f".{suffix}") for suffix in options.paired]
    # Two sounds of a pair, or two texts, differ by their suffixes.
    return [
        (kind, kind if kind != "file" and kinds.count(kind) == 1 else suffix)
        for suffix, kind in zip(options.paired, kinds, strict=True)
    ]


def suffix_of(path: str) -> str:
    """The part of a name after the last dot, in lower case; empty without a dot."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return suffix.lower() if dot and stem else ""


_LABEL, _TEXT = "class/label", "class/text"


class FolderSource(Source):
    """Files of any kind. An item's key is its path below the folder of its split. With `pair`, the
    key has no suffix.

    The parent process lists the folder once. A worker opens only the files of its items.
    """

    Options: ClassVar[type[Any]] = FolderOptions

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent: an item contains everything that a worker needs.
        return type(self), (self.raw, self.options)

    @cached_property
    def _pair(self) -> list[tuple[MediaKind, str]]:
        return paired_parts(self.options)

    @cached_property
    def _listing(self) -> Listing:
        return Listing(self.raw, self.options)

    def raw_files(self) -> Iterator[RawFile]:
        for entry in self._listing.entries:
            if isinstance(entry, Item):
                for path in unpack(entry.state).paths:
                    size = self._listing.sizes[path]
                    yield RawFile(path, size, size)

    def labels(self) -> Mapping[str, Sequence[str]]:
        return {_LABEL: self._listing.classes} if self.options.labels == "folder" else {}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._listing.entries
        yield from self._listing.remarks

    def class_of(self, item: Item) -> str | None:
        return unpack(item.state).name or None

    def schema(self) -> str:
        parts = self._listing.parts
        required = bool(self._pair) or len(parts) == 1
        text = "".join(media_schema(kind, base, required=required) for kind, base in parts)
        if self.options.labels == "folder":
            most = max(len(self._listing.classes) - 1, 0)
            domain = f"int_domain {{ min: 0 max: {most} is_categorical: true }}"
            text += feature_schema(_LABEL, "INT", "one", domain)
            text += feature_schema(_TEXT, "BYTES", "one")
        return text

    def codecs(self) -> Mapping[str, str]:
        return media_codecs(kind for kind, _ in self._listing.parts)

    def describe(self) -> Mapping[str, str]:
        listing = self._listing
        counts = sorted(Counter(map(suffix_of, listing.sizes)).items())
        found = {
            "layout": "splits by folder" if listing.splits else "no splits",
            "files": listed([f"{count} .{suffix}" for suffix, count in counts], most=8),
            "features": ", ".join(f"{base}/…" for _, base in listing.parts),
        }
        if listing.classes:
            found["classes"] = f"{len(listing.classes)} ({listed(listing.classes, most=3)})"
        if listing.remarks:
            found["left out"] = ", ".join(remark.detail for remark in listing.remarks)
        return found

    def raw_path(self, split: str, key: str) -> str | None:
        """The raw file of a record. With `pair`, it is the first file of the pair."""
        folders = {name: folder for folder, name in self._listing.splits.items()}
        path = f"{folders[split]}/{key}" if split in folders else key
        if not self.options.pair:
            return path
        path = f"{path}.{self.options.paired[0]}"
        return path if self.raw.stat(path, follow="all") is not None else None

    def example(self, item: Item) -> Written | Skipped:
        state = unpack(item.state)
        example: dict[str, Feature] = {}
        remarks = []
        first = media_kind(state.paths[0])
        for path, (kind, base) in zip(state.paths, self._pair or [(first, first)], strict=True):
            name = path.rpartition("/")[2]
            try:
                made = media_features(kind, base, name, read_media_file(self.raw, path))
            except (ImageError, MediaError) as error:
                detail = f"`{safe(path)}`: {error.detail}" if self.options.pair else error.detail
                return Skipped(item.split, item.key, error.code, detail)
            example.update(made.features)
            if made.code:
                remarks.append(Remark(item.split, item.key, made.code, made.detail))
        if state.label >= 0:
            example[_LABEL] = int64_feature(state.label)
            example[_TEXT] = bytes_feature(state.name)
        return Written(example, remarks)
