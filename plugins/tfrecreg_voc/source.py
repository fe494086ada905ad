"""The source `voc`: each image, with the objects of its XML, becomes one example.

The parent process lists the raw data (`VocDataset`) and makes the items. A worker makes the example
of an item: `notes_on` reads the XML, the base class reads the image, and `objects` makes features.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple
from xml.etree.ElementTree import Element

import msgspec

from tfrecreg.api import (
    MAX_IMAGE_BYTES,
    Boxes,
    Example,
    ImageNotes,
    ImageView,
    Item,
    ObjectLabel,
    ObjectSource,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    bytes_feature,
    class_summary,
    image_size,
    int64_feature,
    object_schema,
    paths_remark,
    safe,
)
from tfrecreg_voc.dataset import (
    VocAnnotation,
    VocDataset,
    VocEntry,
    VocOptions,
    box_of,
    text_in,
)

_OVERHEAD = 600
"""Bytes of an example besides the image: keys, lengths, names, the checksum."""
_SHARE = 0.2
"""Approximate bytes of an object's features per byte of its XML."""


class VocItemState(NamedTuple):
    """The state of an item, packed as MessagePack. The paths of missing files are empty."""

    xml: str
    masks: list[str]
    """The PNG for each kind in the option `masks`, in the same order."""


_STATE = msgspec.msgpack.Decoder(VocItemState)


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
        state = msgspec.msgpack.encode(VocItemState(entry.xml, masks))
        return Item(split, entry.image, size, state)

    def _masks(self, image: str) -> list[str]:
        return [self.dataset.mask_of(image, kind) for kind in self.options.masks]

    def notes_on(self, item: Item) -> ImageNotes:
        xml = _STATE.decode(item.state).xml
        # Not `self.dataset.annotation`: only the parent process has a dataset.
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
        state, found = _STATE.decode(item.state), notes.annotations
        features = _objects(found, state.xml, self.context, view)
        for kind, path in zip(self.options.masks, state.masks, strict=True):
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
    kept: list[Element] = []
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
