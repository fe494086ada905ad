"""The source `voc`: each image, with the objects of its XML, becomes one example.

The parent process lists the raw data (`VocDataset`) and makes the items. The splits come from the
lists of `ImageSets` or from the names of folders. A worker makes the example of an item: `notes_on`
reads the XML, the base class reads the image, and `objects` makes features.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import join
from typing import Any, ClassVar, Literal, NamedTuple
from xml.etree import ElementTree

import msgspec

from tfrecreg.api import (
    MAX_IMAGE_BYTES,
    Boxes,
    Example,
    ImageNotes,
    ImageView,
    Item,
    MissingFileError,
    ObjectLabel,
    ObjectOptions,
    ObjectSource,
    RawDataError,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    Storage,
    Symlinks,
    bytes_feature,
    choose_splits,
    class_summary,
    hidden_part,
    image_size,
    int64_feature,
    is_split_name,
    list_files,
    normal_splits,
    object_schema,
    paths_remark,
    read_text,
    safe,
    usual_split,
)

VOC_SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp"),
    # Images that no record can have: they are skipped with a reason (SRC110).
    *(".tif", ".tiff"),
)
"""Suffixes of images, the most usual first."""
VOC_CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)
"""The classes of Pascal VOC since 2007, in their order."""
MASK_FOLDERS = {"class": "SegmentationClass", "object": "SegmentationObject"}
_OF_XML = ("annotations", "annotation", "xmls", "xml", "labels")
_OF_IMAGES = ("JPEGImages", "images", "Images", "image", "imgs", "img")
_ASIDE = {*_OF_XML, *(name.lower() for name in _OF_IMAGES)}
_DEFAULT_SPLIT = "train"
_NUMBER = re.compile(r"\s+-?[0-9]+$")
_MAX_XML_BYTES = 1 << 24


@dataclass(frozen=True)
class VocOptions(ObjectOptions):
    """Options of the source `voc`."""

    coordinates: Literal["auto", "pixels", "edges"] = "auto"
    """The meaning of the numbers of a box. `pixels`: its first and last pixels, counted from 1, as
    in Pascal VOC. `edges`: its edges in pixels, counted from 0, as in many programs. `auto`:
    `pixels` if at least half of the `source` elements name VOC, or if there is no such element and
    no box begins at 0. Otherwise, `edges`."""
    classes: tuple[str, ...] = ()
    """The classes in order of their numbers. Default: if the data have exactly VOC's twenty
    classes, VOC's order. Otherwise, all names in the data, sorted by their bytes."""
    image_set: Literal["Main", "Segmentation", "Layout", "Action", "none"] = "Main"
    """The folder of `ImageSets` that lists the splits. `none` ignores `ImageSets`."""
    splits: tuple[str, ...] = ()
    """Read only these splits."""
    masks: tuple[Literal["class", "object"], ...] = ()
    """PNGs to write unchanged: `class` in `SegmentationClass`, `object` in `SegmentationObject`."""
    unlabeled: Literal["skip", "background"] = "skip"
    """Handling of images without an XML: leave them out, or write them without objects."""
    symlinks: Symlinks = "all"
    """`all`: follow all symbolic links. `inside`: follow links that stay in the raw
    folder. `none`: follow no links."""


class _NoDoctype(ElementTree.TreeBuilder):
    """Refuses document types, so that no entity expands and no other file is read."""

    def doctype(self, *_: object) -> None:
        """Refuse the document type before it declares anything."""
        raise ValueError("it declares a document type, which is not read")


