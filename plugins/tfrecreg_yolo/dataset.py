"""A whole dataset: its splits, its classes, its task, and what is remarked on before any image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tfrecreg.api import (
    Item,
    ObjectLabel,
    RawDataError,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    Storage,
    UsageError,
    choose_splits,
    image_size,
    link_problem,
    paths_remark,
    safe,
)
from tfrecreg_yolo.description import YoloDescription, read_description
from tfrecreg_yolo.raw_listing import YoloListing, label_paths
from tfrecreg_yolo.rows import MAX_LABEL_BYTES, find_task, rows_of
from tfrecreg_yolo.splits import find_yolo_splits
from tfrecreg_yolo.yolo_options import YoloOptions, YoloTask

_OVERHEAD = 600
"""Bytes of an example beside the image: keys, lengths, names, the checksum."""


class YoloContext(NamedTuple):
    """What all items share. Picklable and small."""

    task: YoloTask
    kpt_shape: tuple[int, ...]
    labels: Mapping[int, ObjectLabel]
    """By the number of the class."""


class YoloDataset:
    """The raw data, listed and described once."""

    def __init__(self, raw: Storage, options: YoloOptions) -> None:
        self._raw = raw
        self._options = options
        self._listing = YoloListing(raw, options)
        self.description = read_description(raw, self._listing, options)
        every = find_yolo_splits(self._listing, self.description, options.splits)
        self.splits = choose_splits(every, options.splits)
        self.context = YoloContext(
            self._task(), self.description.kpt_shape, _labels(self.description)
        )
        self._require_labels()

    def raw_files(self) -> Iterator[RawFile]:
        """The files that describe the dataset, the images, and the label files."""
        listing, description = self._listing, self.description
        seen: set[str] = set()
        for path in (description.file, description.names_file, *self._lists()):
            size = listing.others.get(path, listing.texts.get(path))
            if path and size is not None and path not in seen:
                seen.add(path)
                yield RawFile(path, size, size)
        for split in self.splits:
            for image in split.images:
                if image in seen or image in listing.unusable or image not in listing.images:
                    continue
                seen.add(image)
                yield RawFile(image, listing.images[image], listing.images[image])
                label, _ = listing.find_label(image)
                if label and label not in seen and label not in listing.unusable:
                    seen.add(label)
                    yield RawFile(label, listing.texts[label], listing.texts[label])

    def items(self) -> Iterator[Item | Skipped | Remark]:
        """Every image of every split, and the remarks on them together."""
        for split in self.splits:
            yield from split.remarks
            unlabeled: list[str] = []
            owners: dict[str, str] = {}
            shared: list[str] = []
            for image in split.images:
                label, _ = self._listing.find_label(image)
                if label and owners.setdefault(label, image) != image:
                    shared.append(image)
                try:
                    yield self._item(split.name, image, unlabeled)
                except SkipImage as error:
                    yield Skipped(split.name, image, error.code, error.detail)
            if shared:
                yield paths_remark(split.name, "SRC049", shared, "the label file of another image")
            if unlabeled:
                yield paths_remark(split.name, "SRC043", unlabeled, "no label file; no objects")
        yield from self._left_aside()

    def _item(self, split: str, image: str, unlabeled: list[str]) -> Item:
        listing = self._listing
        size = image_size(image, listing.entry(image), symlinks=listing.symlinks)
        try:
            image.encode()
        except UnicodeEncodeError:
            raise SkipImage("SRC012", "the name is not UTF-8") from None
        label, rule = listing.find_label(image)
        if not label:
            if self._options.unlabeled == "skip":
                raise SkipImage("SRC043", "no label file")
            unlabeled.append(image)
            return Item(split, image, size + _OVERHEAD)
        if label in listing.unusable:
            try:
                image_size(label, listing.unusable[label], symlinks=listing.symlinks)
            except SkipImage as error:
                detail = f"its label file `{safe(label)}`: {error.detail}"
                raise SkipImage("SRC041", detail) from None
        if listing.texts[label] > MAX_LABEL_BYTES:
            detail = f"its label file has {listing.texts[label]:,} bytes, too many"
            raise SkipImage("SRC041", detail)
        return Item(split, image, size + _OVERHEAD + listing.texts[label], b"%d" % rule)

    def _left_aside(self) -> Iterator[Remark]:
        """Images in no split, label files without an image, and all other files."""
        first = self.splits[0].name
        listing, description = self._listing, self.description
        if not self._options.splits:
            taken = {image for split in self.splits for image in split.images}
            if orphans := [image for image in listing.images if image not in taken]:
                yield paths_remark(first, "SRC030", orphans, "in no split")
        read = {description.file, description.names_file, *self._lists()}
        places = {path for image in listing.images for path in label_paths(image)}
        unused = listing.unused_labels(places, read)
        if unused:
            yield paths_remark(first, "SRC042", unused, "no image has it")
        known = places.union(unused, read)
        known.update(listing.links)
        strays = [path for path in (*listing.others, *listing.texts) if path not in known and path]
        if strays:
            yield paths_remark(first, "SRC015", strays, "neither an image nor a label file")
        if listing.links:
            yield paths_remark(first, "SRC011", listing.links, link_problem(listing.symlinks))

    def _lists(self) -> list[str]:
        """The lists of images that were read."""
        every = (origin for split in self.splits for origin in split.origins)
        return [origin for origin in every if origin in self._listing.texts]

    def _task(self) -> YoloTask:
        options, shape = self._options, self.description.kpt_shape
        if options.task == "pose" and not shape:
            raise UsageError(
                "`task=pose` needs the number of keypoints, and no `kpt_shape` says it",
                hint="--option kpt_shape=17,3 for 17 keypoints of x, y and visibility",
            )
        if options.task != "auto":
            return options.task
        if shape:
            return "pose"
        counts: Counter[int] = Counter()
        example = ""
        for path in self._label_files():
            found = self._coordinates(path)
            if 8 in found and not example:
                example = path
            counts.update(found)
        task = find_task(counts)
        if task is None:
            raise RawDataError(
                f"the rows of `{safe(example)}` have 8 coordinates: they may be polygons of four "
                "points, or oriented boxes",
                hint="--option task=segment or --option task=obb says which",
            )
        return task

    def _label_files(self) -> Iterator[str]:
        """The label files in the order of the splits."""
        for split in self.splits:
            for image in split.images:
                label, _ = self._listing.find_label(image)
                if label and label not in self._listing.unusable:
                    yield label

    def _coordinates(self, path: str) -> Counter[int]:
        """The number of rows of a label file by the number of their coordinates."""
        if self._listing.texts[path] > MAX_LABEL_BYTES:
            return Counter()
        data = self._raw.read(path, limit=MAX_LABEL_BYTES)
        try:
            return Counter(len(line.split()) - 1 for _, line in rows_of(data))
        except SkipImage:  # the image is skipped with this reason
            return Counter()

    def _require_labels(self) -> None:
        """Refuse images without any label file: the label files are elsewhere."""
        if next(self._label_files(), None) is None:
            image = self.splits[0].images[0]
            raise RawDataError(
                f"no image has a label file: looked for `{safe(label_paths(image)[0])}` and so on",
                hint="label files are in a folder `labels` in place of `images`, or beside the "
                "images; name the folder above both with `--raw`",
            )


def _labels(description: YoloDescription) -> dict[int, ObjectLabel]:
    return {
        number: ObjectLabel(number, name.encode())
        for number, name in enumerate(description.names)
        if name
    }
