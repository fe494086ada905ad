"""DVC's cache on this machine: its removable objects."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfrecreg.builtin.dvc.dvc import opened
from tfrecreg.builtin.dvc.remote_objects import (
    DIR_SUFFIX,
    is_object,
    md5_of,
    remote_names,
    remote_objects,
)
from tfrecreg.core.values.errors import FailureError
from tfrecreg.core.values.text import safe

_TEMPORARY = re.compile(r"\.[A-Za-z0-9_-]{22}\.tmp")
"""What DVC calls a file that it is writing."""


@dataclass(frozen=True, slots=True)
class UnusedFile:
    """A file of DVC's cache that may go."""

    cached: str
    bytes: int


def shared_folder(root: str) -> str:
    """The folder of a cache outside the repository, which others may use; empty for one inside."""
    with opened(root, "dvc cache dir") as repo:
        folder = Path(repo.cache.local.path).resolve()
        return "" if Path(repo.root_dir).resolve() in folder.parents else str(folder)


def stale(
    root: str,
    kept: Collection[str],
    linked: Iterable[str],
    refs: Sequence[str],
    mark: str,
    sizes: Collection[int],
) -> list[UnusedFile]:
    """Unreferenced objects of the cache that belong to our folders. A caller that removes them
    holds DVC's lock from before this call until then.

    A list of any other referenced folder is read from the default remote. If it is not there
    either, all objects are left alone.
    """
    with opened(root, "dvc gc") as repo:
        cache = repo.cache.local
        named = _hashes_in(repo, refs)
        marked = {*kept, *named}
        unknown = False
        for value in [value for value in marked if value.endswith(DIR_SUFFIX)]:
            data = _list(cache, value)
            if data is None and value not in kept and remote_names(repo):
                data = remote_objects(repo, None, "fetch")[0].read_list(value)
            if data is None and value not in kept:
                return []  # its files are unknown
            unknown |= data is None
            marked |= {oid for _, oid in _entries(data)}
        present = set(cache.all())
        doomed: set[str] = set()
        for value in sorted(present - marked):
            if not value.endswith(DIR_SUFFIX):
                continue
            entries = _entries(_list(cache, value))
            if any(path == mark for path, _ in entries):
                doomed.add(value)
                doomed |= {oid for _, oid in entries if oid in present and oid not in marked}
        ordered = sorted(doomed, key=lambda oid: (oid.endswith(DIR_SUFFIX), oid))
        held = set(linked)
        found = [
            UnusedFile(path, Path(path).stat().st_size)
            for path in map(cache.oid_to_path, ordered)
            if os.path.realpath(path) not in held
        ]
    return [
        each
        for each in found
        if not unknown or each.bytes not in sizes or each.cached.endswith(DIR_SUFFIX)
    ]


def abandoned(root: str) -> list[UnusedFile]:
    """Files that a killed command was writing into the cache. A caller that removes them holds
    DVC's lock from before this call until then, so that no command of this repository writes them.
    """
    with opened(root, "dvc gc") as repo:
        folder = Path(repo.cache.local.path)
    try:
        return [
            UnusedFile(str(path), path.lstat().st_size)
            for path in sorted(folder.rglob(".*.tmp"))
            if _TEMPORARY.fullmatch(path.name) and not path.is_dir()
        ]
    except OSError as error:
        raise FailureError(
            f"`{safe(str(folder))}` cannot be listed: {error.strerror}",
            hint="check who owns DVC's cache",
        ) from error


def remove_objects(objects: Iterable[UnusedFile]) -> None:
    """Remove objects of the cache. Raises FailureError."""
    for each in objects:
        try:
            Path(each.cached).unlink(missing_ok=True)
        except OSError as error:
            raise _refused(each.cached, error) from error


def remove_corrupt(objects: Mapping[str, str]) -> int:
    """Remove objects of the cache whose bytes do not match their names."""
    removed = 0
    for file, cached in objects.items():
        path = Path(cached)
        try:
            found = md5_of(path)
            linked = Path(file).is_symlink() and Path(file).resolve() == path.resolve()
            if found != path.parent.name + path.name and not linked:
                path.unlink()
                removed += 1
        except OSError as error:
            raise _refused(cached, error) from error
    return removed


def _refused(cached: str, error: OSError) -> FailureError:
    return FailureError(
        f"`{safe(cached)}` cannot be removed: {error.strerror}", hint="check who owns DVC's cache"
    )


def _hashes_in(repo: Any, refs: Sequence[str]) -> set[str]:
    """The hashes in all pointers and pipelines of the workspace and of `refs`."""
    found = set()
    for named in (None, refs):
        if named is None or named:
            for _ in repo.brancher(revs=named):
                infos = (out.hash_info for out in repo.index.outs if out.use_cache)
                found |= {str(info.value) for info in infos if info and info.value}
    return found


def _list(cache: Any, value: str) -> bytes | None:
    """The list of a folder; None if the cache does not have it, or damaged."""
    path = Path(cache.oid_to_path(value))
    data = path.read_bytes() if path.is_file() else b""
    return data if is_object(data, value) else None


def _entries(data: bytes | None) -> list[tuple[str, str]]:
    """Path and hash of each file of a folder, from its list."""
    listed = json.loads(data) if data is not None else []
    return [(str(each["relpath"]), str(each["md5"])) for each in listed]
