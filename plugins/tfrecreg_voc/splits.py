"""The entries of each split: by the lists of `ImageSets`, or by the names of folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tfrecreg.api import RawDataError, Remark, normal_splits, safe
from tfrecreg_voc.raw_listing import VOC_SUFFIXES, VocListing, folder_parts, joined_path
from tfrecreg_voc.voc_options import VocOptions

_DEFAULT_SPLIT = "train"
_ROOT = "the raw folder"
_USUAL = ("train", "validation", "test")
_NUMBER = re.compile(r"\s+-?[0-9]+$")


class VocEntry(NamedTuple):
    """An image, its XML, or both."""

    image: str
    """Its path; empty where it is not found by the name of the XML."""
    xml: str
    """Its path; empty without one."""
    name: str
    """What a list calls it, or the path of the XML: its key where there is no image."""


class VocSplit(NamedTuple):
    """A split, with its entries in the order of the data."""

    name: str
    origins: list[str]
    """The lists or folders that it comes from, or `_ROOT`."""
    entries: list[VocEntry]


def find_voc_splits(
    listing: VocListing, options: VocOptions
) -> tuple[list[VocSplit], list[Remark]]:
    """All splits, and remarks on lists that are not read."""
    lists = _find_lists(listing, options.image_set)
    if not lists:
        return _by_folders(listing, with_images=options.unlabeled == "background"), []
    remarks: list[Remark] = []
    written: dict[str, list[str]] = {}
    for base, names in lists.items():
        for name in _lists_of_splits(base, names, remarks):
            written.setdefault(name, []).append(f"{base}/{name}.txt")
    normal = normal_splits(written)
    splits = []
    for name, paths in written.items():
        entries: dict[VocEntry, None] = {}
        for path in paths:
            for entry in _read_list(listing, path):
                if entry in entries:
                    detail = f"`{safe(entry.name)}` is listed twice, and written once"
                    remarks.append(Remark(normal[name], path, "SRC022", detail))
                entries[entry] = None
        if not entries:
            raise RawDataError(
                f"`{safe(paths[0])}` lists no image",
                hint="remove the list, or ignore all of them: --option image_set=none",
            )
        splits.append(VocSplit(normal[name], paths, list(entries)))
    return splits, remarks


def _find_lists(listing: VocListing, image_set: str) -> dict[str, list[str]]:
    """The names of the lists by their folder."""
    found: dict[str, list[str]] = {}
    ends = ("/ImageSets", f"/ImageSets/{image_set}")
    for path in (*listing.others, *listing.links):
        folder, _, name = path.rpartition("/")
        if name.endswith(".txt") and f"/{folder}".endswith(f"/ImageSets/{image_set}"):
            found.setdefault(folder, []).append(name.removesuffix(".txt"))
        elif image_set != "none" and f"/{path}".endswith(ends) and path in listing.links:
            listing.text(path)  # which refuses it: without the lists all would be one split
    return found


def _lists_of_splits(folder: str, names: Sequence[str], remarks: list[Remark]) -> list[str]:
    """Those that list splits: not those of one class, nor the union of two others."""
    by_class = [name for name in names if "_" in name and name.rpartition("_")[2] in names]
    kept = [name for name in names if name not in by_class]
    if by_class:
        detail = "lists of the images of one class, which repeat the XML"
        path = f"{folder}/{by_class[0]}.txt"
        remarks.append(Remark(_DEFAULT_SPLIT, path, "SRC015", detail, len(by_class)))
    if {"train", "val", "trainval"} <= {*kept}:
        kept.remove("trainval")
        detail = "the union of `train` and `val`, which are read"
        remarks.append(Remark(_DEFAULT_SPLIT, f"{folder}/trainval.txt", "SRC015", detail))
    return kept


def _read_list(listing: VocListing, path: str) -> Iterable[VocEntry]:
    base = path.rpartition("/ImageSets/")[0] if "/ImageSets/" in path else ""
    for line in listing.text(path).splitlines():
        text = line.strip()
        if not text:
            continue
        # `Layout` and lists of classes have a number behind the name.
        for name in dict.fromkeys((text, _NUMBER.sub("", text), _without_suffix(text))):
            image = listing.image_at(joined_path(base, f"JPEGImages/{name}"))
            xml = joined_path(base, f"Annotations/{name}.xml")
            if image or xml in listing.xmls:
                yield VocEntry(image, xml if xml in listing.xmls else "", name)
                break
        else:
            yield VocEntry("", "", joined_path(base, f"JPEGImages/{_NUMBER.sub('', text)}"))


def _without_suffix(name: str) -> str:
    stem, _, suffix = name.rpartition(".")
    return stem if f".{suffix.lower()}" in VOC_SUFFIXES else name


def _by_folders(listing: VocListing, *, with_images: bool) -> list[VocSplit]:
    """The splits by the names of folders; all is one split where no folder is called so."""
    entries = [VocEntry(listing.image_of(xml), xml, xml) for xml in listing.xmls]
    if with_images:
        taken = {entry.image for entry in entries}
        entries += [VocEntry(path, "", path) for path in listing.images if path not in taken]
    found: dict[str, list[VocEntry]] = {}
    for entry in entries:
        found.setdefault(_split_of(entry.xml or entry.image), []).append(entry)
    usual = [name for name in found if name]
    if not usual:
        for xml in listing.xmls:
            if deep := next(filter(_is_usual, folder_parts(xml)[1:]), None):
                raise RawDataError(
                    f"`{safe(xml)}` is in a folder `{safe(deep)}` of a split, which is too deep in "
                    "the raw folder",
                    hint="name the folder that holds the folders of splits with `--raw`",
                )
        return [VocSplit(_DEFAULT_SPLIT, [_ROOT], entries)]
    normal = normal_splits(usual)
    return [VocSplit(normal[name], [name], found[name]) for name in sorted(usual)]


def _split_of(path: str) -> str:
    """The name of the split of a file by its folders; empty without one."""
    parts = folder_parts(path)
    return parts[0] if parts and _is_usual(parts[0]) else ""


def _is_usual(name: str) -> bool:
    """Whether a name is that of a usual split, in any spelling."""
    return normal_splits([name])[name] in _USUAL
