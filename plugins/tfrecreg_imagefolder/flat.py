"""The items of a flat folder: its label file says what they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tfrecreg.api import (
    Item,
    RawDataError,
    RawFile,
    Skipped,
    Storage,
    UsageError,
    normal_splits,
    safe,
)
from tfrecreg_imagefolder.labels import Row, read_label_file
from tfrecreg_imagefolder.layout import DEFAULT_SPLIT, few, refuse_twins, require_folder
from tfrecreg_imagefolder.listing import Listing, Place, Splitter, make_item
from tfrecreg_imagefolder.options import ImageFolderOptions
from tfrecreg_imagefolder.shares import is_split_name
from tfrecreg_imagefolder.walk import Node, Walker

__all__ = ["list_flat"]


class _Labelled(NamedTuple):
    node: Node
    """The file; a bad one, named as the line has it, where there is none or no label."""
    row: Row


def list_flat(raw: Storage, options: ImageFolderOptions) -> Listing:
    """Items of a folder whose label file names its pictures, or labels them in their order.

    Files that the label file does not name are counted as stray.

    Raises:
        RawDataError: the label file cannot be read, or does not fit the folder.
        UsageError: fractions were asked for, and the label file names splits.
    """
    label_file = options.label_file or ""
    root = require_folder(raw)
    named, rows = read_label_file(raw, label_file, options.symlinks)
    choose = Splitter(options, DEFAULT_SPLIT)
    walker = Walker(raw, options.extensions, options.symlinks, choose.first, label_file)
    nodes = {node.path: node for node in walker.files("", above=(root,))}
    found = list(_match(nodes, rows) if named else _in_order(label_file, nodes, rows))
    used = {node.path for node, _ in found}
    for path in nodes:
        if path not in used:
            walker.leave_out("stray", path)
    splits = _splits(options, label_file, [row.split for _, row in found])
    classes = sorted({row.label for node, row in found if node.kind == "file"}, key=str.encode)
    if not classes:
        raise RawDataError(
            f"the label file `{safe(label_file)}` labels no picture of "
            f"`{safe(raw.root, limit=4096)}`",
            hint="its first column has paths below the raw folder",
        )
    if options.twins == "refuse":
        refuse_twins(classes, "labels", "mend the label file, or --option twins=apart")
    entries = list(_entries(options, choose, found, classes, splits))
    choose.check(entries)
    entry = raw.stat(label_file, follow="all")
    others = [RawFile(label_file, entry.size, entry.size)] if entry is not None else []
    return Listing("flat", classes, entries, others, walker.left_out)


def _entries(
    options: ImageFolderOptions,
    choose: Splitter,
    found: Iterable[_Labelled],
    classes: Sequence[str],
    splits: Mapping[str, str],
) -> Iterator[Item | Skipped]:
    places: dict[str, tuple[Place, bytes]] = {}
    for label, name in enumerate(classes, start=options.labels_from):
        place = Place(label, "", name)
        places[name] = place, place.pack()
    for node, row in found:
        path = node.path
        if node.kind == "file":
            split = splits.get(row.split) or choose(path, path)
            yield make_item(split, path, node.size, *places[row.label])
        else:
            split = splits.get(row.split) or choose.of_skipped(path)
            yield Skipped(split, path, node.code, node.detail)


def _match(nodes: Mapping[str, Node], rows: Iterable[Row]) -> Iterator[_Labelled]:
    """Each line with its file: by its path, or by its path without the extension."""
    stems: dict[str, list[str]] = {}
    for path in nodes:
        folder, slash, name = path.rpartition("/")
        stems.setdefault(folder + slash + name.rpartition(".")[0], []).append(path)
    lines: dict[str, int] = {}
    for row in rows:
        node = _node(nodes, stems, row)
        if node.kind == "file":
            first = lines.setdefault(node.path, row.line)
            if first != row.line:
                raise RawDataError(
                    f"lines {first} and {row.line} of the label file both name `{safe(node.path)}`",
                    hint="a picture has one label: remove one of the lines",
                )
        yield _Labelled(node, row)


def _node(nodes: Mapping[str, Node], stems: Mapping[str, Sequence[str]], row: Row) -> Node:
    wanted = row.file.removeprefix("./")
    if not wanted or not row.label:
        what = "label" if wanted else "file"
        detail = f"line {row.line} of the label file has no {what}"
        return Node(wanted or f"line {row.line}", "bad", code="SRC013", detail=detail)
    if wanted in nodes:
        return nodes[wanted]
    others = stems.get(wanted, [])
    if len(others) == 1:
        return nodes[others[0]]
    detail = f"line {row.line} of the label file names it, and it is not there"
    if others:
        detail = f"line {row.line} of the label file may mean any of {few(others)}"
    return Node(wanted, "bad", code="SRC013", detail=detail)


def _in_order(
    label_file: str, nodes: Mapping[str, Node], rows: Iterable[Row]
) -> Iterator[_Labelled]:
    """The first label for the first file by its name, and so on."""
    labels = list(rows)
    if len(labels) != len(nodes):
        raise RawDataError(
            f"the label file `{safe(label_file)}` has {len(labels)} labels, and there are "
            f"{len(nodes)} files to label",
            hint="a line each is expected, in the order of the files' names; `extensions` says "
            "which files are taken",
        )
    for path, row in zip(nodes, labels, strict=True):
        yield _Labelled(nodes[path], row)


def _splits(
    options: ImageFolderOptions, label_file: str, names: Sequence[str]
) -> Mapping[str, str]:
    """Splits as the label file has them, and their normal spelling."""
    distinct = {name for name in names if name}
    if not distinct:
        return {}
    if options.split:
        raise UsageError(
            f"`split` deals pictures to splits, and the label file `{safe(label_file)}` names "
            f"theirs: {few(sorted(distinct))}",
            hint="leave the option away, or the column",
        )
    if len(distinct) and not all(names):
        raise RawDataError(
            f"the label file `{safe(label_file)}` names the split of some pictures and not of all",
            hint="fill the column, or remove it",
        )
    refuse_twins(sorted(distinct), "splits")
    for name in sorted(distinct):
        if not is_split_name(name):
            raise RawDataError(
                f"the label file `{safe(label_file)}` has `{safe(name)}` for a split: expected "
                "letters, digits and `_`",
                hint="rename it: the name becomes part of file names",
            )
    return normal_splits(distinct)