class VocAnnotation:
    """The facts that an XML file states about an image."""

    def __init__(self, raw: Storage, path: str) -> None:
        try:
            with raw.open(path) as file:
                data = file.read_at(0, min(file.size, _MAX_XML_BYTES + 1))
            if len(data) > _MAX_XML_BYTES:
                raise ValueError("it is too large")
            parser = ElementTree.XMLParser(target=_NoDoctype())
            self._root = ElementTree.fromstring(data, parser)
            if self._root.tag != "annotation":
                raise ValueError(f"it is a `{self._root.tag}`, expected `annotation`")
        except (ElementTree.ParseError, LookupError, MissingFileError, ValueError) as error:
            why = safe(str(error), limit=200)
            raise SkipImage("SRC110", f"its XML cannot be read: {why}") from None
        self.size = _pixels(self._root, "size/width"), _pixels(self._root, "size/height")
        """Width and height in pixels; 0 if it does not state them."""
        self.filename = text_in(self._root, "filename").replace("\\", "/").rpartition("/")[2]
        """The file name of the image according to the XML, without folders."""
        source = self._root.find("source")
        self.origin = "" if source is None else "".join(source.itertext()).strip()
        """Its entry about the source; empty without one."""
        self.objects = self._root.findall("object")


def box_of(element: ElementTree.Element) -> tuple[float, ...]:
    """An object's xmin, ymin, xmax and ymax, unchanged; empty unless all four are numbers."""
    sides = [text_in(element, f"bndbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")]
    try:
        return tuple(map(float, sides)) if "_" not in "".join(sides) else ()
    except ValueError:
        return ()


def text_in(element: ElementTree.Element, path: str) -> str:
    """The text of the first element at a path; empty if there is none."""
    return (element.findtext(path) or "").strip()


def _pixels(element: ElementTree.Element, path: str) -> int:
    """A side of the image; 0 if the text does not state it."""
    try:
        value = float(text_in(element, path))
    except ValueError:
        return 0
    return int(value) if 0 < value < 2**31 else 0


class VocEntry(NamedTuple):
    """The paths of an image and of its XML. If a file is missing, its path is empty."""

    image: str
    xml: str
    name: str
    """Its place according to a list. Without lists, it is the path of the XML, or of the image if
    there is no XML. An entry without an image has this name as its key."""


class VocSplit(NamedTuple):
    """A split, with its entries in the order of the data."""

    name: str
    origins: list[str]
    """The lists or folders that it comes from."""
    entries: list[VocEntry]


