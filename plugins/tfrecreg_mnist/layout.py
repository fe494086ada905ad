"""Which file of a folder is what: names, sets, splits and pairs. Looks at names only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tfrecreg.api import RawDataError, Storage, safe

__all__ = ["IMAGES", "LABELS", "IdxFile", "Pair", "find", "pair"]

IMAGES = "images"
LABELS = "labels"

_SPLITS = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "t10k": "test",
    "test": "test",
}
_ORDER = ("train", "validation", "test")
_DIMENSIONS = {IMAGES: 3, LABELS: 1}
_KINDS = {
    "dir": "a link to a folder",
    "link": "a link that leads nowhere",
    "other": "a FIFO, a socket or a device",
}
_NAME = re.compile(
    rf"(?P<prefix>(?:.*[-_.])?)(?P<word>{'|'.join(_SPLITS)})(?P<dash>[-_.])"
    rf"(?P<role>{IMAGES}|{LABELS})(?P<dot>[-_.])idx[0-9]-[a-z0-9]+(?P<gz>\.gz)?",
    re.DOTALL,
)
_EXAMPLE = "`train-images-idx3-ubyte.gz`"


@dataclass(frozen=True, slots=True)
class IdxFile:
    """A file whose name is that of an IDX file of this kind of dataset."""

    path: str
    """Its name in the raw folder."""
    identity: tuple[str, int, int, int]
    """Name, size, time and inode: as long as these stay, so does what was found in it."""
    prefix: str
    """The set it belongs to, as `emnist-letters-`; mostly empty."""
    split: str
    """`train`, `validation` or `test`."""
    role: str
    """:data:`IMAGES` or :data:`LABELS`."""
    partner: str
    """The name that the other file of its pair is expected to have."""

    @property
    def dimensions(self) -> int:
        """3 for images, 1 for labels."""
        return _DIMENSIONS[self.role]


@dataclass(frozen=True, slots=True)
class Pair:
    """The images and the labels of one split."""

    split: str
    images: IdxFile
    labels: IdxFile


def find(raw: Storage, prefix: str) -> list[IdxFile]:
    """The IDX files right in the folder, of one set: the one that `prefix` names, or the only one.

    Raises:
        RawDataError: no such folder, nothing in it, no IDX file, several sets, or a name that is
            no file (a broken link, a FIFO).
    """
    folder = safe(raw.root, limit=4096)
    here = raw.stat("")
    if here is None or here.kind != "dir":
        raise RawDataError(
            f"no such folder: `{folder}`", hint="`--raw` takes the folder of the IDX files"
        )
    others: list[str] = []
    files: list[IdxFile] = []
    for entry in raw.list(recursive=False):
        match = _NAME.fullmatch(entry.path)
        # Some publishers unpack each file into a folder of the same name.
        if match is None or entry.kind == "dir":
            others.append(entry.path + "/" * (entry.kind == "dir"))
        elif not prefix or match["prefix"].rstrip("-_.") == prefix.rstrip("-_."):
            files.append(_file(raw, entry.path, match))
        else:
            others.append(entry.path)
    sets = {file.prefix: file.path for file in files}
    if len(sets) > 1:
        raise RawDataError(
            f"`{folder}` holds several sets: {_few(list(sets.values()))}",
            hint=f"choose one with `--option prefix={safe(max(sets))}`, or keep one in the folder",
        )
    if not files and not others:
        raise RawDataError(
            f"`{folder}` is empty: expected IDX files such as {_EXAMPLE}",
            hint="`--raw` takes the folder of the IDX files",
        )
    if not files:
        wanted = f"names such as `{safe(prefix)}train-images-idx3-ubyte.gz`"
        raise RawDataError(
            f"`{folder}` holds no IDX file: expected {wanted}, found {_few(others)}",
            hint="`--raw` takes the folder of the IDX files, under their usual names",
        )
    return files


def pair(files: Iterable[IdxFile]) -> list[Pair]:
    """The splits, train first, each with its images and labels.

    Raises:
        RawDataError: two files for one place, or a file without its partner.
    """
    places: dict[tuple[str, str], IdxFile] = {}
    for file in files:
        other = places.setdefault((file.split, file.role), file)
        if other is not file:
            _refuse_twins(file.role, file.split, *sorted((other.path, file.path), key=len))
    alone = [
        f"`{safe(file.path)}` lacks its {role}, expected `{safe(file.partner)}`"
        for split in _ORDER
        for mine, role in ((IMAGES, LABELS), (LABELS, IMAGES))
        if (split, mine) in places and (split, role) not in places
        for file in (places[split, mine],)
    ]
    if alone:
        raise RawDataError(
            "; ".join(alone), hint="add what is missing, or take the lone file out of the folder"
        )
    return [
        Pair(split, places[split, IMAGES], places[split, LABELS])
        for split in _ORDER
        if (split, IMAGES) in places
    ]


def _file(raw: Storage, path: str, match: re.Match[str]) -> IdxFile:
    entry = raw.stat(path, follow="all")
    if entry is None or entry.kind != "file":
        raise RawDataError(
            f"`{safe(path)}` is not a regular file but {_KINDS[entry.kind if entry else 'link']}",
            hint="put the file itself there; `dvc checkout` or `dvc pull` brings what a link into "
            "DVC's cache lacks",
        )
    role = LABELS if match["role"] == IMAGES else IMAGES
    return IdxFile(
        path=path,
        identity=(path, entry.size, entry.mtime_ns, entry.inode),
        prefix=match["prefix"],
        split=_SPLITS[match["word"]],
        role=match["role"],
        partner=f"{match['prefix']}{match['word']}{match['dash']}{role}{match['dot']}"
        f"idx{_DIMENSIONS[role]}-ubyte{match['gz'] or ''}",
    )


def _refuse_twins(role: str, split: str, first: str, second: str) -> None:
    if second == first + ".gz":
        raise RawDataError(
            f"`{safe(first)}` lies in the folder twice, plain and as `{safe(second)}`",
            hint=f"remove `{safe(first)}` if both hold the same, else the one that is wrong",
        )
    raise RawDataError(
        f"two files for the {role} of `{split}`: `{safe(first)}` and `{safe(second)}`",
        hint="remove one of them",
    )


def _few(names: Sequence[str], count: int = 3) -> str:
    shown = ", ".join(f"`{safe(name, limit=60)}`" for name in names[:count])
    return shown + (f" and {len(names) - count} more" if len(names) > count else "")
