"""All items of the class folders, with splits and labels, from one listing of the raw folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import msgspec

from tfrecreg.api import (
    Item,
    RawDataError,
    RawFile,
    Remark,
    Skipped,
    Splitter,
    Storage,
    UsageError,
    safe,
)
from tfrecreg_imagefolder.folder_walker import (
    Node,
    SplitFolder,
    Walker,
    find_split_folders,
    format_names,
    is_usual_split,
    is_utf8,
    reject_name_collisions,
)
from tfrecreg_imagefolder.imagefolder_options import ImageFolderOptions

_PROBED = 1_000
"""Number of names in a class folder that are read to classify it."""
_FIXED = 280
"""Bytes of an example beside its image, the file's name and the class's: keys, numbers, hash."""


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
        file_name = key.rpartition("/")[2].encode("utf-8", "surrogateescape")
        return _FIXED + len(file_name) + len(self.name.encode())


@dataclass
class Listing:
    """The content of a raw folder."""

    layout: str
    """``class``, ``split``, ``flat``, or ``named`` where the names of files have the classes."""
    classes: list[str]
    """Class names in byte order."""
    entries: list[Item | Skipped]
    left_out: list[Remark]
    """On names that are not items."""
    other_files: list[RawFile] = field(default_factory=list)
    """Raw files that are not items: the label file."""
    unused: list[str] = field(default_factory=list)
    """Classes without a single item."""
    empty: list[Remark] = field(default_factory=list)
    """On class folders without an item; other splits may have some of the class."""

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


def list_class_folders(raw: Storage, options: ImageFolderOptions) -> Listing:
    """Items of class folders, with or without split folders above them."""
    walker = Walker(raw, options.extensions, options.symlinks)
    layout, folders = find_split_folders(walker, options.layout)
    if layout == "split" and options.split:
        raise UsageError(
            f"`split` assigns images to splits, and `{safe(raw.root, limit=4096)}` has folders of "
            f"splits: {format_names(folder.path for folder in folders)}",
            hint="leave out the option, or set `--option layout=class` if these are classes",
        )
    splitters = {
        folder.path: Splitter(options.hashed, options.group, folder.split) for folder in folders
    }
    classes: dict[str, list[tuple[SplitFolder, Node]]] = {}
    entries: list[Item | Skipped] = []
    for folder in folders:
        splitter = splitters[folder.path]
        walker.split = splitter.names[0]
        for node in walker.look(folder.path):
            if node.kind == "dir":
                if not is_utf8(node.path):
                    raise RawDataError(
                        f"the name of the class folder `{safe(node.path)}` is not UTF-8, and "
                        "labels are",
                        hint="rename it: `convmv -f latin1 -t utf-8 --notest` renames a whole "
                        "folder",
                    )
                classes.setdefault(node.name, []).append((folder, node))
            elif node.code == "SRC011":  # it may well be a whole class
                split = splitter.split_of_group(node.path)
                entries.append(Skipped(split, node.name, node.code, node.detail))
            else:
                walker.leave_out("stray", node.path)
    names = sorted(classes, key=str.encode)
    if options.twins == "refuse":
        hint = "rename one of them, or keep them apart: --option twins=apart"
        reject_name_collisions(names, "class folders", hint)
    if options.layout == "auto":
        _reject_other_levels(walker, layout, [node for name in names for _, node in classes[name]])
    unused, empty = [], []
    for label, name in enumerate(names, start=options.labels_from):
        count = len(entries)
        for folder, node in classes[name]:
            before = len(entries)
            entries.extend(_class_items(walker, splitters[folder.path], folder, node, label))
            if len(entries) == before:
                split = splitters[folder.path].names[0]
                detail = f"no file in the class folder `{safe(node.path)}` is taken"
                empty.append(Remark(split, node.path, "SRC033", detail))
        if len(entries) == count:
            unused.append(name)
    if not entries:
        raise RawDataError(
            f"`{safe(raw.root, limit=4096)}` has no image in its class folders: "
            f"{format_names(names)}",
            hint="name the folder of the classes or of the splits with `--raw`; "
            "`extensions` selects files",
        )
    for splitter in splitters.values():
        splitter.require_all(entries)
    left_out = [*walker.left_out(), *walker.unread]
    return Listing(layout, names, entries, left_out, unused=unused, empty=empty)


def _class_items(
    walker: Walker, splitter: Splitter, folder: SplitFolder, node: Node, label: int
) -> Iterator[Item | Skipped]:
    prefix = f"{folder.path}/" if folder.path else ""
    item_class = ItemClass(label, prefix, node.name)
    state = msgspec.msgpack.encode(item_class)
    walker.split = splitter.names[0]
    for file in walker.files(node.path, above=(*folder.ids, node.id)):
        key = file.path[len(prefix) :] if prefix else file.path
        if file.kind == "file":
            split = splitter.split(file.path, file.path[len(node.path) + 1 :])
            yield Item(split, key, file.size + item_class.overhead(key), state)
        else:
            yield Skipped(splitter.split_of_group(file.path), key, file.code, file.detail)


def _reject_other_levels(walker: Walker, layout: str, nodes: Sequence[Node]) -> None:
    """Refuse a folder one level too high: its "classes" would hold classes, or splits."""
    files = 0
    for node in nodes:
        inside = list(islice(walker.peek().look(node.path), _PROBED))
        splits = [each.name for each in inside if each.kind == "dir" and is_usual_split(each.name)]
        if splits:
            raise RawDataError(
                f"`{safe(node.path)}` holds folders of splits ({format_names(splits)}), where a "
                "class folder is expected",
                hint="name the folder directly above the splits with `--raw`, or set "
                f"`--option layout={layout}` if `{safe(node.name, limit=60)}` is a class",
            )
        files += sum(each.kind != "dir" for each in inside) or not inside
    if nodes and not files:
        raise RawDataError(
            "no file is directly in the class folders "
            f"({format_names(node.path for node in nodes)}): they contain only folders",
            hint="name the folder directly above the classes or splits with `--raw`, or set "
            f"`--option layout={layout}` if these are the classes, or `--option layout=split` if "
            "they are splits",
        )