class VocDataset:
    """The raw data, listed and read once."""

    def __init__(self, raw: Storage, options: VocOptions) -> None:
        self._raw = raw
        self._options = options
        self.files = {entry.path: entry for entry in list_files(raw, symlinks=options.symlinks)}
        self._images: dict[str, str] = {}
        """Images by path without suffix. If several share a path, the most usual suffix wins."""
        self._kinds: dict[str, list[str]] = {"image": [], "xml": [], "mask": [], "other": []}
        for path in self.files:
            self._kinds[_kind(path)].append(path)
        if not self._kinds["xml"]:
            raise RawDataError(
                f"`{safe(raw.root, limit=4096)}` holds no XML",
                hint="`--raw` takes the folder above `Annotations`, or a folder of images and XML",
            )
        for suffix in VOC_SUFFIXES:
            for path in self._kinds["image"]:
                if path.lower().endswith(suffix):
                    self._images.setdefault(path[: -len(suffix)], path)
        self.remarks: list[Remark] = []
        every_split = self._by_lists() or self._by_folders()
        self.splits = choose_splits(every_split, options.splits)
        for split in self.splits:
            if not is_split_name(split.name):
                raise RawDataError(
                    f"`{split.origins[0]}` cannot be the list of a split: expected a name of "
                    "letters, digits and `_`",
                    hint="rename the file, or read only other splits: --option splits=",
                )
        self._survey(every_split)
        self._remark_others(every_split)

    def mask_of(self, image: str, kind: str) -> str:
        """The PNG of an image's segmentation; empty without one."""
        folder, _, name = image.rpartition("/")
        base = join(folder.rpartition("/")[0], MASK_FOLDERS[kind])
        entry = self.files.get(join(base, name.rpartition(".")[0] + ".png"))
        return entry.path if entry is not None and entry.kind == "file" else ""

    def annotation(self, xml: str) -> VocAnnotation:
        if self.files[xml].kind != "file":
            raise SkipImage("SRC110", "its XML is not a file")
        return VocAnnotation(self._raw, xml)

    def _by_lists(self) -> list[VocSplit]:
        """The splits according to the lists of `ImageSets`; empty if there are no lists."""
        names: dict[str, list[str]] = {}
        place = f"/ImageSets/{self._options.image_set}"
        for path in self._kinds["other"] if self._options.image_set != "none" else ():
            folder, _, name = path.rpartition("/")
            if name.endswith(".txt") and f"/{folder}".endswith(place):
                names.setdefault(folder, []).append(name.removesuffix(".txt"))
            elif f"/{path}".endswith(("/ImageSets", place)):
                self._lines(path)  # refuses a link: otherwise all would be one split
        lists: dict[str, list[str]] = {}
        for folder, found in names.items():
            for name in _lists_of_splits(found):
                lists.setdefault(name, []).append(f"{folder}/{name}.txt")
        normal = normal_splits(lists)
        splits = []
        for name, paths in lists.items():
            found_entries = (entry for path in paths for entry in self._read_list(path))
            entries = [*map(self._with_image, found_entries)]
            if not entries:
                raise RawDataError(f"`{paths[0]}` lists no image")
            if repeats := len(entries) - len({*entries}):
                again = next(entry for entry, times in Counter(entries).items() if times > 1)
                detail = f"`{safe(again.name)}` is listed twice, and written once"
                self.remarks.append(Remark(normal[name], paths[0], "SRC119", detail, repeats))
            splits.append(VocSplit(normal[name], paths, [*dict.fromkeys(entries)]))
        return splits

    def _lines(self, path: str) -> Iterable[str]:
        entry, symlinks = self.files[path], self._options.symlinks
        text = read_text(self._raw, path, entry=entry, symlinks=symlinks)
        return filter(None, map(str.strip, text.splitlines()))

    def _read_list(self, path: str) -> Iterator[VocEntry]:
        base = f"/{path}".rpartition("/ImageSets/")[0][1:]
        images, annotations = join(base, "JPEGImages"), join(base, "Annotations")
        for text in self._lines(path):
            # `Layout` and lists of classes have a number after the name, other lists a suffix.
            names = [text, _NUMBER.sub("", text)]
            if _kind(text) == "image":
                names.append(text.rpartition(".")[0])
            entries = []
            for name in names:
                xml = f"{annotations}/{name}.xml"
                image = self._images.get(f"{images}/{name}", "")
                entries.append(
                    VocEntry(image, xml if xml in self.files else "", f"{images}/{name}")
                )
            yield next((each for each in entries if each.image or each.xml), entries[1])

    def _by_folders(self) -> list[VocSplit]:
        """The splits according to the names of folders. If no folder has the name of a split, there
        is one split. If folders have such names, files outside of these folders have no split.
        """
        entries = [VocEntry(self._image_of(xml), xml, xml) for xml in self._kinds["xml"]]
        entries = [*map(self._with_image, entries)]
        if self._options.unlabeled == "background":
            taken = {entry.image for entry in entries}
            images = [path for path in self._kinds["image"] if path not in taken]
            entries += [VocEntry(path, "", path) for path in images]
        by_folder: dict[str, list[VocEntry]] = {}
        deep = ""
        for entry in entries:
            path = entry.xml or entry.image
            folders = [part for part in path.split("/")[:-1] if part.lower() not in _ASIDE]
            name = next(iter(folders), "")
            by_folder.setdefault(name if usual_split(name) else "", []).append(entry)
            deep = deep or (path if any(map(usual_split, folders)) else "")
        names = sorted(filter(None, by_folder))
        if deep and not names:
            raise RawDataError(
                f"`{deep}` is in a split folder, but this split folder is too deep: `--raw` takes "
                "the folder that contains all split folders"
            )
        normal = normal_splits(names)
        splits = [VocSplit(normal[name], [name], by_folder[name]) for name in names]
        return splits or [VocSplit(_DEFAULT_SPLIT, ["the raw folder"], entries)]

    def _image_of(self, xml: str) -> str:
        """The image named like an XML, in the XML's folder or in an image folder. May be empty."""
        folder, _, name = xml.rpartition("/")
        stem = name[: -len(".xml")]
        paths = (self._images.get(join(each, stem), "") for each in _image_folders(folder))
        return next(filter(None, paths), "")

    def _with_image(self, entry: VocEntry) -> VocEntry:
        """If an entry has no image yet, add the image that its XML names."""
        if entry.image or not entry.xml:
            return entry
        try:
            name = self.annotation(entry.xml).filename
        except SkipImage:
            return entry
        folders = _image_folders(entry.xml.rpartition("/")[0])
        paths = (join(folder, name) for folder in folders)
        found = next((each for each in paths if each in self.files and _kind(each) == "image"), "")
        return entry._replace(image=found)

    def _survey(self, splits: Iterable[VocSplit]) -> None:
        """Set the classes and the meaning of boxes, from the XML of all splits, including splits
        that the options leave out.
        """
        options = self._options
        names: set[str] = set()
        of_voc, others, at_zero = 0, 0, ""
        every = (entry.xml for split in splits for entry in split.entries if entry.xml)
        for xml in every if not options.classes or options.coordinates == "auto" else ():
            try:
                found = self.annotation(xml)
            except SkipImage:  # the image is skipped with this reason
                continue
            names |= {text_in(each, "name") for each in found.objects}
            of_voc += "VOC" in found.origin.upper()
            others += bool(found.origin) and "VOC" not in found.origin.upper()
            if not at_zero and any(0 in box_of(each)[:2] for each in found.objects):
                at_zero = xml
        self.classes: Sequence[str] = options.classes or (
            VOC_CLASSES if names == {*VOC_CLASSES} else sorted(names - {""}, key=str.encode)
        )
        self.why = ""
        """The reason for this meaning of boxes. Empty if an option sets the meaning."""
        self.coordinates = options.coordinates
        if options.coordinates != "auto":
            return
        self.coordinates = "edges"
        if of_voc and of_voc >= others:
            self.coordinates, self.why = "pixels", f"{of_voc:,} XML files name VOC"
        elif at_zero:
            self.why = f"a box of `{safe(at_zero)}` begins at 0"
        elif others:
            self.why = f"{others:,} XML files name a source other than VOC"
        else:
            self.coordinates = "pixels"
            self.why = "no XML file names its source, and no box begins at 0"

    def _remark_others(self, splits: Iterable[VocSplit]) -> None:
        """Count the files that are in no split."""
        kinds, masks = self._kinds, self._options.masks
        used = {path for split in splits for entry in split.entries for path in entry[:2]}
        used.update(origin for split in splits for origin in split.origins)
        if masks:
            used.update(self.mask_of(image, kind) for image in kinds["image"] for kind in masks)
        for code, paths, why in (
            ("SRC117", kinds["image"], "no XML and no list names them"),
            (
                "SRC015",
                kinds["mask"],
                "segmentations, which only --option masks=class,object reads",
            ),
            ("SRC015", kinds["xml"] + kinds["other"], "neither an image nor an XML of a split"),
        ):
            if unused := [path for path in paths if path not in used]:
                self.remarks.append(paths_remark(self.splits[0].name, code, unused, why))


