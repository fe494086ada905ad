"""All items of a raw folder, with their splits and labels. One look at the folder makes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from tfrecreg.api import Item, RawDataError, RawFile, Skipped, Storage, UsageError, safe
from tfrecreg_imagefolder.layout import (
    Folder,
    few,
    find_folders,
    is_usual_split,
    refuse_twins,
    require_utf8,
)
from tfrecreg_imagefolder.options import ImageFolderOptions
from tfrecreg_imagefolder.shares import Shares
from tfrecreg_imagefolder.walk import LeftOut, Node, Walker

__all__ = ["Listing", "Place", "Splitter", "list_folders", "make_item"]

_ENOUGH = 1_000
"""So many names of a class folder say what it is."""
_FIXED = 280
"""Bytes of an example beside its picture, the file's name and the class's: keys, numbers, hash."""


class Place(NamedTuple):
    """What an item needs beyond its key; the same for all files of a class folder."""

    label: int
    folder: str
    """What comes before the key in the path of the file: empty, or the split's folder and `/`."""
    text: str
    """The name of the class."""

    def pack(self) -> bytes:
        """As the state of an item."""
        folder = self.folder.encode()
        head = self.label.to_bytes(4, "big") + len(folder).to_bytes(2, "big")
        return head + folder + self.text.encode()

    @classmethod
    def unpack(cls, state: bytes) -> Place:
        """From the state of an item."""
        end = 6 + int.from_bytes(state[4:6], "big")
        return cls(int.from_bytes(state[:4], "big"), state[6:end].decode(), state[end:].decode())


@dataclass
class Listing:
    """What a raw folder holds."""

    layout: str
    """``class``, ``split`` or ``flat``."""
    classes: list[str]
    """In the order of their bytes."""
    entries: list[Item | Skipped] = field(default_factory=list)
    others: list[RawFile] = field(default_factory=list)
    """Raw files that are no items: the label file."""
    left_out: list[LeftOut] = field(default_factory=list)
    """Names that are no items."""
    unused: list[str] = field(default_factory=list)
    """Classes without a single item."""

    def raw_files(self) -> Iterator[RawFile]:
        """The files of the items, and the others."""
        yield from self.others
        places: dict[bytes, Place] = {}
        for entry in self.entries:
            if isinstance(entry, Item):
                place = places.get(entry.state)
                if place is None:
                    place = places[entry.state] = Place.unpack(entry.state)
                size = entry.size - _overhead(entry.key, place.text)
                # Without a folder before it the key is the path: one string serves as both.
                path = place.folder + entry.key if place.folder else entry.key
                yield RawFile(path, size, size)


class Splitter:
    """Which split a path below a folder of classes goes to."""

    def __init__(self, options: ImageFolderOptions, default: str) -> None:
        self._shares = Shares(options.split) if options.split else None
        self._pattern = re.compile(options.group) if options.group is not None else None
        self._default = default

    @property
    def first(self) -> str:
        """The first split: what is about no picture is counted there."""
        return self._default if self._shares is None else self._shares.names[0]

    def __call__(self, path: str, below: str) -> str:
        """The split.

        Args:
            path: which stands for itself where no group is asked for.
            below: the part of it that the pattern looks at.

        Raises:
            RawDataError: the pattern finds no group in it.
        """
        if self._shares is None:
            return self._default
        if self._pattern is None:
            return self._shares.split(path)
        match = self._pattern.search(below)
        if match is None or match[1] is None:
            raise RawDataError(
                f"`group` finds nothing in `{safe(path)}`: every picture needs a group, or it "
                "could land in another split than those it belongs to",
                hint="widen the pattern, or take the file out of the raw folder",
            )
        return self._shares.split(match[1])

    def of_skipped(self, path: str) -> str:
        """The split that a skipped item is listed under; the pattern has no say."""
        return self._default if self._shares is None else self._shares.split(path)

    def check(self, entries: Iterable[Item | Skipped]) -> None:
        """Refuse shares so small that a split got nothing.

        Raises:
            RawDataError: a split that was asked for has no item among `entries`.
        """
        if self._shares is None:
            return
        found = {entry.split for entry in entries if isinstance(entry, Item)}
        missing = set(self._shares.names) - found
        if missing:
            raise RawDataError(
                f"the split `{safe(min(missing))}` got no picture: there are too few of them, or "
                "of their groups, for its share",
                hint="make its share larger, or leave it away",
            )


def _overhead(path: str, text: str) -> int:
    """Estimated bytes of an example beside its picture."""
    name = path.rpartition("/")[2]
    return _FIXED + len(name.encode("utf-8", "surrogateescape")) + len(text.encode())


