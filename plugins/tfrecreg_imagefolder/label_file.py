"""The items of a flat folder. Labels come from a label file or from the names of the images.

Three forms of label files are read, distinguished by the first line that is not empty:

- A table has columns for files and labels, separated by commas, tabs or semicolons. Its first line
  may name the columns: ``file,label`` or ``file,label,split``.
- Each line has a file, white space and a label.
- Each line has only a label, as in ImageNet's list of validation synsets (``n01751748``). The first
  label belongs to the first file in the order of file names, and so on.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from tfrecreg.api import (
    RawDataError,
    RawFile,
    SkipImage,
    Storage,
    listed,
    media_kind,
    safe,
    usual_split,
)
from tfrecreg_imagefolder.listing import (
    ImageFolderOptions,
    ItemClass,
    Listing,
    Walk,
    refuse_names,
    sort_classes,
)

_MAX_BYTES = 1 << 30
_DEFAULT_SPLIT = "train"
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

Files = Mapping[str, tuple[int, SkipImage | None]]
"""For each file, its size, and the reason if it cannot be opened."""


class LabelRow(NamedTuple):
    """The facts about one file, from a line of a label file or from the file's name."""

    line: int
    """Its number, from 1."""
    file: str
    """File name in the line; empty if it is missing or lines have only labels."""
    label: str
    """Empty if it is missing."""
    split: str = ""
    """Empty if the column does not exist."""
    problem: SkipImage | None = None
    """The reason if there is no such image."""


def list_flat_folder(raw: Storage, options: ImageFolderOptions) -> Listing:
    """The items of a folder without class folders. A label file names the class of each image, or
    lists the classes in the order of the images. Without a label file, the names of the images
    contain the classes.

    Files without a label are left out and counted as stray. Images for which `class_pattern` finds
    no class are skipped.
    """
    path = options.label_file or ""
    if PurePath(path).is_relative_to(raw.root):
        path = PurePath(path).relative_to(raw.root).as_posix()
    elif path.startswith("./"):
        path = PurePath(path).as_posix()
    walk = Walk(raw, options, path)
    files = {file: (size, problem) for file, size, problem in walk.files("", _DEFAULT_SPLIT)}
    if options.class_pattern is not None:
        source, layout = "`class_pattern`", "files, labelled by their names"
        rows = list(_match_pattern(files, re.compile(options.class_pattern)))
    else:
        source, layout = f"the label file `{safe(path)}`", "files, labelled by a file"
        rows = _match_lines(files, *read_label_file(raw, path, options), path)
    used = {row.file for row in rows}
    for each in files:
        if each not in used:
            walk.leave_out(_DEFAULT_SPLIT, "stray", each)
    names = {row.label for row in rows if row.problem is None and files[row.file][1] is None}
    if not names:
        raise RawDataError(f"{source} labels no image of `{safe(raw.root, limit=4096)}`")
    classes = sort_classes(names, options, "labels")
    said = {row.split for row in rows}
    if "" in said and len(said) > 1:
        raise RawDataError(f"{source} names the split of some images, but not of all")
    splits = {"": _DEFAULT_SPLIT, **refuse_names(sorted(said - {""}), "splits")}
    numbered = enumerate(classes, start=options.labels_from)
    by_name = {name: ItemClass(label, "", name) for label, name in numbered}
    entries = []
    for row in rows:
        size, problem = files.get(row.file, (0, None))
        item_class = by_name.get(row.label, ItemClass(-1, "", ""))  # for a row with a problem
        problem = row.problem or problem
        entries.append(item_class.entry(splits[row.split], row.file, size, problem))
    entry = raw.stat(path, follow="all") if path and not _is_outside(path) else None
    other_files = [RawFile(path, entry.size, entry.size)] if entry is not None else []
    return Listing(layout, classes, entries, [*walk.left_out()], other_files)


def read_label_file(
    raw: Storage, path: str, options: ImageFolderOptions
) -> tuple[bool, list[LabelRow]]:
    """Return whether the lines of a label file contain file names, and return the lines."""
    text = _read_text(raw, path, options)
    every = enumerate(text.replace("\r\n", "\n").split("\n"), start=1)
    lines = [(number, line) for number, line in every if line.strip()]
    first = lines[0][1] if lines else ""
    delimiter = next((each for each in ",\t;" if each in first), "")
    has_files = bool(delimiter) or len(first.split()) > 1
    columns: Sequence[int | None] = (0, 1, None)
    rows = []
    for number, line in lines:
        place = f"line {number} of the label file `{safe(path)}`"
        words = line.strip().rsplit(None, 1)
        if not has_files and len(words) > 1:
            raise RawDataError(f"{place} has several words, but the first line has only a label")
        try:
            cells = next(csv.reader([line], delimiter=delimiter)) if delimiter else words
        except csv.Error as error:
            raise RawDataError(f"{place} cannot be read: {error}") from None
        cells = [cell.strip() for cell in cells] if has_files else ["", *words]
        named = _named_columns(cells) if delimiter and number == lines[0][0] else None
        columns = named or columns
        if named is None:
            file, label, split = (
                cells[at] if at is not None and at < len(cells) else "" for at in columns
            )
            rows.append(LabelRow(number, file, label, split))
    return has_files, rows


