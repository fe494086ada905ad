"""A whole dataset: every split with its images, and where their annotations are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
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
    safe,
)
from tfrecreg_coco.annotation_files import Chosen, url_member
from tfrecreg_coco.annotation_table import (
    AnnotationTable,
    Category,
    ImageEntry,
    read_annotation_table,
)
from tfrecreg_coco.coco_options import OBJECT_TASKS, CocoOptions
from tfrecreg_coco.image_folders import FolderFinder, ImageFolder, unread_folders, usual_folders

_MAX_LABEL = 1 << 16
"""Ids that serve as labels stay below: the label map is a list in the order of the labels."""
_OVERHEAD = 600
"""Bytes of an example beside the image: keys, lengths, names, the checksum."""
_OBJECT = 60
"""Bytes of an object beside its mask and keypoints."""
_MASK_SHARE = {"none": 0.0, "polygons": 0.6, "rle": 0.4, "png": 1.0}
"""Bytes of a mask for each byte of its annotation in the file, roughly."""


CategoryLabels = dict[int | float | None, ObjectLabel]
"""Labels by category id, in the order of the ids."""


class Spans(NamedTuple):
    """The annotations of one image in one file."""

    file: int
    """Number of the file in :attr:`WorkerContext.paths`."""
    spans: list[tuple[int, int]]
    """Start and end of each annotation, in file order."""


class ItemState(NamedTuple):
    """The state of an item, packed as MessagePack."""

    image_id: int
    file_name: str
    """File name as in the annotations."""
    width: int
    """Pixels as the annotations have them; 0 where they do not say."""
    height: int
    spans: list[Spans]
    segments: str
    """Path of the PNG of its panoptic segments; empty where it has none."""


class WorkerContext(NamedTuple):
    """What all items share. Picklable and small."""

    paths: tuple[str, ...]
    """The files of annotations."""
    tasks: tuple[str, ...]
    """The task of each file."""
    objects: CategoryLabels | None
    """Labels of objects; None where no objects are read."""
    segments: CategoryLabels | None
    """Labels of panoptic segments; None where these are not read."""
    keypoints: int
    """Keypoints of each object; 0 where these are not read."""


class _Split(NamedTuple):
    name: str
    folder: ImageFolder
    segments: ImageFolder | None
    """The folder of the panoptic PNGs."""
    tables: list[int]
    """Numbers of the files that are merged, in this order."""


class _Found(NamedTuple):
    """An image of a split that is there."""

    path: str
    size: int
    image: ImageEntry
    rows: list[tuple[int, int]]
    """Number of each file that lists it, and of the image in that file."""
    segments: str
    segments_size: int


class CocoDataset:
    """All files of annotations, read once, and the images that they name."""

    def __init__(self, raw: Storage, options: CocoOptions, chosen: Sequence[Chosen]) -> None:
        self._raw = raw
        self._options = options
        self._tables: list[AnnotationTable] = []
        numbers = [self._read_tables(each) for each in chosen]
        objects = [table for table in self._tables if table.task in OBJECT_TASKS]
        panoptic = [table for table in self._tables if table.task == "panoptic"]
        self.context = WorkerContext(
            paths=tuple(table.path for table in self._tables),
            tasks=tuple(table.task for table in self._tables),
            objects=_make_labels(objects, options.categories) if objects else None,
            segments=_make_labels(panoptic, options.categories) if panoptic else None,
            keypoints=max((table.keypoints for table in self._tables), default=0),
        )
        self._entries: list[tuple[str, _Found | Skipped]] = []
        self._remarks: list[Remark] = []
        splits = self._find_folders(chosen, numbers)
        self.folders = {split.name: split.folder.path for split in splits}
        """The folder of images by split."""
        for split in splits:
            self._entries += [(split.name, each) for each in self._list_images(split)]
            for number in split.tables:
                remarks = self._tables[number].remarks
                self._remarks += [remark._replace(split=split.name) for remark in remarks]
            if split.segments is not None:
                self._remarks += split.segments.moved(split.name)
        # A folder of several splits is looked through once, in the name of the first of them.
        for first in {split.folder.path: split for split in reversed(splits)}.values():
            self._remarks += first.folder.moved(first.name)
            self._remarks += first.folder.orphans(first.name)
        if not (options.splits or options.annotations):  # these leave folders out by choice
            used = {split.folder.path: split.folder for split in splits}
            aside = {split.segments.path for split in splits if split.segments is not None}
            self._remarks += unread_folders(raw, used, aside, splits[0].name)

    def raw_files(self) -> Iterator[RawFile]:
        """The files of annotations, the images and the PNGs of segments that are there."""
        for path in self.context.paths:
            entry = self._raw.stat(path, follow="all")
            size = entry.size if entry is not None else 0
            yield RawFile(path, size, size)
        seen: set[str] = set()
        for _, found in self._entries:
            if isinstance(found, _Found):
                for path, size in ((found.path, found.size), (found.segments, found.segments_size)):
                    if path and path not in seen:
                        seen.add(path)
                        yield RawFile(path, size, size)

    def items(self) -> Iterator[Item | Skipped | Remark]:
        """Every image, in the order of the files."""
        yield from self._remarks
        for split, found in self._entries:
            yield found if isinstance(found, Skipped) else self._item(split, found)

    def keypoint_names(self) -> list[str]:
        """The names of the keypoints, where all categories that name them agree."""
        named = {
            tuple(category.keypoints)
            for table in self._tables
            if table.task == "keypoints"
            for category in table.categories.values()
            if category.keypoints
        }
        return list(named.pop()) if len(named) == 1 else []

    def _read_tables(self, chosen: Chosen) -> list[int]:
        """Read the files of a split; their numbers."""
        numbers = []
        for path in dict.fromkeys(chosen.files.values()):
            tasks = [task for task, file in chosen.files.items() if file == path]
            # A file of keypoints is read as such for all tasks.
            task = "keypoints" if "keypoints" in tasks else tasks[0]
            drop = self._options.dangling == "drop"
            numbers.append(len(self._tables))
            self._tables.append(read_annotation_table(self._raw, path, task, drop_dangling=drop))
        return numbers

    def _find_folders(self, chosen: Sequence[Chosen], numbers: Sequence[list[int]]) -> list[_Split]:
        names = [each.split for each in chosen]
        images = FolderFinder(self._raw, "images", self._options.images, names)
        segments = FolderFinder(self._raw, "segments", self._options.segments, names)
        folders: dict[str, ImageFolder] = {}
        splits: list[_Split] = []
        for each, own_numbers in zip(chosen, numbers, strict=True):
            tables = [self._tables[number] for number in own_numbers]
            files = [image.file_name for table in tables for image in table.images]
            urls = partial(url_member, self._raw, tables[0].path)
            path = images.find(each.split, usual_folders(tables[0].path, each), files, urls)
            if path not in folders:
                deep = any("/" in name or "\\" in name for name in files)
                folders[path] = ImageFolder(self._raw, path, deep=deep)
            pngs: ImageFolder | None = None
            for table in tables:
                if table.files:
                    beside = table.path.removesuffix(".json")
                    folder, _, stem = beside.rpartition("/")
                    # An image of the same name in the folder of the images is not the PNG.
                    usual = [usual for usual in (beside, stem, folder) if usual != path]
                    listed = [name for name in table.files if name is not None]
                    place = segments.find(each.split, usual, listed, str)
                    pngs = ImageFolder(self._raw, place, deep=False)
            splits.append(_Split(each.split, folders[path], pngs, own_numbers))
        return splits

    def _list_images(self, split: _Split) -> Iterator[_Found | Skipped]:
        seen: dict[str, int] = {}
        for image_id, (image, rows) in self._merge(split).items():
            path = image.file_name
            try:
                path = split.folder.path_of(path)
                size = split.folder.size_of(path)
                first = seen.setdefault(path, image_id)
                if first != image_id:
                    path = f"{path}#{image_id}"
                    detail = f"the picture {image_id} has the file of the picture {first}"
                    raise SkipImage("SRC022", detail)
                yield _Found(path, size, image, rows, *self._segments(split, rows))
            except SkipImage as error:
                yield Skipped(split.name, path, error.code, error.detail)

    def _merge(self, split: _Split) -> dict[int, tuple[ImageEntry, list[tuple[int, int]]]]:
        """Each image of a split by its id, with its row in every file that lists it."""
        merged: dict[int, tuple[ImageEntry, list[tuple[int, int]]]] = {}
        for number in split.tables:
            table = self._tables[number]
            for row, image_id in enumerate(table.ids.tolist()):
                image = table.images[row]
                known, rows = merged.setdefault(image_id, (image, []))
                if known.file_name != image.file_name:
                    raise RawDataError(
                        f"the image {image_id} is `{safe(known.file_name)}` in "
                        f"`{safe(self._tables[rows[0][0]].path)}` and `{safe(image.file_name)}` in "
                        f"`{safe(table.path)}`",
                        hint="files are merged by the ids of their images: build them apart",
                    )
                rows.append((number, row))
        return merged

    def _segments(self, split: _Split, rows: list[tuple[int, int]]) -> tuple[str, int]:
        """Path and size of the PNG of an image's panoptic segments; nothing where it has none."""
        for number, row in rows:
            table = self._tables[number]
            annotations = table.annotations_of(row)
            if split.segments is None or not table.files or not annotations:
                continue
            if len(annotations) > 1:
                detail = f"it has {len(annotations)} panoptic annotations, not one"
                raise SkipImage("SRC031", detail)
            name = table.files[annotations[0]]
            if name is None:
                raise SkipImage("SRC031", "its panoptic annotation has no `file_name`")
            try:
                path = split.segments.path_of(name)
                return path, split.segments.size_of(path)
            except SkipImage as error:
                raise SkipImage("SRC031", f"the PNG of its segments: {error.detail}") from None
        return "", 0

    def _item(self, split: str, found: _Found) -> Item:
        spans = []
        size = found.size + found.segments_size + _OVERHEAD
        for number, row in found.rows:
            table = self._tables[number]
            annotations = table.annotations_of(row)
            if not annotations:
                continue
            part = slice(annotations.start, annotations.stop)
            starts, ends = table.starts[part].tolist(), table.ends[part].tolist()
            spans.append(Spans(number, list(zip(starts, ends, strict=True))))
            text = sum(ends) - sum(starts)
            if table.task in OBJECT_TASKS:
                size += len(annotations) * (_OBJECT + 12 * self.context.keypoints)
                size += int(text * _MASK_SHARE[self._options.masks])
            else:
                size += text
        image = found.image
        state = ItemState(
            image_id=int(image.id),
            file_name=image.file_name,
            width=_pixels(image.width),
            height=_pixels(image.height),
            spans=spans,
            segments=found.segments,
        )
        return Item(split, found.path, size, msgspec.msgpack.encode(state))


