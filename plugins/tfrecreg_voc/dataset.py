"""A whole dataset: its splits, its classes, and what is remarked on before any image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from tfrecreg.api import (
    Item,
    ObjectLabel,
    RawDataError,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    Storage,
    choose_splits,
    image_size,
    link_problem,
    paths_remark,
    safe,
)
from tfrecreg_voc.annotation import VocAnnotation
from tfrecreg_voc.raw_listing import VocListing
from tfrecreg_voc.splits import VocEntry, VocSplit, find_voc_splits
from tfrecreg_voc.voc_options import VOC_CLASSES, VocOptions
from tfrecreg_voc.xml_reader import MAX_XML_BYTES

_OVERHEAD = 600
"""Bytes of an example beside the image: keys, lengths, names, the checksum."""
_SHARE = 0.2
"""Bytes of an object's features for each byte of its XML, roughly."""
_MAX_CLASSES = 1 << 16


class VocItemState(NamedTuple):
    """The state of an item, packed as MessagePack. Paths; empty for what there is not."""

    xml: str
    masks: list[str]
    """The PNG of each kind of the option `masks`, in its order."""


class VocContext(NamedTuple):
    """What all items share. Picklable and small."""

    labels: Mapping[str, ObjectLabel]
    counted_from_1: bool
    """Whether boxes have their first and last pixel, counted from 1."""