def _read_text(raw: Storage, path: str, options: ImageFolderOptions) -> str:
    try:
        if not _is_outside(path):
            entry = raw.stat(path, follow="all" if options.symlinks == "all" else "inside")
            if entry is not None and entry.kind == "file":
                return raw.read(path, limit=_MAX_BYTES).decode("utf-8-sig")
        elif (place := Path(raw.local_path() or "", path)).is_file():
            return place.read_bytes().decode("utf-8-sig")
        problem = "there is no such file"
    except (OSError, ValueError) as error:  # in Python's words, also if it is not UTF-8
        problem = str(error)
    raise RawDataError(
        f"the label file `{safe(path, limit=4096)}` cannot be read: {problem}",
        hint="`label_file` takes a path relative to the raw folder, or an absolute path",
    )


def _is_outside(path: str) -> bool:
    return PurePath(path).is_absolute() or ".." in PurePath(path).parts


def _named_columns(cells: Sequence[str]) -> tuple[int, int, int | None] | None:
    """The places of the columns for files, labels and splits, if `cells` are the names of columns;
    otherwise None.
    """
    names = [cell.lower() for cell in cells]
    file, label, split = (
        next((at for at, name in enumerate(names) if name in known), None)
        for known in (_FILES, _LABELS, _SPLITS)
    )
    if label is None:
        label = next((at for at in range(len(names)) if at not in (file, split)), None)
    return None if file is None or label is None else (file, label, split)


def _match_lines(
    files: Files, has_files: bool, rows: Sequence[LabelRow], path: str
) -> list[LabelRow]:
    """The lines, each with the path of its file. A line may omit the extension of the path. If the
    lines name no files, they follow the order of the files.
    """
    if not has_files:
        if len(rows) != len(files):
            raise RawDataError(
                f"the label file `{safe(path)}` has {len(rows)} labels, but there are "
                f"{len(files)} files to label"
            )
        # Folder by folder, in byte order: a listing of whole paths puts `a-b/1` before `a/1`.
        ordered = sorted(files, key=lambda each: os.fsencode(each).split(b"/"))
        return [row._replace(file=file) for file, row in zip(ordered, rows, strict=True)]
    by_stem: dict[str, list[str]] = {}
    for file in files:
        folder, slash, name = file.rpartition("/")
        by_stem.setdefault(folder + slash + name.rpartition(".")[0], []).append(file)
    lines: dict[str, int] = {}
    found = []
    for row in rows:
        wanted = row.file.removeprefix("./")
        candidates = [wanted] if wanted in files else by_stem.get(wanted, [])
        line = f"line {row.line} of the label file"
        if not wanted or not row.label:
            problem = f"{line} has no {'label' if wanted else 'file'}"
        elif len(candidates) == 1:
            problem = ""
            wanted = candidates[0]
            other = lines.setdefault(wanted, row.line)
            if other != row.line and files[wanted][1] is None:
                raise RawDataError(
                    f"lines {other} and {row.line} of the label file both name `{wanted}`"
                )
        elif candidates:
            problem = f"{line} matches several files: {listed(candidates, most=3)}"
        else:
            problem = f"{line} names this file, but it does not exist"
        reason = SkipImage("SRC112", problem) if problem else None
        found.append(row._replace(file=wanted or f"line {row.line}", problem=reason))
    return found


def _match_pattern(files: Files, pattern: re.Pattern[str]) -> Iterator[LabelRow]:
    """A row for each file. The class comes from the file's name, and the split from its folder."""
    in_splits = all(usual_split(top) for top in {file.partition("/")[0] for file in files})
    for file, (_, problem) in files.items():
        match = pattern.search(file.rpartition("/")[2])
        label = (match[1] or "") if match is not None else ""
        if problem is None and not label:
            if media_kind(file) != "image":
                continue
            problem = SkipImage("SRC112", "`class_pattern` finds no class in its name")
        yield LabelRow(0, file, label, file.partition("/")[0] if in_splits else "", problem)
