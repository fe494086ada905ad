"""The options; the files of the raw data, and the entries of each split: by the lists of
`ImageSets`, or by the names of folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tfrecreg.api import (
    Entry,
    ObjectOptions,
    RawDataError,
    Remark,
    Storage,
    Symlinks,
    list_files,
    normal_splits,
    read_text,
    safe,
)

VOC_SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp"),
    # Images that no record can have: they are skipped with a reason (SRC003).
    *(".tif", ".tiff"),
)
"""Suffixes of images, the most usual first."""
MASK_FOLDERS = {"class": "SegmentationClass", "object": "SegmentationObject"}
_OF_XML = ("annotations", "annotation", "xmls", "xml", "labels")
_OF_IMAGES = ("JPEGImages", "images", "Images", "image", "imgs", "img")
_ASIDE = {*_OF_XML, *(name.lower() for name in _OF_IMAGES)}
_SYSTEM_FOLDER = "__MACOSX"
_DEFAULT_SPLIT = "train"
_NUMBER = re.compile(r"\s+-?[0-9]+$")


@dataclass(frozen=True)
class VocOptions(ObjectOptions):
    """Options of the source `voc`."""

    coordinates: Literal["auto", "pixels", "edges"] = "auto"
    """What the numbers of a box mean: its first and last pixel, counted from 1, as in Pascal VOC;
    or its edges in pixels, counted from 0, as many programs write them. `auto`: edges if a number
    is 0, or if most `source` elements name something other than VOC."""
    classes: tuple[str, ...] = ()
    """The classes in order of their numbers. Default: VOC's own if all twenty occur and no other,
    else all names in the data, sorted by their bytes."""
    image_set: Literal["Main", "Segmentation", "Layout", "Action", "none"] = "Main"
    """The folder of `ImageSets` that lists the splits; `none` to ignore `ImageSets`."""
    splits: tuple[str, ...] = ()
    """Read only these splits."""
    masks: tuple[Literal["class", "object"], ...] = ()
    """The PNGs to write, byte for byte: those of `SegmentationClass`, of `SegmentationObject`."""
    unlabeled: Literal["skip", "background"] = "skip"
    """Handling of images without an XML: leave them out, or write them without objects."""
    symlinks: Symlinks = "all"
    """`all`: follow symbolic links wherever they lead. `inside`: follow those that stay in the raw
    folder. `none`: follow none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_repeated("splits", "classes", "masks")


class VocEntry(NamedTuple):
    """An image, its XML, or both, by their paths; an empty path for what there is not."""

    image: str
    xml: str
    name: str
    """What a list calls it, or the path of the XML: its key where there is no image."""


class VocSplit(NamedTuple):
    """A split, with its entries in the order of the data."""

    name: str
    origins: list[str]
    """The lists or folders that it comes from."""
    entries: list[VocEntry]