def make_item(split: str, key: str, size: int, place: Place, state: bytes) -> Item:
    """The item of a file of `size` bytes; `state` is the packed `place`."""
    return Item(split, key, size + _overhead(key, place.text), state)


def list_folders(raw: Storage, options: ImageFolderOptions) -> Listing:
    """Items of folders of classes, with or without folders of splits above them.

    Raises:
        RawDataError: the folders are not laid out so, or a class has a name that cannot be kept.
        UsageError: fractions were asked for, and there are splits already.
    """
    walker = Walker(raw, options.extensions, options.symlinks)
    assert options.layout != "flat"
    layout, folders = find_folders(walker, options.layout)
    if layout == "split" and options.split:
        raise UsageError(
            f"`split` deals pictures to splits, and `{safe(raw.root, limit=4096)}` has folders of "
            f"splits: {few(folder.path for folder in folders)}",
            hint="leave the option away, or say `--option layout=class` if these are classes",
        )
    splitters = {folder.path: Splitter(options, folder.split) for folder in folders}
    classes: dict[str, list[tuple[Folder, Node]]] = {}
    entries: list[Item | Skipped] = []
    for folder in folders:
        walker.split = splitters[folder.path].first
        for node in walker.look(folder.path):
            if node.kind == "dir":
                require_utf8(node.path)
                classes.setdefault(node.name, []).append((folder, node))
            elif node.code == "SRC011":  # it may well be a whole class
                split = splitters[folder.path].of_skipped(node.path)
                entries.append(Skipped(split, node.name, node.code, node.detail))
            else:
                walker.leave_out("stray", node.path)
    names = sorted(classes, key=str.encode)
    if options.twins == "refuse":
        hint = "rename one of them, or keep them apart: --option twins=apart"
        refuse_twins(names, "class folders", hint)
    if options.layout == "auto":
        _refuse_other_levels(walker, layout, [node for name in names for _, node in classes[name]])
    unused = []
    for label, name in enumerate(names, start=options.labels_from):
        count = len(entries)
        for folder, node in classes[name]:
            entries.extend(_class_items(walker, splitters[folder.path], folder, node, label))
        if len(entries) == count:
            unused.append(name)
    if len(unused) == len(names) and not entries:
        raise RawDataError(
            f"`{safe(raw.root, limit=4096)}` has no picture in its class folders: {few(names)}",
            hint="`--raw` takes the folder of the classes or of the splits; "
            "`extensions` says which files are taken",
        )
    for splitter in splitters.values():
        splitter.check(entries)
    return Listing(layout, names, entries, left_out=walker.left_out, unused=unused)


def _class_items(
    walker: Walker, split: Splitter, folder: Folder, node: Node, label: int
) -> Iterator[Item | Skipped]:
    prefix = f"{folder.path}/" if folder.path else ""
    place = Place(label, prefix, node.name)
    state = place.pack()
    walker.split = split.first
    for file in walker.files(node.path, above=(*folder.ids, node.id)):
        key = file.path[len(prefix) :] if prefix else file.path
        if file.kind == "file":
            chosen = split(file.path, file.path[len(node.path) + 1 :])
            yield make_item(chosen, key, file.size, place, state)
        else:
            yield Skipped(split.of_skipped(file.path), key, file.code, file.detail)


def _refuse_other_levels(walker: Walker, layout: str, nodes: Sequence[Node]) -> None:
    """Refuse a folder that lies a level too high: its "classes" would hold classes, or splits.

    Raises:
        RawDataError: a class folder holds folders of splits, or none holds a file.
    """
    files = 0
    for node in nodes:
        inside = list(islice(walker.spy().look(node.path), _ENOUGH))
        splits = [each.name for each in inside if each.kind == "dir" and is_usual_split(each.name)]
        if splits:
            raise RawDataError(
                f"`{safe(node.path)}` holds folders of splits ({few(splits)}), where a class "
                "folder is expected",
                hint="name the folder right above the splits with `--raw`, or say "
                f"`--option layout={layout}` if `{safe(node.name, limit=60)}` is a class",
            )
        files += sum(each.kind != "dir" for each in inside) or not inside
    if nodes and not files:
        raise RawDataError(
            f"no file lies right in the class folders ({few(node.path for node in nodes)}): they "
            "hold folders only",
            hint="name the folder right above the classes or splits with `--raw`, or say "
            f"`--option layout={layout}` if these are the classes, or `--option layout=split` if "
            "they are splits",
        )
