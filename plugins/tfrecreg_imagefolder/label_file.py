"""The items of a flat folder whose images a label file labels, or their names.

Three forms of label files are read, distinguished by the first line that is not empty:

- a table with commas, tabs or semicolons: a file and its label, and a header where its first line
  names the columns (``file,label``; also ``split`` for splits)
- lines of a file, white space and a label
- lines of one word: the label of the first file, of the second, and so on in the order of the
  files' names. ImageNet's list of validation synsets is one (``n01751748``)
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from errno import ENOENT
from pathlib import Path, PurePath
from typing import NamedTuple

import msgspec

from tfrecreg.api import (
    Item,
    RawDataError,
    RawFile,
    Skipped,
    Splitter,
    Storage,
    Symlinks,
    UsageError,
    is_split_name,
    normal_splits,
    safe,
)
from tfrecreg_imagefolder.folder_walker import (
    IMAGE_SUFFIXES,
    Node,
    Walker,
    format_names,
    is_usual_split,
    reject_name_collisions,
    require_folder,
)
from tfrecreg_imagefolder.imagefolder_options import ImageFolderOptions
from tfrecreg_imagefolder.listing import ItemClass, Listing

_MAX_BYTES = 1 << 30
_MAX_CELL = 1 << 17
# Names of columns in lower case, as published datasets have them.
_FILES = frozenset(
    {
        *("file", "filename", "file_name", "filepath", "file_path", "path", "name"),
        *("image", "image_id", "image_name", "image_path", "image_uri", "imageid", "img", "id"),
    }
)
_LABELS = frozenset(
    {
        *("label", "labels", "label_name", "category", "category_name"),
        *("class", "class_name", "classname", "synset", "target"),
    }
)
_SPLITS = frozenset({"set", "split", "subset"})


class LabelRow(NamedTuple):
    """One line of a label file."""

    line: int
    """Its number, from 1."""
    file: str
    """File name in the line; empty if it is missing or lines have only labels."""
    label: str
    """Empty where it is missing."""
    split: str = ""
    """Empty if the column does not exist."""


def list_flat_folder(raw: Storage, options: ImageFolderOptions) -> Listing:
    """Items of a folder whose label file names its images, or labels them in their order; or whose
    images have the class in their names.

    Files without a label are left out as stray; images that `class_pattern` finds no class for are
    skipped.
    """
    path = _below(raw, options.label_file or "")
    root_id = require_folder(raw)
    splitter = Splitter(options.hashed, options.group)
    walker = Walker(raw, options.extensions, options.symlinks, splitter.names[0], path)
    nodes = {node.path: node for node in walker.files("", above=(root_id,))}
    if options.class_pattern is not None:
        rows = list(_match_pattern(nodes, re.compile(options.class_pattern)))
        source = "the option `class_pattern`"
    else:
        named, lines = read_label_file(raw, path, options.symlinks)
        rows = list(_match_names(nodes, lines) if named else _match_order(path, nodes, lines))
        source = f"the label file `{safe(path)}`"
    used = {node.path for node, _ in rows}
    for each in nodes:
        if each not in used:
            walker.leave_out("stray", each)
    splits = _normal_splits(options, path, [row.split for _, row in rows])
    classes = sorted({row.label for node, row in rows if node.kind == "file"}, key=str.encode)
    if not classes:
        raise RawDataError(
            f"{source} labels no image of `{safe(raw.root, limit=4096)}`",
            hint="a label file has paths below the raw folder in its first column; a pattern is "
            "searched in the names of files",
        )
    if options.twins == "refuse":
        reject_name_collisions(classes, "labels", "fix the label file, or --option twins=apart")
    by_name = {
        name: ItemClass(label, "", name)
        for label, name in enumerate(classes, start=options.labels_from)
    }
    states = {name: msgspec.msgpack.encode(item_class) for name, item_class in by_name.items()}
    entries: list[Item | Skipped] = []
    for node, row in rows:
        key = node.path
        split = splits.get(row.split)
        if node.kind == "file":
            size = node.size + by_name[row.label].overhead(key)
            entries.append(Item(split or splitter.split(key, key), key, size, states[row.label]))
        else:
            split = split or splitter.split_of_group(key)
            entries.append(Skipped(split, key, node.code, node.detail))
    splitter.require_all(entries)
    entry = raw.stat(path, follow="all") if path and not _is_outside(path) else None
    other_files = [RawFile(path, entry.size, entry.size)] if entry is not None else []
    return Listing(
        "flat" if path else "named", classes, entries, list(walker.left_out()), other_files
    )


def read_label_file(
    raw: Storage, path: str, symlinks: Symlinks = "all"
) -> tuple[bool, Iterator[LabelRow]]:
    """Whether a label file names files, and its lines."""
    lines = _read_lines(raw, path, symlinks)
    if not lines:
        raise RawDataError(f"the label file `{safe(path)}` is empty", hint="expected `file,label`")
    first = lines[0][1]
    delimiter = next((each for each in ",\t;" if each in first), "")
    if delimiter:
        return True, _read_table(path, lines, delimiter)
    if len(first.split()) > 1:
        return True, _read_pairs(lines)
    return False, _read_labels(path, lines)


def _read_lines(raw: Storage, path: str, symlinks: Symlinks) -> list[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    if _is_outside(path):
        data = _read_outside(raw, path)
    else:
        entry = raw.stat(path, follow="all" if symlinks == "all" else "inside")
        if entry is None or entry.kind != "file":
            problem = "is not" if entry is None else "is not a regular file"
            raise RawDataError(
                f"the label file `{safe(path)}` {problem} in `{safe(raw.root, limit=4096)}`",
                hint="`label_file` takes a path from the raw folder on, or an absolute one",
            )
        data = raw.read(path, limit=_MAX_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RawDataError(
            f"the label file `{safe(path)}` is not UTF-8: {error.reason} at byte {error.start}",
            hint="convert it: `iconv -f latin1 -t utf-8`",
        ) from error
    lines = text.replace("\r\n", "\n").split("\n")
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def _below(raw: Storage, path: str) -> str:
    """A path, from the raw folder on if it is in that."""
    if raw.is_local and PurePath(path).is_relative_to(raw.root):
        return PurePath(path).relative_to(raw.root).as_posix()
    return path


def _is_outside(path: str) -> bool:
    return PurePath(path).is_absolute() or ".." in PurePath(path).parts


def _read_outside(raw: Storage, path: str) -> bytes:
    place = Path(raw.root, path) if raw.is_local else Path(path)
    try:
        if not place.is_file():
            raise FileNotFoundError(ENOENT, "no such file")
        with place.open("rb") as file:
            return file.read(_MAX_BYTES)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise RawDataError(
            f"the label file `{safe(str(place), limit=4096)}` cannot be read: {why}",
            hint="`label_file` takes a path from the raw folder on, or an absolute one",
        ) from error


def _read_table(path: str, lines: Sequence[tuple[int, str]], delimiter: str) -> Iterator[LabelRow]:
    columns: tuple[int, int, int | None] | None = None
    for number, line in lines:
        try:
            cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]
            if any(len(cell) > _MAX_CELL for cell in cells):  # other sources raise csv's limit
                raise csv.Error(f"field larger than field limit ({_MAX_CELL})")
        except csv.Error as error:
            raise RawDataError(
                f"line {number} of the label file `{safe(path)}` does not parse: {error}",
                hint="each line needs a file and a label, quoted where they hold the delimiter",
            ) from error
        if columns is None:
            columns = _header_columns(cells)
            if columns is not None:
                continue
            columns = (0, 1, None)
        yield LabelRow(
            number, *(cells[at] if at is not None and at < len(cells) else "" for at in columns)
        )


def _header_columns(cells: Sequence[str]) -> tuple[int, int, int | None] | None:
    """Columns of file, label and split, where the first line of a table names them."""
    names = [cell.lower() for cell in cells]
    file, label, split = (
        next((at for at, name in enumerate(names) if name in known), None)
        for known in (_FILES, _LABELS, _SPLITS)
    )
    if file is None:
        return None
    if label is None:
        label = next((at for at in range(len(names)) if at not in (file, split)), None)
    return None if label is None else (file, label, split)


def _read_pairs(lines: Sequence[tuple[int, str]]) -> Iterator[LabelRow]:
    for number, line in lines:
        file, *label = line.strip().rsplit(None, 1)
        yield LabelRow(number, file, label[0] if label else "")


def _read_labels(path: str, lines: Sequence[tuple[int, str]]) -> Iterator[LabelRow]:
    for number, line in lines:
        words = line.split()
        if len(words) > 1:
            raise RawDataError(
                f"line {number} of the label file `{safe(path)}` has {len(words)} words, the first "
                "line has one",
                hint="either every line has a label alone, or every line a file and a label",
            )
        yield LabelRow(number, "", words[0])


def _match_names(
    nodes: Mapping[str, Node], rows: Iterable[LabelRow]
) -> Iterator[tuple[Node, LabelRow]]:
    """Each line with its file: by its path, or by its path without the extension."""
    by_stem: dict[str, list[str]] = {}
    for path in nodes:
        folder, slash, name = path.rpartition("/")
        by_stem.setdefault(folder + slash + name.rpartition(".")[0], []).append(path)
    lines: dict[str, int] = {}
    for row in rows:
        node = _match_name(nodes, by_stem, row)
        if node.kind == "file":
            first = lines.setdefault(node.path, row.line)
            if first != row.line:
                raise RawDataError(
                    f"lines {first} and {row.line} of the label file both name `{safe(node.path)}`",
                    hint="an image has one label: remove one of the lines",
                )
        yield node, row


def _match_name(
    nodes: Mapping[str, Node], by_stem: Mapping[str, Sequence[str]], row: LabelRow
) -> Node:
    """The file of a line; a bad one, with the line's name, if the file or the label is missing."""
    wanted = row.file.removeprefix("./")
    line = f"line {row.line}"
    if not wanted or not row.label:
        detail = f"{line} of the label file has no {'label' if wanted else 'file'}"
        return Node.bad(wanted or line, "SRC013", detail)
    if wanted in nodes:
        return nodes[wanted]
    candidates = by_stem.get(wanted, [])
    if len(candidates) == 1:
        return nodes[candidates[0]]
    detail = f"{line} of the label file names it, and it is not there"
    if candidates:
        detail = f"{line} of the label file may mean any of {format_names(candidates)}"
    return Node.bad(wanted, "SRC013", detail)


