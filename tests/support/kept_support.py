"""The bytes of releases and builds, verified without the code under test."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from blake3 import blake3

_OBJECTS = "files/md5"
_POINTER = re.compile(r"^- md5: ([0-9a-f]{32}\.dir)$", re.MULTILINE)
_LOCKED = re.compile(r"- path: data/\w+\n +hash: md5\n +md5: ([0-9a-f]{32}\.dir)\n")
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.tmp|\.tfrecreg-.*\.tmp", re.DOTALL)


def expect_kept(root: Path, *stores: Path, pointers: bool = True) -> None:
    """All bytes that releases and DVC's pointers name are there, each as it is named.

    Args:
        root: the registry.
        stores: folders of DVC, its cache not among them: remotes.
        pointers: whether DVC's pointers count; else releases alone do.
    """
    lost = [
        f"{manifest.parent.relative_to(root)}: {each}"
        for manifest in sorted(root.glob("registry/*/*/manifest.json"))
        for each in lost_of(manifest, root, *stores)
    ]
    objects = [place / _OBJECTS for place in (root / ".dvc/cache", *stores)]
    for pointer in (*sorted(root.glob("data/*.dvc")), root / "dvc.lock") if pointers else ():
        pattern = _LOCKED if pointer.name == "dvc.lock" else _POINTER
        for value in pattern.findall(pointer.read_text()) if pointer.exists() else ():
            lost += [f"{pointer.name}: {each}" for each in _files_of(value, objects)[1]]
    assert not lost, lost


def lost_of(manifest: Path, root: Path, *stores: Path) -> list[str]:
    """What is lost of the bytes of one release; it is empty where all are kept."""
    document = json.loads(manifest.read_bytes())
    named = _named(document)
    value = document["release"].get("dvc")
    if value:
        objects = [place / _OBJECTS for place in (root / ".dvc/cache", *stores)]
        files, lost = _files_of(value, objects)
        if not lost:
            lost = [path for path in (*named, "manifest.json") if path not in files]
        return lost or [
            f"{path} as DVC keeps it is not what was released"
            for path, digest in named.items()
            if _digest(files[path]) != digest
        ]
    name, version = document["dataset"], document["release"]["version"]
    places = (root / f"versions/{name}/{version}", root / f"data/{name}")
    wrong = [
        [path for path, digest in named.items() if _digest(place / path) != digest]
        for place in places
    ]
    return [] if [] in wrong else [f"{path} is nowhere" for path in wrong[0]]


def _named(document: Any) -> dict[str, str]:
    """The files that a manifest names, and the blake3 of each."""
    return {each["path"]: each["blake3"] for each in (*document["shards"], *document["files"])}


def _digest(path: Path) -> str:
    return blake3(path.read_bytes()).hexdigest() if path.is_file() else ""


def _files_of(value: str, objects: list[Path]) -> tuple[dict[str, Path], list[str]]:
    """The files of a folder that DVC keeps, and the lost ones."""
    listing = _object(value, objects)
    if listing is None:
        return {}, [f"the list {value}"]
    files, lost = {}, []
    for each in json.loads(listing.read_bytes()):
        found = _object(each["md5"], objects)
        if found is None:
            lost.append(each["relpath"])
        else:
            files[each["relpath"]] = found
    return files, lost


def _object(value: str, objects: list[Path]) -> Path | None:
    """The place of an intact object."""
    for place in objects:
        path = place / value[:2] / value[2:]
        if path.is_file():
            found = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
            if found == value.removesuffix(".dir"):
                return path
    return None


def expect_nothing_left(folder: Path) -> None:
    """No file of a command that was killed or refused is there: not staged, and not hidden."""
    left = [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if _TEMPORARY.fullmatch(path.name)
        or (".tfrecreg/stage/" in path.as_posix() and not path.is_dir())
    ]
    assert not left, left