def _pixels(side: int | float | None) -> int:
    """A side of an image as annotations have it; 0 where they say nothing of use."""
    return int(side) if side is not None and 0 < side < 2**31 else 0


def _make_labels(
    tables: Iterable[AnnotationTable], mode: Literal["as-is", "contiguous"]
) -> CategoryLabels:
    """The labels of all categories that the files list."""
    found: dict[int, Category] = {}
    origin: dict[int, str] = {}
    for table in tables:
        for number, category in table.categories.items():
            other = found.setdefault(number, category)
            first = origin.setdefault(number, table.path)
            if other.name != category.name:
                raise RawDataError(
                    f"the category {number} is `{safe(other.name)}` in `{safe(first)}` and "
                    f"`{safe(category.name)}` in `{safe(table.path)}`",
                    hint="one dataset has one list of categories: fix the files, or build these "
                    "splits as datasets of their own, with --option splits=",
                )
    ids = sorted(found)
    if mode == "as-is" and ids and not 0 <= ids[0] <= ids[-1] < _MAX_LABEL:
        wrong = ids[0] if ids[0] < 0 else ids[-1]
        raise RawDataError(
            f"the category {wrong} of `{safe(origin[wrong])}` cannot be a label as it is: expected "
            f"ids from 0 to {_MAX_LABEL - 1}",
            hint="--option categories=contiguous counts them from 0",
        )
    all_say = all(category.isthing is not None for category in found.values())
    labels: CategoryLabels = {}
    for position, number in enumerate(ids):
        category = found[number]
        try:
            name = category.name.encode("utf-8")
        except UnicodeEncodeError:
            raise RawDataError(
                f"the name of the category {number} in `{safe(origin[number])}` is not UTF-8: "
                f"`{safe(category.name)}`",
                hint="write the file again as UTF-8",
            ) from None
        label = position if mode == "contiguous" else number
        labels[number] = ObjectLabel(label, name, int(bool(category.isthing)) if all_say else None)
    return labels
