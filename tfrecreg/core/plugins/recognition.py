"""Shows a small part of raw data to a source. The source says whether it can read the data.

A source sees only a :class:`RawPreview`: the first names of some folders, and the first bytes of
some files. So it answers quickly even for a folder of a million files, or for a bucket.

The module also describes the options of a source and the limits of a validator in words.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, replace
from fnmatch import fnmatchcase
from itertools import islice, pairwise
from typing import Any, Literal, NamedTuple, get_type_hints

from tfrecreg.core.storage.interface import Entry, Readable
from tfrecreg.core.values.typed_values import as_text, is_required, label

Strength = Literal["exact", "layout", "general", "refused"]
STRENGTHS: tuple[Strength, ...] = ("exact", "layout", "general", "refused")
"""Strongest first: a stronger recognition beats all weaker ones."""
_MAX_NAMES = 10_000
_FOLDERS = 100
_FILES = 20
_BYTES = 1 << 16
_WALKED = 100_000
_WILD = "*?["


class Recognition(NamedTuple):
    """The reason why a source can read a folder."""

    strength: Strength
    """``exact``: names or contents that only this format has. ``layout``: an arrangement of files
    that the source reads, but that other data may have as well. ``general``: the source reads files
    of this kind. ``refused``: the source refuses files of this kind, and its error says what to do
    instead.
    """
    reason: str
    """What was found, as the end of a sentence ``FOLDER has …``: ``4 IDX files``."""
    aside: Sequence[str] = ()
    """Names of files and folders that the source would ignore. They are at the top of the raw
    folder."""


class RawPreview:
    """A small part of raw data. It lists at most 100 folders, and 10,000 names in each. It reads at
    most 20 files, and 65,536 bytes of each. :meth:`below` stops after 100,000 files.

    Folders and files beyond these limits look empty. Links are followed.
    """

    def __init__(self, raw: Readable, listed: dict[str, list[Entry]] | None = None) -> None:
        self._raw = raw
        self._listed = {} if listed is None else listed  # the same for several previews
        self._seen: set[str] = set()
        self._read = 0
        self._is_cut = False

    def entries(self, folder: str = "") -> Sequence[Entry]:
        """The names directly in a folder, in the order of their bytes.

        Args:
            folder: a path below the raw folder; empty for the raw folder itself.
        """
        if folder not in self._seen and len(self._seen) >= _FOLDERS:
            self._is_cut = True
            return ()
        self._seen.add(folder)
        if folder not in self._listed:
            found = self._listed[folder] = []
            for each in islice(self._raw.list(folder, recursive=False), _MAX_NAMES):
                target = self._raw.stat(each.path, follow="all") if each.kind == "link" else None
                found.append(each if target is None else replace(target, path=each.path))
        self._is_cut = self._is_cut or len(self._listed[folder]) == _MAX_NAMES
        return self._listed[folder]

    def folders(self, folder: str = "") -> list[str]:
        """The paths of the folders directly in a folder, except hidden folders."""
        return [each.path for each in self.entries(folder) if each.kind == "dir" and _shown(each)]

    def files(self, folder: str = "") -> list[str]:
        """The paths of the files directly in a folder, except hidden files."""
        return [each.path for each in self.entries(folder) if each.kind == "file" and _shown(each)]

    def below(self, levels: int = 3) -> list[str]:
        """The paths of all files at most `levels` folders deep, except hidden files and folders."""
        found: list[str] = []
        folders = [""]
        for _ in range(levels + 1):
            for each in folders:
                if len(found) < _WALKED:
                    found += self.files(each)
                else:
                    self._is_cut = True
            folders = [path for each in folders for path in self.folders(each)]
        return found

    def counted(self, number: int, what: str) -> str:
        """`2 label files`, or `at least 2 label files` if a limit hides some names. The caller uses
        the text in :attr:`Recognition.reason`.
        """
        bound = "at least " if self._is_cut else ""
        return f"{bound}{number:,} {what}{'' if number == 1 else 's'}"

    def aside(self, used: Iterable[str]) -> list[str]:
        """The names at the top of the folder. Hidden names are left out. A name is also left out if
        it is the first part of a path in `used`.
        """
        tops = {path.partition("/")[0] for path in used}
        return [each.path for each in self.entries() if _shown(each) and each.path not in tops]

    def start(self, path: str) -> bytes:
        """The first bytes of a file; empty if there is no such file."""
        return self._part(path, at_end=False)

    def end(self, path: str) -> bytes:
        """The last bytes of a file; empty if there is no such file."""
        return self._part(path, at_end=True)

    def _part(self, path: str, *, at_end: bool) -> bytes:
        found = self._raw.stat(path, follow="all")
        if found is None or found.kind != "file" or self._read >= _FILES:
            return b""
        self._read += 1
        with self._raw.open(path) as reader:
            length = min(reader.size, _BYTES)
            return reader.read_at(reader.size - length if at_end else 0, length)

    def matches(self, glob: str) -> Iterator[str]:
        """The paths of files that match a glob such as ``annotations/*.json``."""
        parts = glob.split("/")
        if not {"", ".", ".."}.intersection(parts):
            yield from self._below("", parts)

    def _below(self, folder: str, parts: Sequence[str]) -> Iterator[str]:
        wanted = "file" if len(parts) == 1 else "dir"
        if not any(each in parts[0] for each in _WILD):
            path = f"{folder}/{parts[0]}" if folder else parts[0]
            found = self._raw.stat(path, follow="all")
            entries: Iterable[Entry] = () if found is None else (replace(found, path=path),)
        else:
            entries = self.entries(folder)
        for entry in entries:
            name = entry.path.rpartition("/")[2]
            if entry.kind != wanted or not _shown(entry) or not fnmatchcase(name, parts[0]):
                continue
            if wanted == "file":
                yield entry.path
            else:
                yield from self._below(entry.path, parts[1:])


def _shown(entry: Entry) -> bool:
    return not entry.path.rpartition("/")[2].startswith(".")


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """One option of a source, or one limit of a validator."""

    name: str
    type: str
    """The type in words: ``a whole number``."""
    default: str | None
    """The default as text; None if there is none."""
    required: bool
    help: str
    """The docstring below the field, or its ``metadata["help"]``; one line."""


def describe_options(kind: type[Any], *, text: bool = True) -> list[OptionInfo]:
    """The options that a dataclass holds, in the order of its fields."""
    hints = get_type_hints(kind, include_extras=True)
    docs = _docs(kind)
    found = []
    for each in fields(kind):
        if not each.init:
            continue
        default = None
        if not is_required(each):
            made = each.default if each.default_factory is MISSING else each.default_factory()
            default = as_text(made) if text or made is not None else None
        words = str(each.metadata.get("help") or docs.get(each.name, ""))
        found.append(
            OptionInfo(
                name=each.name,
                type=label(hints[each.name], text=text),
                default=default,
                required=is_required(each),
                help=" ".join(words.split()),
            )
        )
    return found


def _docs(kind: type[Any]) -> dict[str, str]:
    """The docstring of each field, including inherited fields; empty if there is no source code."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        # Without source code, fields have no docstrings.
        with suppress(OSError, TypeError, SyntaxError, IndexError):
            found = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
            for statement, below in pairwise(getattr(found, "body", [])):
                match statement, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        docs[name] = text
    return docs
