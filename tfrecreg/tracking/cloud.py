"""Folders that DVC keeps, by their recorded hash: to a remote and back, and what nobody refers to.

A hash is DVC's of a folder, ``<md5>.dir``: an object that lists the folder's files and the hash of
each. Bytes from DVC are verified again, because DVC does not verify its cache.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfrecreg.errors import FailureError, UsageError
from tfrecreg.text import safe
from tfrecreg.tracking.dvc import locked, opened

_ALGORITHM = "md5"
_DIR = ".dir"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Held:
    """A file of a folder that DVC's cache holds."""

    path: str
    """In the folder, POSIX."""
    cached: str
    """Absolute path of the object in the cache."""


@dataclass(frozen=True, slots=True)
class Stale:
    """An object of DVC's cache that nothing refers to."""

    cached: str
    bytes: int


def remotes(root: str) -> list[str]:
    """The names of the DVC remotes that the registry knows, the default one first."""
    with opened(root, "dvc remote list") as repo:
        names = list(repo.config["remote"])
        default = repo.config["core"].get("remote")
    return sorted(names, key=lambda name: (name != default, name))


def send(root: str, hashes: Sequence[str], remote: str | None) -> int:
    """Push folders to a remote, and return how many objects went there.

    Args:
        root: the registry's root.
        hashes: of the folders.
        remote: its name; None for the default one.

    Raises:
        UsageError: there is no such remote.
        FailureError: DVC refused, or objects are neither in the cache nor in the remote.
    """
    _expect_remote(root, remote)
    with locked(root), opened(root, "dvc push") as repo:
        here = [value for value in hashes if repo.cache.local.exists(value)]
        result = repo.cloud.push(_infos(_whole(repo, here)), remote=remote)
    _none_failed(result.failed, "pushed", "check that it is in the cache; `dvc push` shows more")
    lacking = [value for value in hashes if value not in here]
    if lacking:
        others = "all others were sent" if here else "nothing was sent"
        raise FailureError(
            f"DVC's cache does not have the folder `{safe(lacking[0])}`, so {others}",
            hint="push where it was released, or `dvc fetch --all-commits` first",
        )
    return len(result.transferred)


def fetch(root: str, value: str, remote: str | None) -> list[Held]:
    """Have a folder in the cache, from a remote where it is not there yet.

    Raises:
        UsageError: it is not in the cache, and there is no such remote.
        FailureError: DVC refused, or the remote does not have it.
    """
    with opened(root, "dvc fetch") as repo:
        lacking = _lacking(repo, value)
    if lacking:
        _expect_remote(root, remote)
        hint = "push it where it was released: tfrecreg push"
        with opened(root, "dvc fetch") as repo:
            # The list first, for it says what else there is.
            failed = repo.cloud.pull(_infos([value]), remote=remote).failed
            if repo.cache.local.exists(value):
                failed |= repo.cloud.pull(_infos(_whole(repo, [value])), remote=remote).failed
        _none_failed(failed, "fetched", hint)
    with opened(root, "dvc fetch") as repo:
        if _lacking(repo, value):
            raise FailureError(
                f"the remote does not have all of the folder `{safe(value)}`",
                hint="where it was released: tfrecreg push",
            )
        return list(_files(repo, value))


def missing(root: str, hashes: Sequence[str], remote: str | None) -> set[str]:
    """Those of the folders of which anything is missing in the remote."""
    _expect_remote(root, remote)
    found = set()
    with opened(root, "dvc status --cloud") as repo:
        for value in hashes:
            if not repo.cache.local.exists(value):
                found.add(value)  # its content is unknown here
                continue
            status = repo.cloud.status(_infos(_whole(repo, [value])), remote=remote)
            if status.missing or status.new or not status.ok:
                found.add(value)
    return found


