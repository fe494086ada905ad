"""The roles of a folder's files: splits, images and labels, in pairs, detected by name alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from tfrecreg.api import RawDataError, Storage, safe

_SPLITS = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "t10k": "test",
    "test": "test",
}
_ORDER = ("train", "validation", "test")
_PARTNERS = {"images": "labels", "labels": "images"}
_DIMENSIONS = {"images": 3, "labels": 1}
_KINDS = {
    "dir": "a link to a folder",
    "link": "a link that leads nowhere",
    "other": "a FIFO, a socket or a device",
}
_NAME = re.compile(
    rf"(?P<prefix>(?:.*[-_.])?)(?P<word>{'|'.join(_SPLITS)})(?P<dash>[-_.])"
    rf"(?P<role>images|labels)(?P<dot>[-_.])idx[0-9]-[a-z0-9]+(?P<gz>\.gz)?",
    re.DOTALL,
)
_TAKES = "name the folder of the IDX files with `--raw`"


class IdxFile(NamedTuple):
    """A file with the usual name of an IDX file. While it stays equal, so does its content."""

    path: str
    """Its name in the raw folder."""
    size: int
    mtime_ns: int
    inode: int
    prefix: str
    """The start of the names of its set, as ``emnist-letters-``; mostly empty."""
    split: str
    """``train``, ``validation`` or ``test``."""
    role: str
    """``images`` or ``labels``."""
    partner: str
    """The name expected of the other file of its pair."""

    @property
    def dimensions(self) -> int:
        """3 for images, 1 for labels."""
        return _DIMENSIONS[self.role]


def is_idx_name(name: str) -> bool:
    """Whether a file is called as the IDX files of these datasets are."""
    return _NAME.fullmatch(name) is not None


def find_idx_files(raw: Storage, prefix: str) -> list[IdxFile]:
    """The IDX files right in a folder, all of one set."""
    folder = safe(raw.root, limit=4096)
    here = raw.stat("")
    if here is None or here.kind != "dir":
        raise RawDataError(f"no such folder: `{folder}`", hint=_TAKES)
    others: list[str] = []
    files: list[IdxFile] = []
    for entry in raw.list(recursive=False):
        match = _NAME.fullmatch(entry.path)
        # Some publishers unpack each file into a folder of the same name.
        if match is None or entry.kind == "dir":
            others.append(entry.path + "/" * (entry.kind == "dir"))
        elif prefix and match["prefix"].rstrip("-_.") != prefix.rstrip("-_."):
            others.append(entry.path)
        else:
            files.append(_file(raw, entry.path, match))
    sets = {file.prefix: file.path for file in files}
    if len(sets) > 1:
        raise RawDataError(
            f"`{folder}` holds several sets: {_format_names(sets.values())}",
            hint=f"select one with `--option prefix={safe(max(sets))}`, or keep one in the folder",
        )
    if not files and not others:
        raise RawDataError(
            f"`{folder}` is empty: expected IDX files such as `train-images-idx3-ubyte.gz`",
            hint=_TAKES,
        )
    if not files:
        raise RawDataError(
            f"`{folder}` holds no IDX file: expected names such as "
            f"`{safe(prefix)}train-images-idx3-ubyte.gz`, found {_format_names(others)}",
            hint=f"{_TAKES}, under their usual names",
        )
    return files


def stray_names(raw: Storage) -> list[str]:
    """The names of files that are not IDX files. Folders beside may be anything, such as builds."""
    return [
        entry.path
        for entry in raw.list(recursive=False)
        if entry.kind != "dir" and not is_idx_name(entry.path)
    ]


def find_twins(files: Iterable[IdxFile]) -> list[tuple[IdxFile, IdxFile]]:
    """Files that are there plain and as ``.gz``, as torchvision leaves them: plain ones first."""
    by_path = {file.path: file for file in files}
    return [
        (file, by_path[f"{path}.gz"]) for path, file in by_path.items() if f"{path}.gz" in by_path
    ]


def pair_files(files: Iterable[IdxFile]) -> dict[str, tuple[IdxFile, IdxFile]]:
    """Images and labels by split, train first; of twins, the plain files."""
    places: dict[tuple[str, str], IdxFile] = {}
    files = list(files)
    compressed = {gz.path for _, gz in find_twins(files)}
    for file in files:
        if file.path in compressed:
            continue
        other = places.setdefault((file.split, file.role), file)
        if other is not file:
            raise _duplicate(file, *sorted((other.path, file.path), key=len))
    splits = [split for split in _ORDER if {(split, "images"), (split, "labels")} & places.keys()]
    lone = [
        f"`{safe(places[split, role].path)}` lacks its {missing}, "
        f"expected `{safe(places[split, role].partner)}`"
        for split in splits
        for role, missing in _PARTNERS.items()
        if (split, missing) not in places
    ]
    if lone:
        raise RawDataError(
            "; ".join(lone), hint="add the missing file, or remove the lone one from the folder"
        )
    return {split: (places[split, "images"], places[split, "labels"]) for split in splits}


def _file(raw: Storage, path: str, match: re.Match[str]) -> IdxFile:
    entry = raw.stat(path, follow="all")
    if entry is None or entry.kind != "file":
        raise RawDataError(
            f"`{safe(path)}` is not a regular file but {_KINDS[entry.kind if entry else 'link']}",
            hint="put the file itself there; `dvc checkout` or `dvc pull` restores the target of "
            "a link into DVC's cache",
        )
    partner = _PARTNERS[match["role"]]
    return IdxFile(
        path,
        entry.size,
        entry.mtime_ns,
        entry.inode,
        prefix=match["prefix"],
        split=_SPLITS[match["word"]],
        role=match["role"],
        partner=f"{match['prefix']}{match['word']}{match['dash']}{partner}{match['dot']}"
        f"idx{_DIMENSIONS[partner]}-ubyte{match['gz'] or ''}",
    )


def _duplicate(file: IdxFile, first: str, second: str) -> RawDataError:
    return RawDataError(
        f"two files for the {file.role} of `{file.split}`: `{safe(first)}` and `{safe(second)}`",
        hint="remove one of them",
    )


def _format_names(names: Iterable[str]) -> str:
    """The first three names, escaped, and how many more there are."""
    every = [f"`{safe(name, limit=60)}`" for name in names]
    more = f" and {len(every) - 3} more" if len(every) > 3 else ""
    return ", ".join(every[:3]) + more
