"""The images of each split: by what the description says, by lists, or by folders."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from tfrecreg.api import RawDataError, Remark, normal_splits, path_ends, safe
from tfrecreg_yolo.description import YoloDescription
from tfrecreg_yolo.raw_listing import YoloListing, parents

_DEFAULT_SPLIT = "train"
_ROOT = "the raw folder"
_USUAL = ("train", "validation", "test")


class YoloSplit(NamedTuple):
    """A split, with its images in the order of the data."""

    name: str
    origins: list[str]
    """The folders and lists that it comes from, or `_ROOT`."""
    images: list[str]
    """Paths. One that a list names and that does not exist is among them."""
    remarks: list[Remark]


def find_yolo_splits(
    listing: YoloListing, description: YoloDescription, wanted: Sequence[str]
) -> list[YoloSplit]:
    """All splits."""
    written = description.splits or _usual_lists(listing)
    if not written:
        return _by_folders(listing)
    names = normal_splits(written)
    finder = _Finder(_bases(listing, description))
    found = []
    for key, paths in written.items():
        try:
            split = _described(listing, finder, names, key, paths, description.file)
        except RawDataError:
            if not wanted or names[key] in wanted:
                raise
            split = YoloSplit(names[key], [], [], [])
        found.append(split)
    return found


def _described(
    listing: YoloListing,
    finder: _Finder,
    names: Mapping[str, str],
    key: str,
    paths: Sequence[str],
    file: str,
) -> YoloSplit:
    """The split that the description calls `key`, and `names` by its usual name."""
    name = names[key]
    others = ",".join(other for other in names.values() if other != name)
    hint = f"leave the split out: --option splits={others}" if others else "name another folder"
    images: dict[str, None] = {}
    remarks = []
    origins = []
    for text in paths:
        place, moved = finder.find(text, {*listing.folders, *listing.texts, *listing.links})
        if place is None:
            raise RawDataError(
                f"`{safe(file)}`: `{key}` is `{safe(text)}`, which is neither a folder with images "
                "nor a list of images in the raw folder",
                hint=f"correct the path in `{safe(file)}`, or {hint}",
            )
        if moved:
            detail = f"`{safe(text)}` is outside the raw folder; `{safe(place or '.')}` was read"
            remarks.append(Remark(name, place or ".", "SRC045", detail))
        origins.append(place or _ROOT)
        if place in listing.folders:
            images.update(dict.fromkeys(listing.below(place)))
        else:
            remarks += _read_list(listing, finder, name, place, images)
    if not images:
        raise RawDataError(
            f"the split `{safe(key)}` of `{safe(file)}` has no image",
            hint=hint,
        )
    return YoloSplit(name, origins, list(images), remarks)


def _read_list(
    listing: YoloListing,
    finder: _Finder,
    split: str,
    path: str,
    images: dict[str, None],
) -> Iterator[Remark]:
    """Add the images of a list to `images`."""
    beside = _Finder((path.rpartition("/")[0], *finder.bases))
    moved: list[str] = []
    repeated: list[str] = []
    for line in listing.text(path).splitlines():
        text = line.strip()
        if not text:
            continue
        place, was_moved = beside.find(text, listing.images)
        if was_moved:
            moved.append(text)
        # What is not there is an item that is skipped, under the name in the list.
        image = text if place is None else place
        if image in images:
            repeated.append(image)
        images[image] = None
    if moved:
        detail = (
            f"`{safe(moved[0])}` is outside the raw folder; the file with the same end was read"
        )
        yield Remark(split, path, "SRC045", detail, len(moved))
    if repeated:
        detail = f"`{safe(repeated[0])}` is listed twice, and written once"
        yield Remark(split, path, "SRC022", detail, len(repeated))


class _Finder:
    """Finds the files and folders that are meant, also by paths of another machine."""

    def __init__(self, bases: Sequence[str]) -> None:
        self.bases = tuple(dict.fromkeys(bases))

    def find(self, text: str, known: Collection[str]) -> tuple[str | None, bool]:
        """The path that is meant, or None; and whether only the end of `text` is one.

        Nothing outside of the raw folder is looked at: what is found is one of `known`.
        """
        parts = text.replace("\\", "/").split("/")
        if not (parts[0] == "" or parts[0].endswith(":")):
            for base in self.bases:
                joined = _joined(base, parts)
                if joined is not None and joined in known:
                    return joined, False
        for end in path_ends(text):
            for base in self.bases:
                joined = _joined(base, end.split("/"))
                if joined in known:
                    return joined, True
        return None, False


def _joined(base: str, parts: Sequence[str]) -> str | None:
    """A path below a folder, `..` resolved; None if it leaves the raw folder."""
    found = base.split("/") if base else []
    for part in parts:
        if part == "..":
            if not found:
                return None
            found.pop()
        elif part not in ("", "."):
            found.append(part)
    return "/".join(found)


def _bases(listing: YoloListing, description: YoloDescription) -> tuple[str, ...]:
    """The folders that paths of the description may be relative to, the most likely first."""
    beside = description.file.rpartition("/")[0]
    found = [beside, ""]
    if description.root:
        place, _ = _Finder(found).find(description.root, listing.folders)
        if place is not None:
            found.insert(0, place)
    return tuple(found)


def _usual_lists(listing: YoloListing) -> Mapping[str, Sequence[str]]:
    """The lists of images in the raw folder that are called like splits."""
    stems = {path.rpartition(".")[0] for path in listing.images}
    names = [path.removesuffix(".txt") for path in listing.texts if "/" not in path]
    return {name: [f"{name}.txt"] for name in names if _is_usual(name) and name not in stems}


def _by_folders(listing: YoloListing) -> list[YoloSplit]:
    """The splits by the names of folders, without any file that describes them."""
    folders = {parent for path in listing.images for parent in parents(path)}
    usual = {folder: name for folder in folders if (name := _split_of_folder(folder))}
    if not usual:
        for folder in sorted(folders):
            if _is_usual(folder.rpartition("/")[2]):
                raise RawDataError(
                    f"`{safe(folder)}` is a folder of a split, and too deep in the raw folder",
                    hint="name the folder that holds `images` or the folders of splits with "
                    "`--raw`, or describe the splits in `data.yaml`",
                )
        return [YoloSplit(_DEFAULT_SPLIT, [_ROOT], list(listing.images), [])]
    names = normal_splits(set(usual.values()))
    found: dict[str, YoloSplit] = {}
    for folder, name in sorted(usual.items()):
        split = found.setdefault(names[name], YoloSplit(names[name], [], [], []))
        split.images.extend(listing.below(folder))
        split.origins.append(folder)
    return list(found.values())


def _split_of_folder(folder: str) -> str:
    """The name of the split of `train`, `train/images` or `images/train`; empty for others."""
    parts = [part for part in folder.split("/") if part != "images"]
    name = parts[0] if len(parts) == 1 else ""
    is_last = folder.rpartition("/")[2] == name
    return name if is_last and _is_usual(name) else ""


def _is_usual(name: str) -> bool:
    """Whether a name is that of a usual split, in any spelling."""
    return normal_splits([name])[name] in _USUAL