def stale(
    root: str, kept: Iterable[str], linked: Iterable[str], refs: Sequence[str], mark: str
) -> list[Stale]:
    """Objects of the cache that belong to our folders and that nothing refers to. Whoever calls it
    to remove them holds DVC's lock from before until then.

    Args:
        root: the registry's root.
        kept: hashes of folders that are referred to, beside those of all pointers and pipelines in
            those `refs` and the workspace.
        linked: absolute paths of objects that stay because links lead to them.
        refs: commits to look at; empty outside git.
        mark: the file by which a folder is known to be ours: others are left alone.

    Returns:
        the objects, each list of a folder behind the files that it lists: killed while it removes
        them in this order, whoever looks again finds the rest by the list.
    """
    with opened(root, "dvc gc") as repo:
        cache = repo.cache.local
        marked = set(kept)
        for named in (None, refs):
            if named is None or named:
                for infos in repo.used_objs(revs=named).values():
                    marked |= {info.value for info in infos}
        present = set(cache.all())
        for value in [value for value in marked if value.endswith(_DIR) and value in present]:
            marked |= {oid for _, oid in _entries(repo, value)}
        doomed: set[str] = set()
        for value in sorted(present - marked):
            if not value.endswith(_DIR):
                continue
            entries = _entries(repo, value)
            if any(path == mark for path, _ in entries):
                doomed.add(value)
                doomed |= {oid for _, oid in entries if oid in present and oid not in marked}
        ordered = sorted(doomed, key=lambda oid: (oid.endswith(_DIR), oid))
        held = set(linked)
        paths = [
            path for path in map(cache.oid_to_path, ordered) if os.path.realpath(path) not in held
        ]
    return [Stale(path, Path(path).stat().st_size) for path in paths]


def remove(objects: Iterable[Stale]) -> None:
    """Remove objects of the cache. Raises FailureError."""
    for each in objects:
        try:
            Path(each.cached).unlink(missing_ok=True)
        except OSError as error:
            raise _refused(each.cached, error) from error


def remove_corrupt(objects: Mapping[str, str]) -> int:
    """Remove objects of the cache that do not have the bytes that their names say.

    Args:
        objects: the path of a file in the workspace to the object that DVC keeps it in. An object
            that the file is a symbolic link to stays: it is the only one with its bytes.

    Returns:
        how many were removed.

    Raises:
        FailureError: one of them cannot be read or removed.
    """
    removed = 0
    for file, cached in objects.items():
        path = Path(cached)
        try:
            with path.open("rb") as stream:
                found = hashlib.new(_ALGORITHM, usedforsecurity=False)
                while piece := stream.read(_CHUNK):
                    found.update(piece)
            linked = Path(file).is_symlink() and Path(file).resolve() == path.resolve()
            if found.hexdigest() != path.parent.name + path.name and not linked:
                path.unlink()
                removed += 1
        except OSError as error:
            raise _refused(cached, error) from error
    return removed


def _refused(cached: str, error: OSError) -> FailureError:
    return FailureError(
        f"`{safe(cached)}` cannot be removed: {error.strerror}", hint="check who owns DVC's cache"
    )


def _whole(repo: Any, hashes: Sequence[str]) -> list[str]:
    """Folders, and all files of them: DVC takes a folder's hash for its list alone."""
    return sorted({oid for value in hashes for _, oid in _entries(repo, value)} | set(hashes))


def _infos(hashes: Sequence[str]) -> list[Any]:
    from dvc_data.hashfile.hash_info import HashInfo

    return [HashInfo(_ALGORITHM, value) for value in hashes]


def _entries(repo: Any, value: str) -> list[tuple[str, str]]:
    """Path and hash of each file of a folder that the cache lists."""
    from dvc_data.hashfile.tree import Tree

    tree = Tree.load(repo.cache.local, _infos([value])[0])
    return [("/".join(key), info.value) for key, _, info in tree]


def _lacking(repo: Any, value: str) -> bool:
    cache = repo.cache.local
    if not cache.exists(value):
        return True
    return not all(cache.exists(oid) for _, oid in _entries(repo, value))


def _files(repo: Any, value: str) -> Iterator[Held]:
    for path, oid in _entries(repo, value):
        yield Held(path, repo.cache.local.oid_to_path(oid))


def _expect_remote(root: str, remote: str | None) -> None:
    known = remotes(root)
    if remote is not None and remote not in known:
        raise UsageError(
            f"DVC has no remote `{safe(remote)}`",
            hint=f"available: {', '.join(known)}" if known else "dvc remote add -d NAME URL",
        )
    if not known:
        raise UsageError(
            "DVC has no remote to push to or fetch from", hint="dvc remote add -d NAME URL"
        )


def _none_failed(failed: Iterable[Any], what: str, hint: str) -> None:
    lost = sorted(str(info.value) for info in failed)
    if lost:
        raise FailureError(f"{len(lost)} objects were not {what}; one is `{lost[0]}`", hint=hint)
