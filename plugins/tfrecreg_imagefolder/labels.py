"""The file that labels the pictures of a flat folder: which picture is what.

Three forms are read, told apart by the first line that is not empty:

- a table with commas, tabs or semicolons: a file and its label, and a header where its first line
  names the columns (``file,label``; also ``split`` for splits)
- lines of a file, white space and a label
- lines of one word: the label of the first file, of the second, and so on in the order of the
  files' names. ImageNet's list of validation synsets is one (``n01751748``)
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tfrecreg.api import RawDataError, Storage, safe
from tfrecreg_imagefolder.walk import Symlinks

__all__ = ["Row", "read_label_file"]

_MOST_BYTES = 1 << 30
# Names of columns in lower case, as data sets in the wild have them.
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


class Row(NamedTuple):
    """One line of a label file."""

    line: int
    """Its number, from 1."""
    file: str
    """As the line has it; empty where the line has a label only, or lacks it."""
    label: str
    """Empty where the line lacks it."""
    split: str
    """Empty where there is no such column."""


def read_label_file(
    raw: Storage, path: str, symlinks: Symlinks = "all"
) -> tuple[bool, Iterator[Row]]:
    """The lines of a label file, and whether they name files.

    Raises:
        RawDataError: there is no such file, or it cannot be read in any of the forms.
    """
    lines = _lines(raw, path, symlinks)
    if not lines:
        raise RawDataError(f"the label file `{safe(path)}` is empty", hint="expected `file,label`")
    first = lines[0][1]
    delimiter = next((each for each in ",\t;" if each in first), "")
    if delimiter:
        return True, _table(path, lines, delimiter)
    if len(first.split()) > 1:
        return True, _pairs(lines)
    return False, _singles(path, lines)


def _lines(raw: Storage, path: str, symlinks: Symlinks) -> list[tuple[int, str]]:
    """The lines with something in them, and their numbers."""
    entry = raw.stat(path, follow="all" if symlinks == "all" else "inside")
    if entry is None or entry.kind != "file":
        found = "nothing" if entry is None else "no regular file"
        raise RawDataError(
            f"the label file `{safe(path)}` is not there: found {found} at that place of "
            f"`{safe(raw.root, limit=4096)}`",
            hint="`label_file` takes a path in the raw folder",
        )
    data = raw.read(path, limit=_MOST_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RawDataError(
            f"the label file `{safe(path)}` is not UTF-8: {error.reason} at byte {error.start}",
            hint="`iconv -f latin1 -t utf-8` makes it so",
        ) from error
    lines = text.replace("\r\n", "\n").split("\n")
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def _table(path: str, lines: Sequence[tuple[int, str]], delimiter: str) -> Iterator[Row]:
    columns: tuple[int, int, int | None] = (0, 1, None)
    for at, (number, line) in enumerate(lines):
        try:
            cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]
        except csv.Error as error:
            raise RawDataError(
                f"line {number} of the label file `{safe(path)}` does not parse: {error}",
                hint="each line needs a file and a label, quoted where they hold the delimiter",
            ) from error
        if at == 0:
            found = _header(cells)
            if found is not None:
                columns = found
                continue
        yield Row(number, *(_cell(cells, column) for column in columns))


def _header(cells: Sequence[str]) -> tuple[int, int, int | None] | None:
    """Which column is what, where the first line of a table names them: file, label, split."""
    names = [cell.lower() for cell in cells]
    file = next((at for at, name in enumerate(names) if name in _FILES), None)
    label = next((at for at, name in enumerate(names) if name in _LABELS), None)
    split = next((at for at, name in enumerate(names) if name in _SPLITS), None)
    if file is None:
        return None
    if label is None:
        others = [at for at in range(len(names)) if at not in (file, split)]
        label = others[0] if others else None
    return None if label is None else (file, label, split)


def _cell(cells: Sequence[str], column: int | None) -> str:
    return cells[column] if column is not None and column < len(cells) else ""


def _pairs(lines: Sequence[tuple[int, str]]) -> Iterator[Row]:
    for number, line in lines:
        parts = line.strip().rsplit(None, 1)
        yield Row(number, parts[0], parts[1] if len(parts) > 1 else "", "")


def _singles(path: str, lines: Sequence[tuple[int, str]]) -> Iterator[Row]:
    for number, line in lines:
        words = line.split()
        if len(words) > 1:
            raise RawDataError(
                f"line {number} of the label file `{safe(path)}` has {len(words)} words, the first "
                "line has one",
                hint="either every line has a label alone, or every line a file and a label",
            )
        yield Row(number, "", words[0], "")
