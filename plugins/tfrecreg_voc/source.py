"""The source `voc`: each image, with the objects of its XML, becomes one example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple
from xml.etree import ElementTree

import msgspec

from tfrecreg.api import (
    MAX_IMAGE_BYTES,
    BadAnnotation,
    Boxes,
    Example,
    ImageError,
    ImageView,
    Item,
    ObjectLabel,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    Source,
    Storage,
    Written,
    bytes_feature,
    choose_splits,
    class_summary,
    image_features,
    image_size,
    int64_feature,
    link_problem,
    object_schema,
    paths_remark,
    read_header,
    safe,
    truncation_text,
)
from tfrecreg_voc.files import VocEntry, VocFiles, VocOptions, VocSplit

VOC_CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)
"""The classes of Pascal VOC since 2007, in their order."""
_MAX_XML_BYTES = 1 << 24
_MAX_TAGS = 400_000
_OVERHEAD = 600
"""Bytes of an example beside the image: keys, lengths, names, the checksum."""
_SHARE = 0.2
"""Bytes of an object's features for each byte of its XML, roughly."""


class VocObject(NamedTuple):
    """One object."""

    name: str
    """Its class."""
    box: tuple[float, ...]
    """xmin, ymin, xmax and ymax as they are written."""
    difficult: int
    truncated: int
    occluded: int
    pose: str
    parts: int
    """Number of its parts, which are not read."""


class _NoDoctype(ElementTree.TreeBuilder):
    """Without a document type no entity expands, and no other file is read."""

    def doctype(self, *_: object) -> None:
        """Refuse it before it declares anything."""
        raise ValueError("it declares a document type, which is not read")


class VocAnnotation:
    """What an XML says of its image."""

    def __init__(self, raw: Storage, path: str) -> None:
        with raw.open(path) as file:
            data = file.read_at(0, min(file.size, _MAX_XML_BYTES + 1))
        try:
            if len(data) > _MAX_XML_BYTES or data.count(b"<") > _MAX_TAGS:
                raise ValueError("it is too large")
            parser = ElementTree.XMLParser(target=_NoDoctype())
            self._root = ElementTree.fromstring(data, parser)
            if self._root.tag != "annotation":
                raise ValueError(f"it is a `{self._root.tag}`, expected `annotation`")
        except (ElementTree.ParseError, LookupError, ValueError) as error:
            why = safe(str(error), limit=200)
            raise SkipImage("SRC041", f"its XML cannot be read: {why}") from None
        self.size = _pixels(self._text("size/width")), _pixels(self._text("size/height"))
        """Width and height in pixels; 0 where it does not say them."""
        self.filename = self._text("filename").replace("\\", "/").rpartition("/")[2]
        """The name that it has for its image, without folders."""
        self.segmented = _flag(self._text("segmented")) == 1
        source = self._root.find("source")
        self.origin = "" if source is None else "".join(source.itertext()).strip()
        """What it says of its source; empty without."""

    @property
    def class_names(self) -> set[str]:
        """The classes of its objects."""
        return {_text(each, "name") for each in self._root.iterfind("object")} - {""}

    def objects(self) -> Iterator[VocObject | BadAnnotation]:
        """Its objects, and why others cannot be read."""
        for each in self._root.iterfind("object"):
            try:
                yield _object(each)
            except BadAnnotation as error:
                yield error

    def _text(self, path: str) -> str:
        return _text(self._root, path)


