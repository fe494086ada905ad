"""The bytes of releases and builds, verified without the code under test."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from blake3 import blake3

_POINTER = re.compile(r"^- md5: ([0-9a-f]{32}\.dir)$", re.MULTILINE)
_LOCKED = re.compile(r"- path: data/\w+\n +hash: md5\n +md5: ([0-9a-f]{32}\.dir)\n")
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.tmp|\.tfrecreg-.*\.tmp", re.DOTALL)


def expect_kept(root: Path, remote: Path, *, pointers: bool = True) -> None:
    """All bytes that releases and, with `pointers`, DVC's pointers name are intact, in the registry
    or in DVC's remote.
    """
    objects = [place / "files/md5" for place in (root / ".dvc/cache", remote)]
    lost = [
        f"{manifest.parent.relative_to(root)}: {each}"
        for manifest in sorted(root.glob("registry/*/*/manifest.json"))
        for each in _lost_of(json.loads(manifest.read_bytes()), root, objects)
    ]
    for pointer in (*sorted(root.glob("data/*.dvc")), root / "dvc.lock") if pointers else ():
        pattern = _LOCKED if pointer.name == "dvc.lock" else _POINTER
        for value in pattern.findall(pointer.read_text()) if pointer.exists() else ():
            found = _files_of(value, objects)
            lost += [f"{pointer.name}: {path}" for path in found if found[path] is None]
    assert not lost, lost


def _lost_of(manifest: Any, root: Path, objects: list[Path]) -> list[str]:
    named = {each["path"]: each["blake3"] for each in (*manifest["shards"], *manifest["files"])}
    name, release = manifest["dataset"], manifest["release"]
    if release.get("dvc"):
        files = {"manifest.json": None, **_files_of(release["dvc"], objects)}
        wrong = [path for path in named if _digest(files.get(path)) != named[path]]
        return wrong + [path for path in files if files[path] is None]
    wrong = [
        [path for path in named if _digest(place / path) != named[path]]
        for place in (root / f"versions/{name}/{release['version']}", root / f"data/{name}")
    ]
    return [] if [] in wrong else wrong[0]


def _digest(path: Path | None) -> str:
    return blake3(path.read_bytes()).hexdigest() if path is not None and path.is_file() else ""


def _files_of(value: str, objects: list[Path]) -> dict[str, Path | None]:
    """The files of a folder that DVC keeps, None for lost files; without its list only that."""
    listing = _object(value, objects)
    if listing is None:
        return {value: None}
    listed = json.loads(listing.read_bytes())
    return {each["relpath"]: _object(each["md5"], objects) for each in listed}


def _object(value: str, objects: list[Path]) -> Path | None:
    for place in objects:
        path = place / value[:2] / value[2:]
        if path.is_file():
            found = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
            if found == value.removesuffix(".dir"):
                return path
    return None


def expect_nothing_left(folder: Path) -> None:
    """No staged or hidden file of a killed or refused command is left."""
    left = [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if _TEMPORARY.fullmatch(path.name)
        or (".tfrecreg/stage/" in path.as_posix() and not path.is_dir())
    ]
    assert not left, left
