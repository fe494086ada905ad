"""A whole dataset: every split with its pictures, and where what is said of them stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tfrecreg.api import Item, RawDataError, RawFile, Remark, Skipped, Storage, safe
from tfrecreg_coco.classes import keypoint_names, make_classes
from tfrecreg_coco.files import (
    Folder,
    Misplaced,
    find_folder,
    given_folders,
    plain_path,
    usual_folders,
)
from tfrecreg_coco.layout import Chosen
from tfrecreg_coco.options import OBJECTS, CocoOptions
from tfrecreg_coco.state import Common, Slices, State, pack
from tfrecreg_coco.table import Picture, Table, read_table

__all__ = ["Dataset"]

_OVERHEAD = 600
"""Bytes of an example beside the picture: keys, lengths, names, the checksum."""
_OBJECT = 60
_OF_JSON = {"none": 0.0, "polygons": 0.6, "rle": 0.4, "png": 1.0}
"""Bytes of a mask for each byte of an annotation in the file, roughly."""


class _Split(NamedTuple):
    name: str
    folder: Folder
    segments: Folder | None
    """Of the panoptic PNGs."""
    tables: list[int]
    """Numbers of the files that are merged, in this order."""


class _Found(NamedTuple):
    """A picture of a split that is there."""

    path: str
    size: int
    picture: Picture
    rows: list[tuple[int, int]]
    """Number of the file, and of the picture in it."""
    segments: str
    segments_size: int


class Dataset:
    """All files of annotations, read once, and the pictures that they name.

    Args:
        raw: the raw data.
        options: of the source.
        chosen: what is read of each split.

    Raises:
        RawDataError: the files are no datasets, or do not fit together.
        UsageError: an option names what is not there.
    """

    def __init__(self, raw: Storage, options: CocoOptions, chosen: Sequence[Chosen]) -> None:
        self._raw = raw
        self._options = options
        self._tables: list[Table] = []
        tasks: list[str] = []
        numbers: list[list[int]] = []
        for each in chosen:
            numbers.append([])
            for path in dict.fromkeys(each.files.values()):
                # A file of keypoints is read as such whatever else it is read for.
                read_for = [task for task, file in each.files.items() if file == path]
                task = "keypoints" if "keypoints" in read_for else read_for[0]
                drop = options.dangling == "drop"
                numbers[-1].append(len(tasks))
                self._tables.append(read_table(raw, path, task, drop_dangling=drop))
                tasks.append(task)
        by_task = list(zip(tasks, self._tables, strict=True))
        objects = [table for task, table in by_task if task in OBJECTS]
        panoptic = [table for task, table in by_task if task == "panoptic"]
        self.common = Common(
            paths=tuple(table.path for table in self._tables),
            tasks=tuple(tasks),
            objects=make_classes(objects, options.categories) if objects else None,
            segments=make_classes(panoptic, options.categories) if panoptic else None,
            keypoints=max((table.keypoints for table in self._tables), default=0),
        )
        self.keypoint_names = keypoint_names(
            table for task, table in by_task if task == "keypoints"
        )
        self._entries: list[tuple[str, _Found | Skipped]] = []
        self._remarks: list[Remark] = []
        splits = self._splits(chosen, numbers)
        self.folders = {split.name: split.folder.path for split in splits}
        """The folder of each split's pictures."""
        self._fill(splits)

    def raw_files(self) -> Iterator[RawFile]:
        """The files of annotations, the pictures and the PNGs of segments that are there."""
        for path in self.common.paths:
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
        """Every picture, in the order of the files."""
        yield from self._remarks
        for split, found in self._entries:
            yield found if isinstance(found, Skipped) else self._item(split, found)

    def _splits(self, chosen: Sequence[Chosen], numbers: Sequence[list[int]]) -> list[_Split]:
        names = [each.split for each in chosen]
        images = given_folders("images", self._options.images, names)
        segments = given_folders("segments", self._options.segments, names)
        folders: dict[str, Folder] = {}
        splits: list[_Split] = []
        for each, mine in zip(chosen, numbers, strict=True):
            tables = [self._tables[number] for number in mine]
            near = usual_folders(tables[0].path, each)
            files = [picture.file_name for table in tables for picture in table.pictures]
            path = find_folder(self._raw, images, each, near, files, "pictures")
            deep = any("/" in name for name in files)
            if path not in folders:
                folders[path] = Folder(self._raw, path, deep=deep)
            pngs: Folder | None = None
            for table in tables:
                if table.files:
                    beside = table.path.removesuffix(".json")
                    own, _, stem = beside.rpartition("/")
                    # Not where the pictures are: one of the same name would be taken for the PNG.
                    near = [each for each in (beside, stem, own) if each != path]
                    listed = [name for name in table.files if name is not None]
                    place = find_folder(self._raw, segments, each, near, listed, "PNGs")
                    pngs = Folder(self._raw, place, deep=False)
            splits.append(_Split(each.split, folders[path], pngs, mine))
        return splits

    def _fill(self, splits: Sequence[_Split]) -> None:
        for split in splits:
            self._entries += [(split.name, each) for each in self._list(split)]
            for number in split.tables:
                for remark in self._tables[number].remarks:
                    self._remarks.append(remark._replace(split=split.name))
        # A folder of several splits is looked through once, in the name of the first of them.
        for first in {split.folder.path: split for split in reversed(splits)}.values():
            self._remarks += first.folder.orphans(first.name)

    def _list(self, split: _Split) -> Iterator[_Found | Skipped]:
        seen: dict[str, int] = {}
        for image_id, picture, rows in self._merged(split):
            path = picture.file_name
            try:
                path = split.folder.join(plain_path(path))
                size = split.folder.find(path)
                first = seen.setdefault(path, image_id)
                if first != image_id:
                    path = f"{path}#{image_id}"
                    detail = f"the picture {image_id} has the file of the picture {first}"
                    raise Misplaced("SRC022", detail)
                yield _Found(path, size, picture, rows, *self._segments(split, rows))
            except Misplaced as error:
                yield Skipped(split.name, path, error.code, error.detail)

    def _segments(self, split: _Split, rows: list[tuple[int, int]]) -> tuple[str, int]:
        """The PNG of a picture's panoptic segments and its size; nothing where it has none.

        Raises:
            Misplaced: it is not there, or there are several.
        """
        for number, row in rows:
            table = self._tables[number]
            first, last = int(table.bounds[row]), int(table.bounds[row + 1])
            if split.segments is None or not table.files or first == last:
                continue
            if last - first > 1:
                raise Misplaced("SRC031", f"it has {last - first} panoptic annotations, not one")
            name = table.files[first]
            if name is None:
                raise Misplaced("SRC031", "its panoptic annotation has no `file_name`")
            try:
                path = split.segments.join(plain_path(name))
                return path, split.segments.find(path)
            except Misplaced as error:
                raise Misplaced("SRC031", f"the PNG of its segments: {error.detail}") from None
        return "", 0

    def _merged(self, split: _Split) -> Iterator[tuple[int, Picture, list[tuple[int, int]]]]:
        """Each picture of a split once, with its place in every file that lists it."""
        merged: dict[int, tuple[Picture, list[tuple[int, int]]]] = {}
        for number in split.tables:
            table = self._tables[number]
            for row, (image_id, picture) in enumerate(
                zip(table.ids.tolist(), table.pictures, strict=True)
            ):
                known, rows = merged.setdefault(image_id, (picture, []))
                if known.file_name != picture.file_name:
                    other = self._tables[rows[0][0]]
                    raise RawDataError(
                        f"the picture {image_id} is `{safe(known.file_name)}` in "
                        f"`{safe(other.path)}` and `{safe(picture.file_name)}` in "
                        f"`{safe(table.path)}`",
                        hint="files are merged by the ids of their pictures: build them apart",
                    )
                rows.append((number, row))
        for image_id, (picture, rows) in merged.items():
            yield image_id, picture, rows

    def _item(self, split: str, found: _Found) -> Item:
        slices = []
        size = found.size + found.segments_size + _OVERHEAD
        for number, row in found.rows:
            table = self._tables[number]
            first, last = int(table.bounds[row]), int(table.bounds[row + 1])
            if first == last:
                continue
            starts, ends = table.starts[first:last].tolist(), table.ends[first:last].tolist()
            slices.append(Slices(number, list(zip(starts, ends, strict=True))))
            text = sum(ends) - sum(starts)
            if self.common.tasks[number] in OBJECTS:
                size += (last - first) * (_OBJECT + 12 * self.common.keypoints)
                size += int(text * _OF_JSON[self._options.masks])
            else:
                size += text
        picture = found.picture
        state = State(
            image_id=int(picture.id),
            file_name=picture.file_name,
            width=picture.side("width"),
            height=picture.side("height"),
            slices=slices,
            segments=found.segments,
        )
        return Item(split, found.path, size, pack(state))