def _match_pattern(
    nodes: Mapping[str, Node], pattern: re.Pattern[str]
) -> Iterator[tuple[Node, LabelRow]]:
    """Each file with the class in its name, and the split whose folder it is in."""
    tops = {path.partition("/")[0] for path in nodes}
    in_splits = all(map(is_usual_split, tops))
    for path, node in nodes.items():
        match = pattern.search(node.name)
        label = (match[1] or "") if match is not None else ""
        split = path.partition("/")[0] if in_splits else ""
        if node.kind == "file" and not label:
            if not path.lower().endswith(IMAGE_SUFFIXES):
                continue
            node = Node.bad(path, "SRC013", "`class_pattern` finds no class in its name")
        yield node, LabelRow(0, path, label, split)


def _match_order(
    label_file: str, nodes: Mapping[str, Node], rows: Iterable[LabelRow]
) -> Iterator[tuple[Node, LabelRow]]:
    """The first file by name with the first label, and so on."""
    labels = list(rows)
    if len(labels) != len(nodes):
        raise RawDataError(
            f"the label file `{safe(label_file)}` has {len(labels)} labels, and there are "
            f"{len(nodes)} files to label",
            hint="a line each is expected, in the order of the files' names; `extensions` says "
            "which files are taken",
        )
    return zip(nodes.values(), labels, strict=True)


def _normal_splits(
    options: ImageFolderOptions, label_file: str, names: Sequence[str]
) -> Mapping[str, str]:
    """The normal spelling of each split that the label file has."""
    distinct = sorted({name for name in names if name})
    if not distinct:
        return {}
    if options.split:
        raise UsageError(
            f"`split` assigns images to splits, and the label file `{safe(label_file)}` names "
            f"theirs: {format_names(distinct)}",
            hint="leave out the option, or the column",
        )
    if not all(names):
        raise RawDataError(
            f"the label file `{safe(label_file)}` names the split of some images and not of all",
            hint="fill the column, or remove it",
        )
    reject_name_collisions(distinct, "splits")
    for name in distinct:
        if not is_split_name(name):
            raise RawDataError(
                f"the label file `{safe(label_file)}` has `{safe(name)}` for a split: expected "
                "letters, digits and `_`",
                hint="rename it: the name becomes part of file names",
            )
    return normal_splits(distinct)
