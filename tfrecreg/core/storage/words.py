"""Finds what a user's word (a path or a URL) names: a file, a folder or the matches of a glob."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.storage.paths import INDEX_SUFFIX, is_url, is_web, split_url
from tfrecreg.core.storage.raw import asked, store_at
from tfrecreg.core.values.shards import parse_shard_name

_ROOT = LocalStorage("/")


class BareFile(NamedTuple):
    """A file that was found by its name."""

    storage: Readable
    path: str
    """The path in `storage`."""
    name: str
    """The name in findings: the path as given, or the URL. Not escaped."""

    @property
    def place(self) -> str:
        """The location, which identifies the file."""
        return f"{self.storage.root.rstrip('/')}/{self.path}"


class PathWord:
    """A word that is taken as a local path."""

    storage: Readable = _ROOT

    def __init__(self, word: str) -> None:
        self.pattern = word

    def is_folder(self) -> bool:
        return os.path.isdir(self.pattern)

    def is_file(self) -> bool:
        return os.path.lexists(self.pattern) and not self.is_folder()

    def inside(self, path: str) -> str:
        """A pattern for the file `path` in the named folder."""
        return str(Path(self.pattern, path))

    def matches(self) -> list[str]:
        """Find the file at exactly this path. If there is none, find the files that match the word
        as a glob.
        """
        try:
            os.lstat(self.pattern)
        except PermissionError:
            pass  # reading the file reports the refusal
        except (OSError, ValueError):
            return self.glob(self.pattern)
        return [self.pattern]

    def glob(self, pattern: str) -> list[str]:
        found = glob.glob(pattern, recursive=True)
        return [each for each in found if not os.path.isdir(each)]

    def file(self, path: str) -> BareFile:
        # Links above the file are resolved, as `..` requires; the file's own name stays.
        folder, name = os.path.split(path)
        absolute = str(Path(os.path.realpath(folder or "."), name))
        return BareFile(_ROOT, absolute.lstrip("/"), path)


class UrlWord:
    """A word that is taken as a URL."""

    def __init__(self, url: str) -> None:
        root, self.pattern = split_url(url)
        self.storage = store_at(root)
        self._is_glob = glob.has_magic(self.pattern)

    def is_folder(self) -> bool:
        """Whether the URL names a folder. On web servers, which have no folders, a trailing slash
        decides.
        """
        if self._is_glob or not self.pattern or self.pattern.endswith("/"):
            return not self._is_glob
        return not is_web(self.storage.root) and self._kind() == "dir"

    def is_file(self) -> bool:
        if self._is_glob or not self.pattern or self.pattern.endswith("/"):
            return False
        return self._kind() == "file"

    def inside(self, path: str) -> str:
        return f"{self.pattern.rstrip('/')}/{path}".lstrip("/")

    def matches(self) -> list[str]:
        found = self.glob(self.pattern) if self._is_glob else []
        return found or [self.pattern] * (self._kind() != "")

    def glob(self, pattern: str) -> list[str]:
        return [entry.path for entry in self.storage.glob(pattern)] if pattern else []

    def file(self, path: str) -> BareFile:
        return BareFile(self.storage, path, f"{self.storage.root}/{path}")

    def _kind(self) -> str:
        entry = self.storage.stat(self.pattern)
        return "" if entry is None else entry.kind


def named(word: str) -> PathWord | UrlWord:
    """The meaning of a word. A URL must be given without its query."""
    return UrlWord(word) if is_url(word) else PathWord(word)


def names_one_file(word: str) -> bool:
    """Whether a word names a single file by path or URL. For a folder or several files, False."""
    return named(word).is_file()


def look_at(words: Iterable[str]) -> None:
    """Find out what each word names, and request all URLs at the same time. Call it in a block of
    :func:`~tfrecreg.core.storage.paths.looks_remembered`, which keeps the answers.
    """
    several = list(words)
    look_ahead((each.storage, each.pattern) for each in map(named, several))
    asked(names_one_file, several, several)


def look_ahead(files: Iterable[tuple[Readable, str]]) -> None:
    """Get the facts about many shards with one listing. Call it in a block of
    :func:`~tfrecreg.core.storage.paths.looks_remembered`, which keeps these facts.

    Files that are not shards are ignored: many other files may have names with the same beginning,
    and a listing by that beginning would return all of them.
    """
    sets: dict[tuple[Readable, str], list[str]] = {}
    for storage, path in files:
        folder, _, name = path.rpartition("/")
        if parse_shard_name(name.removesuffix(INDEX_SUFFIX)) is not None:
            sets.setdefault((storage, folder), []).append(path)
    for (storage, _), paths in sets.items():
        storage.look_ahead(paths)
