"""The files that paths, globs, folders and sets name, on a disk or behind URLs."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tfrecreg.core.records.stream import SNIFF_BYTES, begins_with_record
from tfrecreg.core.registry.manifest import MANIFEST_NAME
from tfrecreg.core.storage.interface import Entry, Readable
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import (
    is_url,
    is_web,
    locate,
    looked,
    looks_remembered,
    query_of,
    remembered,
    split_url,
)
from tfrecreg.core.storage.raw import asked, storage_at, store_at
from tfrecreg.core.values.errors import NoShardsError, StorageError
from tfrecreg.core.values.shards import is_any_part, parse_shard_name
from tfrecreg.core.values.text import did_you_mean, listed, safe

_TOGETHER = 4
"""Shards of one set about which a store is asked together."""
_MOST_NAMES = 10_000
"""Names of a folder that are compared with a misspelt one."""
_KINDS = 5
"""Kinds of left out files that are named."""
_TRIED = 8
"""Parts of Spark in a folder that are looked into."""
_DESCRIBES = re.compile(
    r"(?:CITATION|LICEN[CS]E|NOTICE|README).*|_(?:SUCCESS|committed.*|started.*)|.*\.index|.*\.pbtxt|.*labels\.txt|classes\.txt"
    r"|(?:manifest|labels|dataset_info|features|salvage)\.json|ledger\.jsonl",
    re.DOTALL,
)
"""Files that checks read beside shards, those for people, and marks of Spark."""
_INDEX = ".index"
"""The end of an index's name, behind that of its shard."""


class BareFile(NamedTuple):
    """A file that was found by its name."""

    storage: Readable
    path: str
    """In `storage`."""
    name: str
    """As findings have it: as it was given, or its URL. Not escaped."""

    @property
    def place(self) -> str:
        """What no other file has."""
        return f"{self.storage.root.rstrip('/')}/{self.path}"


def find_files(word: str, left_out: list[str]) -> list[BareFile]:
    """The files that one word names.

    What a folder or a glob finds and cannot be read (a FIFO, a link that leads nowhere) is among
    them: the check then says that it was not read.
    """
    place = _place(word)
    if place.is_folder():
        found, others = place.shards()
        left_out += others
        missing = f"there is no TFRecord file below the folder `{safe(word, limit=1000)}`"
    else:
        found = place.matches() or place.glob(_of_set(place.pattern))
        missing = f"no file matches `{safe(word, limit=1000)}`{place.close_name()}"
    if not found:
        hint = left_out_line(left_out) or place.hint
        raise NoShardsError(place.why_none() or missing, hint=hint, place=word)
    return [place.file(each) for each in found]


@looks_remembered()
def find_all(words: Iterable[str], left_out: list[str]) -> list[BareFile]:
    """The files that words name, each once. All URLs are asked about at the same time."""
    look_at(words)
    files: dict[str, BareFile] = {}
    for word in words:
        for file in find_files(word, left_out):
            files.setdefault(file.place, file)
    return list(files.values())


def left_out_line(paths: Sequence[str]) -> str:
    """How many files of folders are not read, and of which kinds; empty if there are none."""
    if not paths:
        return ""
    names = [path.rpartition("/")[2] for path in paths]
    kinds: dict[str, list[str]] = {}
    for name in names:
        suffix = PurePosixPath(name).suffix
        kinds.setdefault(f"*{suffix}" if suffix else re.sub(r"\d+", "*", name), []).append(name)
    often = sorted(kinds, key=lambda kind: -len(kinds[kind]))
    shown = listed((each if kinds[each][1:] else kinds[each][0] for each in often), most=_KINDS)
    files = (
        "1 file is left out, whose name is not that"
        if len(paths) == 1
        else (f"{len(paths):,} files are left out, whose names are not those")
    )
    return f"{files} of a TFRecord: {shown}"


def look_at(words: Iterable[str]) -> None:
    """Find out what each URL among some words is, all at the same time, in a block of
    :func:`~tfrecreg.core.storage.paths.looks_remembered`.
    """
    urls = [each for each in words if is_url(each)]
    look_ahead(map(split_url, urls))
    asked(names_one_file, urls, in_store=bool(urls))


def look_ahead(files: Iterable[tuple[str, str]]) -> None:
    """Ask about many shards behind URLs by one listing, in a block of
    :func:`~tfrecreg.core.storage.paths.looks_remembered`.

    Only about those that are named as shards: of other names, any number may begin as theirs do.
    """
    sets: dict[tuple[str, str], list[str]] = {}
    for root, path in files:
        folder, _, name = path.rpartition("/")
        is_shard = parse_shard_name(name.removesuffix(_INDEX)) is not None
        in_bucket = is_url(root) and not is_web(root)
        if is_shard and in_bucket and locate(root, path) not in (remembered() or ()):
            sets.setdefault((root, folder), []).append(name)
    for (root, folder), names in sets.items():
        above = f"{folder}/".lstrip("/")
        start = os.path.commonprefix(names)  # noqa: RUF071 - of names
        if len(names) >= _TOGETHER and store_at(root).look_ahead(f"{above}{start}"):
            for name in names:
                if name.endswith(_INDEX):  # without one, records are found all the same
                    looked(locate(root, f"{above}{name}"), lambda: None)


def names_one_file(word: str) -> bool:
    """Whether a word is the path or the URL of one file, not of a folder."""
    return _place(word).is_file()


def names_folder(word: str) -> bool:
    """Whether a word is the path or the URL of a folder."""
    return not query_of(word) and _place(word).is_folder()


def names_files(word: str) -> bool:
    """Whether a word that is not a reference means files, such as ``shards/train-*``."""
    return "/" in word or glob.has_magic(word) or os.path.lexists(word)