def _text(element: ElementTree.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _object(element: ElementTree.Element) -> VocObject:
    name = _text(element, "name")
    if not name:
        raise BadAnnotation("has no name")
    sides = [_text(element, f"bndbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")]
    try:
        if any("_" in side for side in sides):  # Python takes `1_0` for ten
            raise ValueError
        box = tuple(map(float, sides))
    except ValueError:
        shown = safe(" ".join(sides), limit=60)
        raise BadAnnotation(f"has the box `{shown}`, expected four numbers") from None
    difficult, truncated, occluded = (
        _flag(_text(element, flag)) for flag in ("difficult", "truncated", "occluded")
    )
    pose = _text(element, "pose") or "Unspecified"
    parts = len(element.findall("part"))
    return VocObject(name, box, difficult, truncated, occluded, pose, parts)


def _flag(text: str) -> int:
    """1 if a flag is set. LabelImg writes numbers, other programs words."""
    return int(text.lower() in ("1", "true", "yes"))


def _pixels(text: str) -> int:
    """A side of the image; 0 if the text is not one."""
    try:
        value = float(text)
    except ValueError:
        return 0
    return int(value) if 0 < value < 2**31 else 0


class VocItemState(NamedTuple):
    """The state of an item, packed as MessagePack. Paths; empty for what there is not."""

    xml: str
    masks: list[str]
    """The PNG of each kind of the option `masks`, in its order."""


_STATE = msgspec.msgpack.Decoder(VocItemState)


class VocContext(NamedTuple):
    """What all items share. Picklable and small."""

    labels: Mapping[str, ObjectLabel]
    first: int
    """The number of the first pixel: 1 where boxes have their first and last pixel, or 0."""


class VocDataset:
    """The raw data, listed and read once."""

    def __init__(self, raw: Storage, options: VocOptions) -> None:
        self._raw = raw
        self._options = options
        self._files = VocFiles(raw, options)
        every, self._remarks = self._files.splits()
        every = [split._replace(entries=[*map(self._found, split.entries)]) for split in every]
        self._used = {path for split in every for entry in split.entries for path in entry[:2]}
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
        self.context = VocContext(labels, int(self.coordinates == "pixels"))

    def raw_files(self) -> Iterator[RawFile]:
        """The lists, the images, the XML and the PNGs of segmentations that are read."""
        paths: dict[str, None] = {}
        for split in self.splits:
            paths.update(dict.fromkeys(split.origins))
            for entry in split.entries:
                paths.update(dict.fromkeys((entry.image, entry.xml, *self._masks(entry.image))))
        for found in map(self._files.entries.get, paths):
            if found is not None and found.kind == "file":
                yield RawFile(found.path, found.size, found.size)

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
                        detail = f"`{safe(entry.name)}` has the image of `{safe(first)}`"
                        raise SkipImage("SRC022", detail)
                    yield self._item(split.name, entry)
                    if not entry.xml:
                        unlabeled.append(entry.image)
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
        return entry._replace(image=self._files.named_image(entry.xml, name))

    def _item(self, split: str, entry: VocEntry) -> Item:
        entries, symlinks = self._files.entries, self._options.symlinks
        if not entry.image:
            raise SkipImage("SRC020", f"there is no image of `{safe(entry.xml or entry.name)}`")
        if not entry.xml and self._options.unlabeled == "skip":
            raise SkipImage("SRC043", "a list names it, and it has no XML")
        size = image_size(entry.image, entries[entry.image], symlinks=symlinks)
        try:
            f"{entry.image}{entry.xml}".encode()
        except UnicodeEncodeError:
            raise SkipImage("SRC012", "the name is not UTF-8") from None
        size += _OVERHEAD
        if entry.xml:
            try:
                size += int(image_size(entry.xml, entries[entry.xml], symlinks=symlinks) * _SHARE)
            except SkipImage as error:
                detail = f"its XML `{safe(entry.xml)}`: {error.detail}"
                raise SkipImage("SRC041", detail) from None
        masks = self._masks(entry.image)
        size += sum(entries[path].size for path in masks if path)
        state = msgspec.msgpack.encode(VocItemState(entry.xml, masks))
        return Item(split, entry.image, size, state)

    def _masks(self, image: str) -> list[str]:
        return [self._files.mask_of(image, kind) for kind in self._options.masks]

    def _annotation(self, xml: str) -> VocAnnotation:
        if self._files.entries[xml].kind != "file":
            raise SkipImage("SRC041", "its XML is not a file")
        return VocAnnotation(self._raw, xml)

    def _survey(self, splits: Iterable[VocSplit]) -> None:
        """Read the XML of all splits, also of those that are not read."""
        for xml in (entry.xml for split in splits for entry in split.entries if entry.xml):
            try:
                found = self._annotation(xml)
            except SkipImage:  # the image is skipped with this reason
                continue
            self._names |= found.class_names
            if found.origin:
                self._origins["VOC" in found.origin.upper()] += 1
            boxes = (each.box for each in found.objects() if isinstance(each, VocObject))
            if not self._at_zero and any(0 in box[:2] for box in boxes):
                self._at_zero = xml

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
        files = self._files
        lists = {origin for split in self.splits for origin in split.origins}
        strays = [
            path
            for path in files.others
            if path not in lists and not (path.endswith(".txt") and "ImageSets/" in path)
        ]
        orphans = [path for path in files.images if path not in self._used]
        unused = [path for path in files.xmls if path not in self._used]
        masks = [] if self._options.masks else files.masks
        links = strays + (files.masks if self._options.masks else [])
        links = [path for path in links if files.entries[path].kind == "link"]
        strays = [path for path in strays if files.entries[path].kind != "link"]
        for code, paths, why in (
            ("SRC042", unused, "in no split"),
            ("SRC030", orphans, "neither an XML nor a list names it"),
            ("SRC015", masks, "segmentations, which --option masks=class,object reads"),
            ("SRC015", strays, "neither an image nor an XML"),
            ("SRC011", links, link_problem(self._options.symlinks)),
        ):
            if paths:
                yield paths_remark(self.splits[0].name, code, paths, why)


class VocSource(Source):
    """Images with an XML each. An item's key is the image's path.

    The raw folder is listed, and each XML read for the names of the classes, once, in the parent. A
    worker reads the images, the XML and the PNGs of its items, and nothing else.
    """

    Options: ClassVar[type[Any]] = VocOptions

    def __init__(self, raw: Storage, options: VocOptions) -> None:
        self._raw = raw
        self._options = options
        self._dataset: VocDataset | None = None
        self._context: VocContext | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent. Workers need the context, also in a part of a build,
        # which lists nothing.
        context = self._context or self._loaded().context
        return type(self), (self._raw, self._options), {"_context": context}

    def raw_files(self) -> Iterator[RawFile]:
        yield from self._loaded().raw_files()

    def labels(self) -> Mapping[str, Sequence[str]]:
        return {"image/object/class/label": self._loaded().classes}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._loaded().items()

    def example(self, item: Item) -> Written | Skipped:
        context = self._context or self._loaded().context
        state = _STATE.decode(item.state)
        data = self._raw.read(item.key, limit=MAX_IMAGE_BYTES)
        try:
            found = VocAnnotation(self._raw, state.xml) if state.xml else None
            width, height = (0, 0) if found is None else found.size
            data, header, view = ImageView.read(
                item.key, data, self._options, width=width, height=height
            )
            name = item.key.rpartition("/")[2]
            example = {
                **image_features(data, header, filename=name, source_id=item.key),
                **_objects(found, state.xml, context, view),
            }
            for kind, path in zip(self._options.masks, state.masks, strict=True):
                example.update(self._mask(kind, path, found, view))
        except (ImageError, SkipImage) as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        if detail := truncation_text(data, header):
            view.remarks.add("SRC014", detail)
        return view.written(item, example)

    def codecs(self) -> Mapping[str, str]:
        return self._options.codecs()

    def raw_path(self, split: str, key: str) -> str | None:  # noqa: ARG002 - keys are paths
        return None if self._options.exif == "apply" else key

    def describe(self) -> Mapping[str, str]:
        dataset = self._loaded()
        found = {"classes": class_summary(dataset.classes), "coordinates": self._numbers()}
        for split in dataset.splits:
            origins = safe(", ".join(split.origins))
            found[f"split {safe(split.name)}"] = f"{len(split.entries):,} of {origins}"
        return found

    def notes(self) -> list[str]:
        """What the build prints first."""
        return [f"coordinates of boxes: {self._numbers()}"] if self._loaded().why else []

    def _numbers(self) -> str:
        found = self._loaded()
        other, first = ("edges", 1) if found.coordinates == "pixels" else ("pixels", 0)
        why = f" ({found.why}; else --option coordinates={other})" if found.why else ""
        return f"{found.coordinates}, counted from {first}{why}"

    def schema(self) -> str:
        parts = ["voc", "objects", "voc_objects", *(f"voc_{kind}" for kind in self._options.masks)]
        return object_schema("tfrecreg_voc", parts, self._options)

    def _loaded(self) -> VocDataset:
        if self._dataset is None:
            self._dataset = VocDataset(self._raw, self._options)
            self._context = self._dataset.context
        return self._dataset

    def _mask(
        self, kind: str, path: str, annotation: VocAnnotation | None, view: ImageView
    ) -> Example:
        """The PNG of a segmentation, or none with a remark where there should be one."""
        data: list[bytes] = []
        if path:
            png = self._raw.read(path, limit=MAX_IMAGE_BYTES)
            if problem := _mask_problem(png, view):
                view.remarks.add("SRC028", f"`{safe(path)}` was left out: {problem}")
            else:
                data.append(png)
        elif annotation is not None and annotation.segmented:
            view.remarks.add("SRC028", f"it is segmented, and has no PNG of the kind `{kind}`")
        prefix = f"image/segmentation/{kind}"
        return {
            f"{prefix}/encoded": bytes_feature(data),
            f"{prefix}/format": bytes_feature(["png"] * len(data)),
        }


def _objects(
    annotation: VocAnnotation | None, path: str, context: VocContext, view: ImageView
) -> Example:
    """The features of the objects in an image's XML."""
    boxes = Boxes(context.labels, view)
    kept: list[VocObject] = []
    for number, each in enumerate(annotation.objects() if annotation else (), start=1):
        name = f"the object {number} of `{safe(path)}`"
        if isinstance(each, BadAnnotation):
            view.leave_out("SRC040", f"{name} {each}")
            continue
        left, top, right, bottom = each.box
        left, top = left - context.first, top - context.first
        if not boxes.add(name, each.name, (left, top, right - left, bottom - top)):
            continue
        kept.append(each)
        for _ in range(each.parts):
            view.remarks.add("SRC046", f"a part of {name} was left out")
    return {
        **boxes.features(),
        "image/object/difficult": int64_feature([each.difficult for each in kept]),
        "image/object/truncated": int64_feature([each.truncated for each in kept]),
        "image/object/occluded": int64_feature([each.occluded for each in kept]),
        "image/object/view": bytes_feature([each.pose for each in kept]),
    }


def _mask_problem(data: bytes, view: ImageView) -> str:
    """Why a PNG cannot be that of a segmentation; empty where it can."""
    try:
        header = read_header(data)
    except ImageError as error:
        return error.detail
    if header.format != "png":
        return f"it is a {header.format}, not a PNG"
    if (header.width, header.height) not in view.sizes:
        width, height = view.sizes[1]
        return f"it has {header.width} × {header.height} pixels, expected {width} × {height}"
    return ""