class VocFiles:
    """All files of the raw data, links followed as far as the options allow."""

    def __init__(self, raw: Storage, options: VocOptions) -> None:
        self._raw = raw
        self._options = options
        self.entries: dict[str, Entry] = {}
        """All of them by path; also links that are not followed, FIFOs and devices."""
        self.images: dict[str, Entry] = {}
        self.xmls: list[str] = []
        self.masks: list[str] = []
        """The PNGs of segmentations."""
        self.others: list[str] = []
        """All other files. Hidden ones are among them."""
        self._by_stem: dict[str, str] = {}
        for entry in list_files(raw, symlinks=options.symlinks):
            path, parts = entry.path, entry.path.split("/")
            stem, _, suffix = path.rpartition(".")
            suffix = f".{suffix.lower()}"
            self.entries[path] = entry
            if any(part.startswith(".") or part == _SYSTEM_FOLDER for part in parts):
                self.others.append(path)
            elif {*parts[:-1]} & {*MASK_FOLDERS.values()}:
                self.masks.append(path)
            elif suffix == ".xml":
                self.xmls.append(path)
            elif suffix in VOC_SUFFIXES:
                self.images[path] = entry
                # Of several images, that with the most usual suffix.
                other = self._by_stem.setdefault(stem, path)
                if VOC_SUFFIXES.index(suffix) < VOC_SUFFIXES.index(other[len(stem) :].lower()):
                    self._by_stem[stem] = path
            else:
                self.others.append(path)
        if not self.xmls:
            raise RawDataError(
                f"`{safe(raw.root, limit=4096)}` holds no XML",
                hint="name the folder with `Annotations` and `JPEGImages`, or the one with the "
                "images and their XML",
            )

    def image_of(self, xml: str) -> str:
        """The image with the name of an XML, beside it or in a folder of images; else empty."""
        folder, _, name = xml.rpartition("/")
        stem = name[: -len(".xml")]
        paths = (self._by_stem.get(joined(place, stem), "") for place in _image_folders(folder))
        return next(filter(None, paths), "")

    def named_image(self, xml: str, filename: str) -> str:
        """The image that an XML names, without its folder, in the same places; else empty."""
        folders = _image_folders(xml.rpartition("/")[0])
        paths = (joined(folder, filename) for folder in folders)
        return next((path for path in paths if path in self.images), "")

    def mask_of(self, image: str, kind: str) -> str:
        """The PNG of an image's segmentation; empty without one."""
        folder, _, name = image.rpartition("/")
        base = joined(folder.rpartition("/")[0], MASK_FOLDERS[kind])
        path = joined(base, name.rpartition(".")[0] + ".png")
        return path if path in self.entries and self.entries[path].kind == "file" else ""

    def splits(self) -> tuple[list[VocSplit], list[Remark]]:
        """All splits, and remarks on lists that are not read."""
        remarks: list[Remark] = []
        lists: dict[str, list[str]] = {}
        for base, names in self._lists().items():
            for name in _lists_of_splits(base, names, remarks):
                lists.setdefault(name, []).append(f"{base}/{name}.txt")
        if not lists:
            return self._by_folders(), remarks
        normal = normal_splits(lists)
        splits = []
        for name, paths in lists.items():
            entries: dict[VocEntry, None] = {}
            for path in paths:
                for entry in self._read_list(path):
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

    def _lists(self) -> dict[str, list[str]]:
        """The names of the lists by their folder."""
        found: dict[str, list[str]] = {}
        image_set = self._options.image_set
        for path in self.others if image_set != "none" else ():
            folder, _, name = path.rpartition("/")
            if name.endswith(".txt") and f"/{folder}".endswith(f"/ImageSets/{image_set}"):
                found.setdefault(folder, []).append(name.removesuffix(".txt"))
            elif f"/{path}".endswith(("/ImageSets", f"/ImageSets/{image_set}")):
                self._text(path)  # a link, which it refuses: else all would be one split
        return found

    def _text(self, path: str) -> str:
        entry = self.entries[path]
        return read_text(self._raw, path, entry=entry, symlinks=self._options.symlinks)

    def _read_list(self, path: str) -> Iterator[VocEntry]:
        base = f"/{path}".rpartition("/ImageSets/")[0][1:]
        for text in filter(None, map(str.strip, self._text(path).splitlines())):
            # `Layout` and lists of classes have a number behind the name.
            for name in dict.fromkeys((text, _NUMBER.sub("", text), _without_suffix(text))):
                image = self._by_stem.get(joined(base, f"JPEGImages/{name}"), "")
                xml = joined(base, f"Annotations/{name}.xml")
                if image or xml in self.entries:
                    yield VocEntry(image, xml if xml in self.entries else "", name)
                    break
            else:
                name = _NUMBER.sub("", text)
                yield VocEntry("", "", joined(base, f"JPEGImages/{name}"))

    def _by_folders(self) -> list[VocSplit]:
        """The splits by the names of folders; all is one split where no folder is called so."""
        entries = [VocEntry(self.image_of(xml), xml, xml) for xml in self.xmls]
        if self._options.unlabeled == "background":
            taken = {entry.image for entry in entries}
            entries += [VocEntry(path, "", path) for path in self.images if path not in taken]
        found: dict[str, list[VocEntry]] = {}
        for entry in entries:
            words = _words(entry.xml or entry.image)
            name = words[0] if words and _is_split(words[0]) else ""
            found.setdefault(name, []).append(entry)
        names = sorted(filter(None, found))
        for xml in self.xmls if not names else ():
            if any(map(_is_split, _words(xml))):
                raise RawDataError(
                    f"`{safe(xml)}` is in a folder of a split, which is too deep in the raw folder",
                    hint="name the folder that holds the folders of splits with `--raw`",
                )
        normal = normal_splits(names)
        splits = [VocSplit(normal[name], [name], found[name]) for name in names]
        return splits or [VocSplit(_DEFAULT_SPLIT, ["the raw folder"], entries)]


def joined(folder: str, path: str) -> str:
    """A path below a folder, which may be the raw folder."""
    return f"{folder}/{path}" if folder else path


def _image_folders(folder: str) -> Iterator[str]:
    """Where the image of an XML in a folder may be, the most likely first."""
    parts = folder.split("/")
    for place in range(len(parts) - 1, -1, -1):
        if parts[place].lower() in _OF_XML:
            for name in _OF_IMAGES:
                yield "/".join([*parts[:place], name, *parts[place + 1 :]])
            yield "/".join(parts[:place] + parts[place + 1 :])
            break
    yield folder


def _words(path: str) -> list[str]:
    """The folders of an XML or an image, but for those that hold all XML or all images."""
    return [part for part in path.split("/")[:-1] if part.lower() not in _ASIDE]


def _lists_of_splits(folder: str, names: list[str], remarks: list[Remark]) -> list[str]:
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


def _without_suffix(name: str) -> str:
    stem, _, suffix = name.rpartition(".")
    return stem if f".{suffix.lower()}" in VOC_SUFFIXES else name


def _is_split(name: str) -> bool:
    """Whether a name is that of a usual split, in any spelling."""
    return normal_splits([name])[name] in ("train", "validation", "test")