def _kind(path: str) -> str:
    """The kind of a file according to its name: image, xml, mask, or other."""
    *folders, name = path.split("/")
    suffix = f".{name.rpartition('.')[2].lower()}"
    if hidden_part(path):
        return "other"
    if not {*MASK_FOLDERS.values()}.isdisjoint(folders):
        return "mask"
    return "xml" if suffix == ".xml" else "image" if suffix in VOC_SUFFIXES else "other"


def _image_folders(folder: str) -> Iterator[str]:
    """The folders that may hold images for the XMLs in `folder`. The likeliest comes first."""
    parts = folder.split("/")
    for place in range(len(parts) - 1, -1, -1):
        if parts[place].lower() in _OF_XML:
            for name in _OF_IMAGES:
                yield "/".join([*parts[:place], name, *parts[place + 1 :]])
            yield "/".join(parts[:place] + parts[place + 1 :])
            break
    yield folder


def _lists_of_splits(names: Sequence[str]) -> list[str]:
    """The lists that define splits, without lists of one class, and without `trainval` if `train`
    and `val` are there as well.
    """
    kept = [name for name in names if name.rpartition("_")[2] not in names or "_" not in name]
    has_union = {"train", "val", "trainval"} <= {*kept}
    return [name for name in kept if not (has_union and name == "trainval")]