def close_file(word: str) -> str:
    """``; did you mean `train`?`` if the folder of a missing file has one of a close name."""
    folder, name = os.path.split(word)
    try:
        with os.scandir(folder or os.curdir) as entries:
            return did_you_mean(name, (each.name for each in islice(entries, _MOST_NAMES)))
    except (OSError, ValueError):
        return ""


def names_set(word: str) -> bool:
    """Whether a word such as ``train@10`` names files of a set."""
    return bool(_Paths(word).glob(_of_set(word)))


def files_below(storage: Readable) -> Collection[str] | None:
    """The paths of all files of a folder behind a URL, by a request for each thousand.

    None for folders on a disk, which are asked file by file, and for web servers, which need not
    list what they have.
    """
    if storage.is_local or is_web(storage.root):
        return None
    return frozenset(entry.path for entry in storage.list() if entry.kind != "dir")


def _of_set(word: str) -> str:
    """The glob of ``prefix@5``, the files of one set of five, as TFX and Beam write it.

    Empty for any other word.
    """
    prefix, _, count = word.rpartition("@")
    if not prefix or not count.isdecimal():
        return ""
    return f"{glob.escape(prefix)}-[0-9]*-of-{int(count):05d}*"


def _shards_below(storage: Readable) -> tuple[list[str], list[str]]:
    """The shards, by their names, and the other files that no check reads.

    Hidden files and folders are left out, as globs leave them out. Parts of Spark, whose names say
    no format, are shards in folders where the content of one is TFRecords.
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
        return True  # the check reports that it cannot be read


def _dataset_near(folder: str) -> str | None:
    """A folder with a manifest up to two levels above or below."""
    above = Path(os.path.realpath(folder)).parents[:2]
    for found in (
        *(each / MANIFEST_NAME for each in above),
        *sorted(Path(folder).glob(f"*/{MANIFEST_NAME}"), reverse=True),
        *sorted(Path(folder).glob(f"*/*/{MANIFEST_NAME}"), reverse=True),
    ):
        if os.path.isfile(found):  # noqa: PTH113 - False where it may not be looked at
            return str(found.parent)
    return None


_ROOT = LocalStorage("/")


class _Paths:
    """What a word means on the disk."""

    def __init__(self, word: str) -> None:
        self.pattern = word

    @property
    def hint(self) -> str:
        near = _dataset_near(self.pattern) if self.is_folder() else None
        if near is not None:
            return f"`{safe(near, limit=1000)}` is the folder of a build or a release"
        return "quote globs, and check the path"

    def is_folder(self) -> bool:
        return os.path.isdir(self.pattern)  # noqa: PTH112 - False where it may not be looked at

    def is_file(self) -> bool:
        return os.path.lexists(self.pattern) and not self.is_folder()

    def shards(self) -> tuple[list[str], list[str]]:
        folder = Path(self.pattern)
        shards, others = _shards_below(LocalStorage(folder))
        return [str(folder / each) for each in shards], others

    def matches(self) -> list[str]:
        return [self.pattern] if self._may_exist() else self.glob(self.pattern)

    def glob(self, pattern: str) -> list[str]:
        found = glob.glob(pattern, recursive=True)
        return [each for each in found if not os.path.isdir(each)]  # noqa: PTH112 - as above

    def file(self, path: str) -> BareFile:
        # Links above the file are followed, as `..` requires; its own name is kept.
        folder, name = os.path.split(path)
        absolute = str(Path(os.path.realpath(folder or "."), name))
        return BareFile(_ROOT, absolute.lstrip("/"), path)

    def why_none(self) -> str:
        return ""

    def close_name(self) -> str:
        return "" if glob.has_magic(self.pattern) else close_file(self.pattern)

    def _may_exist(self) -> bool:
        """Whether it exists or is not accessible: then reading it shows which."""
        try:
            os.lstat(self.pattern)
        except PermissionError:
            return True
        except (OSError, ValueError):
            return False
        return True


class _Urls:
    """What a word means behind a URL."""

    hint = "quote globs, and check the name and the bucket"

    def __init__(self, url: str) -> None:
        self._url = url
        self._root, self.pattern = split_url(url)
        self._store = store_at(self._root)
        self._is_glob = glob.has_magic(self.pattern)

    def is_folder(self) -> bool:
        """Web servers have none: there a trailing slash marks a folder."""
        if self._is_glob or not self.pattern or self.pattern.endswith("/"):
            return not self._is_glob
        return not is_web(self._url) and self._kind() == "dir"

    def is_file(self) -> bool:
        if self._is_glob or not self.pattern or self.pattern.endswith("/"):
            return False
        return self._kind() == "file"

    def shards(self) -> tuple[list[str], list[str]]:
        above = self.pattern.rstrip("/")
        shards, others = _shards_below(storage_at(self._url))
        return [f"{above}/{each}".lstrip("/") for each in shards], others

    def matches(self) -> list[str]:
        found = self.glob(self.pattern) if self._is_glob else []
        return found or [self.pattern] * (self._kind() != "")

    def glob(self, pattern: str) -> list[str]:
        return [entry.path for entry in self._store.glob(pattern)] if pattern else []

    def file(self, path: str) -> BareFile:
        return BareFile(self._store, path, f"{self._store.root}/{path}")

    def why_none(self) -> str:
        is_bucket = self._root.startswith(("s3:", "s3a:", "gs:", "gcs:"))
        if not is_bucket or self._store.stat("") is not None:
            return ""
        return f"there is no bucket `{safe(self._root, limit=1000)}`"

    def close_name(self) -> str:
        return ""

    def _kind(self) -> str:
        entry = self._store.stat(self.pattern)
        return "" if entry is None else entry.kind


def _place(word: str) -> _Paths | _Urls:
    return _Urls(word) if is_url(word) else _Paths(word)
