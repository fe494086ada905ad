"""Finds files by path, glob, folder or set, on a disk or behind URLs, and determines their splits.

Also measures raw data, for the comparison with the size of a build.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import PurePosixPath

from tfrecreg.core.records.stream import SNIFF_BYTES, begins_with_record
from tfrecreg.core.registry.manifest import RawTotals
from tfrecreg.core.storage.interface import Entry, Readable
from tfrecreg.core.storage.paths import is_url, list_through_links, looks_remembered, query_of
from tfrecreg.core.storage.raw import expect_raw_folder, storage_at
from tfrecreg.core.storage.words import BareFile, look_at, named
from tfrecreg.core.values.errors import (
    MissingFileError,
    NoShardsError,
    StorageError,
    UsageError,
)
from tfrecreg.core.values.progress import SILENT, Progress, counting
from tfrecreg.core.values.shards import (
    folder_split,
    is_any_part,
    is_split_word,
    normal_split,
    normal_splits,
    parse_shard_name,
)
from tfrecreg.core.values.text import listed

_KINDS = 5
_TRIED = 8
_DESCRIBES = re.compile(
    r"(?:CITATION|LICEN[CS]E|NOTICE|README).*|_(?:SUCCESS|committed.*|started.*)|.*\.index|.*\.pbtxt|.*labels\.txt|classes\.txt"
    r"|(?:manifest|labels|dataset_info|features|salvage)\.json|ledger\.jsonl",
    re.DOTALL,
)
"""Names of files that are never reported as left out."""


def find_files(word: str, left_out: list[str]) -> list[BareFile]:
    """The files named by one word, including unreadable files, which the check reports."""
    place = named(word)
    if place.is_folder():
        found, others = _shards_below(storage_at(word))
        found = [place.inside(each) for each in found]
        left_out += others
        missing = f"there is no TFRecord file below the folder `{word}`"
    else:
        found = place.matches() or place.glob(_of_set(place.pattern))
        missing = f"no file matches `{word}`"
    if not found:
        hint = (
            left_out_line(left_out)
            or "quote globs, and write a release as `NAME@MAJOR.MINOR.PATCH`"
        )
        raise NoShardsError(missing, hint=hint)
    return [place.file(each) for each in found]


@looks_remembered()
def find_all(words: Iterable[str], left_out: list[str]) -> list[BareFile]:
    """The files named by the words, without duplicates. All URLs are requested at the same time."""
    look_at(words)
    files: dict[str, BareFile] = {}
    for word in words:
        for file in find_files(word, left_out):
            files.setdefault(file.place, file)
    return list(files.values())


def left_out_line(paths: Sequence[str]) -> str:
    """The line that lists files with other names, which are not read; empty if `paths` is empty."""
    if not paths:
        return ""
    kinds: dict[str, list[str]] = {}
    for path in map(PurePosixPath, paths):
        kinds.setdefault(path.suffix, []).append(path.name)
    several = (f"*{kind}" if kind and names[1:] else names[0] for kind, names in kinds.items())
    shown = listed(several, most=_KINDS)
    files = "1 file is" if len(paths) == 1 else f"{len(paths):,} files are"
    return f"{files} left out (only files named like TFRecords are read): {shown}"


def names_folder(word: str) -> bool:
    """Whether a word is the path or the URL of a folder."""
    return not query_of(word) and named(word).is_folder()


def _of_set(word: str) -> str:
    """The glob for ``prefix@5``, as TFX and Beam name a set of 5 files; empty for other words."""
    prefix, _, count = word.rpartition("@")
    if not prefix or not count.isdecimal():
        return ""
    return f"{glob.escape(prefix)}-[0-9]*-of-{int(count):05d}*"


def _shards_below(storage: Readable) -> tuple[list[str], list[str]]:
    """The paths of files named like shards, and of other files. Hidden files are left out.

    Names of Spark's part files do not show the format, so all parts in a folder count as shards if
    one of them holds TFRecords.
    """
    shards: list[str] = []
    others: list[str] = []
    parts: dict[str, list[Entry]] = {}
    for entry in storage.list():
        *above, name = entry.path.split("/")
        if entry.kind == "dir" or any(part.startswith(".") for part in (*above, name)):
            continue
        if is_any_part(name):
            parts.setdefault("/".join(above), []).append(entry)
        elif parse_shard_name(name) is not None:
            shards.append(entry.path)
        elif not _DESCRIBES.fullmatch(name):
            others.append(entry.path)
    for members in parts.values():
        tried = islice((each for each in members if each.size or each.kind != "file"), _TRIED)
        of_records = any(_begins_with_record(storage, each.path) for each in tried)
        (shards if of_records else others).extend(each.path for each in members)
    return shards, others


def _begins_with_record(storage: Readable, path: str) -> bool:
    try:
        with storage.open(path) as reader:
            return begins_with_record(reader.read_at(0, min(SNIFF_BYTES, reader.size)))
    except StorageError:
        return True  # the check reports that the file cannot be read


def splits_of_places(places: Sequence[str]) -> list[str]:
    """The split of each file, from its name, or else from its folder or a folder above; empty if no
    name gives a split.

    The folder of a file is a split if the folder is called ``test``. A folder ``my_test``, or any
    folder higher up, is a split only if another split's folder is next to it. TFX's folder
    ``Split-test`` is always a split.
    """
    folders = [tuple(each.split("/")[:-1]) for each in places]
    beside: dict[tuple[str, ...], set[str]] = {}
    for folder in dict.fromkeys(folders):
        for at, name in enumerate(folder):
            if split := folder_split(name):
                beside.setdefault(folder[:at], set()).add(normal_split(split))

    def said(folder: tuple[str, ...]) -> str:
        for at in reversed(range(len(folder))):
            own = at == len(folder) - 1 and is_split_word(folder[at])
            split = folder_split(folder[at])
            if split and (own or len(beside[folder[:at]]) > 1):
                return split
        return ""

    known = {each: folder_split(each[-1], tfx=True) or said(each) for each in set(folders) if each}
    normal = normal_splits(set(known.values()))
    names = (parse_shard_name(each.rpartition("/")[2]) for each in places)
    return [
        (name.split if name is not None else None) or normal.get(known.get(folder, ""), "")
        for name, folder in zip(names, folders, strict=True)
    ]


def raw_totals(folder: str, progress: Progress = SILENT) -> RawTotals:
    """The number and total size of all files below `folder`, for any source.

    A link has the size of its target. A folder counts once, even if many links lead to it.
    """
    from tfrecreg.core.records.gzip_access import decoded_size

    storage = expect_raw_folder(folder)
    files = stored = decoded = 0
    with counting(progress, "measuring raw data", "files") as ticker:
        for entry in list_through_links(storage):
            if entry.kind == "link":
                raise MissingFileError(
                    f"`{storage.root}/{entry.path}` is a symbolic link that leads nowhere",
                )
            if entry.kind == "file":
                # Opening a file behind a URL is a request, so there the name decides.
                may_be = not is_url(storage.root) or entry.path.lower().endswith(".gz")
                size = decoded_size(storage, entry.path) if may_be else None
                files, stored = files + 1, stored + entry.size
                decoded += entry.size if size is None else size
                ticker.add(1, entry.size)
    if stored == 0:
        hint = "name another folder with `--raw`, or as `raw` in the dataset's file in `datasets/`"
        raise UsageError(f"the folder `{folder}` of raw data is empty", hint=hint)
    return RawTotals(files=files, stored=stored, decoded=decoded)