_OVERHEAD = 600
"""Bytes of an example besides the image: keys, lengths, names, the checksum."""
_SHARE = 0.2
"""Approximate bytes of an object's features per byte of its XML."""


_STATE = msgspec.msgpack.Decoder(list[str])
"""The state of an item: the path of its XML, and those of the PNGs that the option `masks` names.
The paths of missing files are empty.
"""


class VocContext(NamedTuple):
    labels: Mapping[str, ObjectLabel]
    origin: int
    """The number of the first pixel: 1 if boxes state their first and last pixels, else 0."""


class VocSource(ObjectSource[VocDataset, VocContext]):
    """Images with one XML each, and the PNGs of segmentations."""

    Options: ClassVar[type[Any]] = VocOptions

    def load(self) -> VocDataset:
        return VocDataset(self.raw, self.options)

    def context_of(self, dataset: VocDataset) -> VocContext:
        classes = enumerate(dataset.classes)
        labels = {name: ObjectLabel(number, name.encode()) for number, name in classes}
        return VocContext(labels, int(dataset.coordinates == "pixels"))

    def raw_files(self) -> Iterator[RawFile]:
        paths: dict[str, None] = {}
        for split in self.dataset.splits:
            paths.update(dict.fromkeys(split.origins))
            for entry in split.entries:
                paths.update(dict.fromkeys((entry.image, entry.xml, *self._masks(entry.image))))
        for found in map(self.dataset.files.get, paths):
            if found is not None and found.kind == "file":
                yield RawFile(found.path, found.size, found.size)

    def labels(self) -> Mapping[str, Sequence[str]]:
        return {"image/object/class/label": self.dataset.classes}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self.dataset.remarks
        for split in self.dataset.splits:
            unlabeled: list[str] = []
            owners: dict[str, str] = {}
            for entry in split.entries:
                key = entry.image or entry.name
                owner = owners.setdefault(key, entry.name)
                if owner != entry.name:
                    detail = f"`{safe(entry.name)}` has the same image as `{safe(owner)}`"
                    yield Skipped(split.name, f"{key}#{entry.name}", "SRC114", detail)
                    continue
                try:
                    yield self._item(split.name, entry)
                except SkipImage as error:
                    yield Skipped(split.name, key, error.code, error.detail)
                    continue
                if not entry.xml:
                    unlabeled.append(entry.image)
            if unlabeled:
                yield paths_remark(split.name, "SRC116", unlabeled, "no XML, so no objects")

    def _item(self, split: str, entry: VocEntry) -> Item:
        files, symlinks = self.dataset.files, self.options.symlinks
        if not entry.image:
            raise SkipImage("SRC112", f"there is no image of `{safe(entry.xml or entry.name)}`")
        if not entry.xml and self.options.unlabeled == "skip":
            raise SkipImage("SRC112", "a list names it, but it has no XML")
        size = _OVERHEAD + image_size(entry.image, files[entry.image], symlinks=symlinks)
        if entry.xml:
            try:
                size += int(image_size(entry.xml, files[entry.xml], symlinks=symlinks) * _SHARE)
            except SkipImage as error:
                detail = f"its XML `{safe(entry.xml)}`: {error.detail}"
                raise SkipImage("SRC110", detail) from None
        masks = self._masks(entry.image)
        size += sum(files[path].size for path in masks if path)
        return Item(split, entry.image, size, msgspec.msgpack.encode([entry.xml, *masks]))

    def _masks(self, image: str) -> list[str]:
        return [self.dataset.mask_of(image, kind) for kind in self.options.masks]

    def notes_on(self, item: Item) -> ImageNotes:
        xml, *_ = _STATE.decode(item.state)
        found = VocAnnotation(self.raw, xml) if xml else None
        sides = (0, 0) if found is None else found.size
        return ImageNotes(item.key.rpartition("/")[2], item.key, *sides, annotations=found)

    def describe(self) -> Mapping[str, str]:
        dataset = self.dataset
        found = {"classes": class_summary(dataset.classes), "coordinates": self._coordinates()}
        for split in dataset.splits:
            origins = safe(", ".join(split.origins))
            found[f"split {safe(split.name)}"] = f"{len(split.entries):,} of {origins}"
        return found

    def notes(self) -> list[str]:
        """Lines that the build prints first."""
        return [f"coordinates of boxes: {self._coordinates()}"] if self.dataset.why else []

    def _coordinates(self) -> str:
        found = self.dataset
        other, first = ("edges", 1) if found.coordinates == "pixels" else ("pixels", 0)
        why = f" ({found.why}; if wrong: --option coordinates={other})" if found.why else ""
        return f"{found.coordinates}, counted from {first}{why}"

    def schema(self) -> str:
        parts = ["voc", "objects", "voc_objects", *(f"voc_{kind}" for kind in self.options.masks)]
        return object_schema("tfrecreg_voc", parts, self.options)

    def objects(self, item: Item, notes: ImageNotes, view: ImageView) -> Example:
        xml, *masks = _STATE.decode(item.state)
        features = _objects(notes.annotations, xml, self.context, view)
        for kind, path in zip(self.options.masks, masks, strict=True):
            data: list[bytes] = []
            if path:
                png = self.raw.read(path, limit=MAX_IMAGE_BYTES)
                if problem := view.png_problem(png):
                    view.remarks.add("SRC115", f"`{safe(path)}` was left out: {problem}", "mask")
                else:
                    data.append(png)
            prefix = f"image/segmentation/{kind}"
            features[f"{prefix}/encoded"] = bytes_feature(data)
            features[f"{prefix}/format"] = bytes_feature(["png"] * len(data))
        return features


def _objects(
    annotation: VocAnnotation | None, xml: str, context: VocContext, view: ImageView
) -> dict[str, Any]:
    boxes = Boxes(context.labels, view)
    kept: list[ElementTree.Element] = []
    for number, each in enumerate(annotation.objects if annotation else (), start=1):
        described = f"the object {number} of `{safe(xml)}`"
        bbox = None
        if box := box_of(each):
            left, top, right, bottom = box
            left, top = left - context.origin, top - context.origin
            bbox = left, top, right - left, bottom - top
        if not boxes.add(described, text_in(each, "name"), bbox):
            continue
        kept.append(each)
        for _ in each.iterfind("part"):
            view.remarks.add("SRC117", f"a part of {described} was left out")
    features = {**boxes.features()}
    for flag in ("difficult", "truncated", "occluded"):
        # LabelImg writes numbers, and other programs write words.
        values = [text_in(each, flag).lower() in ("1", "true", "yes") for each in kept]
        features[f"image/object/{flag}"] = int64_feature(values)
    poses = [text_in(each, "pose") or "Unspecified" for each in kept]
    features["image/object/view"] = bytes_feature(poses)
    return features