class VocDataset:
    """The raw data, listed and read once."""

    def __init__(self, raw: Storage, options: VocOptions) -> None:
        self._raw = raw
        self._options = options
        self._listing = VocListing(raw, options)
        every, self._remarks = find_voc_splits(self._listing, options)
        every = [split._replace(entries=[*map(self._found, split.entries)]) for split in every]
        self._read_xmls = {entry.xml for split in every for entry in split.entries}
        self._read_images = {entry.image for split in every for entry in split.entries}
        self.splits = choose_splits(every, options.splits)
        self._names: set[str] = set()
        self._origins: Counter[bool] = Counter()
        self._at_zero = ""
        if not options.classes or options.coordinates == "auto":
            self._survey(every)
        self.classes = options.classes or (
            VOC_CLASSES if self._names == {*VOC_CLASSES} else sorted(self._names, key=str.encode)
        )
        self.coordinates, self.why = self._coordinates()
        labels = {
            name: ObjectLabel(number, name.encode()) for number, name in enumerate(self.classes)
        }
        self.context = VocContext(labels, self.coordinates == "pixels")

    def raw_files(self) -> Iterator[RawFile]:
        """The lists, the images, the XML and the PNGs of segmentations that are read."""
        listing = self._listing
        seen: set[str] = set()
        for split in self.splits:
            images = [entry.image for entry in split.entries]
            paths = [*split.origins, *images, *(entry.xml for entry in split.entries)]
            paths += [path for image in images if image for path in self._masks(image)]
            for path in paths:
                size = next(
                    (
                        kind[path]
                        for kind in (listing.images, listing.xmls, listing.masks, listing.others)
                        if path in kind
                    ),
                    None,
                )
                if size is not None and path not in seen and path not in listing.unusable:
                    seen.add(path)
                    yield RawFile(path, size, size)

    def items(self) -> Iterator[Item | Skipped | Remark]:
        """Every entry of every split, and the remarks on them together."""
        yield from self._remarks
        for split in self.splits:
            unlabeled: list[str] = []
            keys: dict[str, str] = {}
            for entry in split.entries:
                key = entry.image or entry.name
                try:
                    first = keys.setdefault(key, entry.name)
                    if first != entry.name:
                        key = f"{key}#{entry.name}"
                        raise SkipImage(
                            "SRC022", f"`{safe(entry.name)}` has the image of `{safe(first)}`"
                        )
                    yield self._item(split.name, entry, unlabeled)
                except SkipImage as error:
                    yield Skipped(split.name, key, error.code, error.detail)
            if unlabeled:
                yield paths_remark(split.name, "SRC043", unlabeled, "no XML; no objects")
        yield from self._left_aside()

    def _found(self, entry: VocEntry) -> VocEntry:
        """An entry with the image that its XML names, where there is none of its own name."""
        if entry.image or not entry.xml:
            return entry
        try:
            name = self._annotation(entry.xml).filename
        except SkipImage:
            return entry
        return entry._replace(image=self._listing.named_image(entry.xml, name))

    def _item(self, split: str, entry: VocEntry, unlabeled: list[str]) -> Item:
        listing = self._listing
        if not entry.image:
            raise SkipImage("SRC020", f"there is no image of `{safe(entry.xml or entry.name)}`")
        size = image_size(entry.image, listing.entry(entry.image), symlinks=listing.symlinks)
        try:
            entry.image.encode()
            entry.xml.encode()
        except UnicodeEncodeError:
            raise SkipImage("SRC012", "the name is not UTF-8") from None
        if entry.xml in listing.unusable:
            try:
                image_size(entry.xml, listing.unusable[entry.xml], symlinks=listing.symlinks)
            except SkipImage as error:
                detail = f"its XML `{safe(entry.xml)}`: {error.detail}"
                raise SkipImage("SRC041", detail) from None
        if not entry.xml:
            if self._options.unlabeled == "skip":
                raise SkipImage("SRC043", "a list names it, and it has no XML")
            unlabeled.append(entry.image)
        masks = self._masks(entry.image)
        size += _OVERHEAD + int(listing.xmls.get(entry.xml, 0) * _SHARE)
        size += sum(listing.masks.get(path, 0) for path in masks)
        state = msgspec.msgpack.encode(VocItemState(entry.xml, masks))
        return Item(split, entry.image, size, state)

    def _masks(self, image: str) -> list[str]:
        return [self._listing.mask_of(image, kind) for kind in self._options.masks]

    def _annotation(self, xml: str) -> VocAnnotation:
        if self._listing.xmls[xml] > MAX_XML_BYTES or xml in self._listing.unusable:
            raise SkipImage("SRC041", "its XML is too large, or cannot be opened")
        return read_annotation(self._raw, xml)

    def _survey(self, splits: Iterable[VocSplit]) -> None:
        """Read the XML of all splits, also of those that are not read."""
        for xml in (entry.xml for split in splits for entry in split.entries if entry.xml):
            try:
                found = self._annotation(xml)
            except SkipImage:  # the image is skipped with this reason
                continue
            self._names |= found.class_names
            if origin := found.origin:
                self._origins["VOC" in origin.upper()] += 1
            if not self._at_zero and found.begins_at_zero:
                self._at_zero = xml
            if len(self._names) > _MAX_CLASSES and not self._options.classes:
                raise RawDataError(
                    f"there are more than {_MAX_CLASSES} names of classes",
                    hint="--option classes= names those to read, --option dangling=drop leaves out "
                    "the others",
                )

    def _coordinates(self) -> tuple[Literal["pixels", "edges"], str]:
        """What the numbers of boxes mean, and why where no option says it."""
        if self._options.coordinates != "auto":
            return self._options.coordinates, ""
        of_voc, others = self._origins[True], self._origins[False]
        if of_voc and of_voc >= others:
            return "pixels", f"{of_voc:,} XML name VOC as their source"
        if self._at_zero:
            return "edges", f"a box of `{safe(self._at_zero)}` begins at 0"
        if others:
            return "edges", f"{others:,} XML name another source than VOC"
        return "pixels", "no XML names its source, and no box begins at 0"

    def _left_aside(self) -> Iterator[Remark]:
        """XML and images in no split, PNGs that are not asked for, and all other files."""
        first = self.splits[0].name
        listing = self._listing
        if unused := [path for path in listing.xmls if path not in self._read_xmls]:
            yield paths_remark(first, "SRC042", unused, "in no split")
        if orphans := [path for path in listing.images if path not in self._read_images]:
            yield paths_remark(first, "SRC030", orphans, "neither an XML nor a list names it")
        if listing.masks and not self._options.masks:
            why = "segmentations, which --option masks=class,object reads"
            yield paths_remark(first, "SRC015", [*listing.masks], why)
        lists = {origin for split in self.splits for origin in split.origins}
        strays = [
            path
            for path in listing.others
            if path not in lists and not (path.endswith(".txt") and "ImageSets/" in path)
        ]
        if strays:
            yield paths_remark(first, "SRC015", strays, "neither an image nor an XML")
        links = [*listing.links]
        if self._options.masks:  # else all PNGs are remarked on above
            links += [path for path in listing.masks if path in listing.unusable]
        if links := [path for path in links if listing.unusable[path].kind == "link"]:
            yield paths_remark(first, "SRC011", links, link_problem(listing.symlinks))


def read_annotation(raw: Storage, path: str) -> VocAnnotation:
    """The annotation in a file."""
    with raw.open(path) as file:
        if file.size > MAX_XML_BYTES:
            raise SkipImage("SRC041", f"its XML has {file.size:,} bytes, more than an XML has")
        data = file.read_at(0, file.size)
    return VocAnnotation(data)
