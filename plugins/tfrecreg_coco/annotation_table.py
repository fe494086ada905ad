"""One file of annotations: its images, its categories, and the offset of each annotation.

The file is read once, in the parent process. Only the offsets of an annotation are kept, 16 bytes:
the worker that makes the example of an image reads the image's annotations from there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from tfrecreg.api import RawDataError, Remark, Storage, safe
from tfrecreg_coco.coco_options import OBJECT_TASKS
from tfrecreg_coco.json_scanner import Batch, ListScan, Positions, decode_batch

_SECTIONS = frozenset({"images", "annotations", "categories"})
_NEEDED = {
    "instances": ("bbox", "segmentation"),
    "stuff": ("bbox", "segmentation"),
    "keypoints": ("keypoints",),
    "captions": ("caption",),
    "panoptic": ("segments_info",),
}
"""Members by task: an annotation has at least one of them."""
_INT64 = np.iinfo(np.int64)


class ImageEntry(msgspec.Struct, gc=False):
    """An entry of `images`."""

    id: int | float
    file_name: str
    width: int | float | None = None
    height: int | float | None = None


class Category(msgspec.Struct, gc=False):
    """An entry of `categories`."""

    id: int | float
    name: str
    keypoints: list[str] | None = None
    isthing: int | bool | None = None


class _Head(msgspec.Struct, gc=False):
    """The members of an annotation that the listing needs."""

    image_id: int | float
    id: int | float | None = None
    category_id: int | float | None = None
    file_name: str | None = None
    keypoints: msgspec.Raw = msgspec.Raw(b"")


class AnnotationTable(NamedTuple):
    """A file of annotations."""

    path: str
    task: str
    """Task that it is read for."""
    images: list[ImageEntry]
    ids: Positions
    """The id of each image."""
    categories: dict[int, Category]
    """Categories by id."""
    starts: Positions
    """Offsets of the annotations in the file, image by image."""
    ends: Positions
    bounds: Positions
    """Image number n has the annotations `bounds[n]` to `bounds[n + 1]`."""
    files: list[str | None]
    """The PNG that each annotation of panoptic segments names. Else empty."""
    keypoints: int
    """The most keypoints that an annotation or a category has."""
    remarks: list[Remark]
    """On annotations that were left out or are strange; without a split."""

    def annotations_of(self, number: int) -> range:
        """Numbers of the annotations of the image `number`."""
        return range(int(self.bounds[number]), int(self.bounds[number + 1]))


class _Builder:
    """The table of a file, growing."""

    def __init__(self, path: str, task: str) -> None:
        self._path = path
        self._task = task
        self._images: list[ImageEntry] = []
        self._categories: list[Category] = []
        self._count = 0
        self._columns: dict[str, list[Positions]] = defaultdict(list)
        self._files: list[str | None] = []
        self._keypoints = 0
        ids = ["image_id"] if task == "panoptic" else ["image_id", "id"]
        self._id_columns = [*ids, "category_id"] if task in OBJECT_TASKS else ids

    def add(self, batch: Batch) -> None:
        """Take over a batch of any of the sections."""
        if batch.section == "images":
            self._images += decode_batch(batch, ImageEntry, self._path, len(self._images))
        elif batch.section == "categories":
            self._categories += decode_batch(batch, Category, self._path, len(self._categories))
        else:
            self._add_annotations(batch)

    def _add_annotations(self, batch: Batch) -> None:
        if not self._count:
            self._check_task(batch.element(0))
        heads = decode_batch(batch, _Head, self._path, self._count)
        self._count += len(heads)
        for name in self._id_columns:
            self._columns[name].append(self._int64(name, map(attrgetter(name), heads)))
        self._columns["starts"].append(batch.starts)
        self._columns["ends"].append(batch.ends)
        if self._task == "panoptic":
            self._files += [head.file_name for head in heads]
        if self._task == "keypoints":
            commas = max(bytes(head.keypoints).count(b",") for head in heads)
            self._keypoints = max(self._keypoints, (commas + 1) // 3)

    def _check_task(self, first: bytes) -> None:
        """Refuse a file whose annotations do not match its name."""
        needed = _NEEDED.get(self._task, ())
        if needed and not any(f'"{key}"'.encode() in first for key in needed):
            raise RawDataError(
                f"`{safe(self._path)}` holds no {self._task}: its first annotation has no "
                + " and no ".join(f"`{key}`" for key in needed),
                hint="check that this is the right file",
            )

    def _int64(self, name: str, values: Iterable[int | float | None]) -> Positions:
        """Ids as int64; a missing one becomes the smallest number."""
        listed = [_INT64.min if value is None else value for value in values]
        try:
            found = np.array(listed or [0])[: len(listed)]
        except OverflowError:  # an integer of hundreds of digits beside a float
            found = np.empty(0)
        if found.dtype == np.int64:
            return found
        for value in listed:
            if isinstance(value, float) and not value.is_integer():
                problem = f"{value}, expected a whole number"
            elif not _INT64.min <= value <= _INT64.max:
                # Python refuses to write out integers of thousands of digits.
                bits = int(value).bit_length()
                shown = str(int(value)) if bits < 200 else f"of {bits} bits"
                problem = f"{shown}, which does not fit into 64 bits"
            else:
                continue
            raise RawDataError(
                f"`{safe(self._path)}` is not a COCO dataset: it has the `{name}` {problem}",
                hint="fix the file, or write it again",
            )
        return np.array([int(value) for value in listed], np.int64)

    def table(self, *, drop_dangling: bool) -> AnnotationTable:
        """The table, with the annotations in the order of the images."""
        image_ids = self._unique_ids("images", self._images, attrgetter("file_name"))
        category_ids = self._unique_ids("categories", self._categories, attrgetter("name"))
        owners, own_ids = self._column("image_id"), self._column("id")
        order = np.argsort(image_ids, kind="stable")
        places = np.searchsorted(image_ids, owners, sorter=order)
        if len(image_ids):
            rows = order[np.minimum(places, len(image_ids) - 1)]
            kept = image_ids[rows] == owners
        else:
            rows = np.zeros_like(owners)
            kept = np.zeros(len(owners), np.bool_)
        remarks = self._dangling("picture", owners, own_ids, ~kept, drop_dangling)
        if self._task in OBJECT_TASKS:
            used = self._column("category_id")
            if not len(category_ids) and len(used):
                raise RawDataError(
                    f"`{safe(self._path)}` has no categories, and {len(used)} annotations",
                    hint="labels are the ids of categories: list these in the file",
                )
            if not drop_dangling:  # else each image drops its own
                self._dangling(
                    "category", used, own_ids, kept & ~np.isin(used, category_ids), False
                )
        remarks += self._repeated(own_ids[own_ids != _INT64.min])
        chosen = np.flatnonzero(kept)
        chosen = chosen[np.argsort(rows[chosen], kind="stable")]
        keypoints = 0
        if self._task == "keypoints":
            declared = (len(category.keypoints or ()) for category in self._categories)
            keypoints = max(self._keypoints, *declared, 0)
        return AnnotationTable(
            path=self._path,
            task=self._task,
            images=self._images,
            ids=image_ids,
            categories=dict(zip(category_ids.tolist(), self._categories, strict=True)),
            starts=self._column("starts")[chosen],
            ends=self._column("ends")[chosen],
            bounds=np.searchsorted(rows[chosen], np.arange(len(image_ids) + 1)),
            files=[self._files[at] for at in chosen.tolist()] if self._files else [],
            keypoints=keypoints,
            remarks=remarks,
        )

    def _column(self, name: str) -> Positions:
        parts = self._columns[name]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _unique_ids(
        self, section: str, entries: Iterable[Any], name_of: Callable[[Any], str]
    ) -> Positions:
        listed = list(entries)
        ids = self._int64("id", [entry.id for entry in listed])
        values, counts = np.unique(ids, return_counts=True)
        if (counts > 1).any():
            repeated = int(values[counts > 1][0])
            first, second, *_ = (name_of(listed[at]) for at in np.flatnonzero(ids == repeated))
            raise RawDataError(
                f"`{safe(self._path)}` has the id {repeated} twice in `{section}`: "
                f"`{safe(first)}` and `{safe(second)}`",
                hint="annotations refer to it by that id, so ids have to be unique: fix the file",
            )
        return ids

    def _dangling(
        self,
        what: str,
        targets: Positions,
        own_ids: Positions,
        lost: npt.NDArray[np.bool_],
        drop: bool,
    ) -> list[Remark]:
        """Refuse or remark the annotations in `lost`, whose targets are not listed."""
        count = int(lost.sum())
        if not count:
            return []
        target = targets[lost][0]
        named = "one "
        if len(own_ids) and own_ids[lost][0] != _INT64.min:
            named = f"the annotation {own_ids[lost][0]} "
        refer = "annotation refers" if count == 1 else "annotations refer"
        detail = (
            f"{count} {refer} to a {what} that is not listed: {named}to the {what} "
            f"{'none' if target == _INT64.min else target}"
        )
        if not drop:
            raise RawDataError(
                f"`{safe(self._path)}`: {detail}",
                hint="fix the file, or leave them out: --option dangling=drop",
            )
        remarks = [Remark("", self._path, "SRC025", detail, count)]
        if self._task in OBJECT_TASKS:
            remarks.append(Remark("", self._path, "SRC047", detail, count))
        return remarks

    def _repeated(self, own_ids: Positions) -> list[Remark]:
        values, counts = np.unique(own_ids, return_counts=True)
        repeated = counts > 1
        if not repeated.any():
            return []
        detail = (
            f"annotations have an id that another one has, {values[repeated][0]} for one; all stay"
        )
        times = int((counts[repeated] - 1).sum())
        return [Remark("", self._path, "SRC026", detail, times)]


def read_annotation_table(
    raw: Storage, path: str, task: str, *, drop_dangling: bool
) -> AnnotationTable:
    """Read a file of annotations, once and in bounded memory."""
    builder = _Builder(path, task)
    scan = ListScan(raw, path, _SECTIONS - {"annotations"} if task == "images" else _SECTIONS)
    for batch in scan:
        builder.add(batch)
    for section in sorted(_SECTIONS & scan.members.keys()):
        if scan.members[section] not in ([], None):
            raise RawDataError(
                f"`{safe(path)}` is not a COCO dataset: `{section}` is not a list",
                hint="a dataset in COCO's format has lists of `images`, `annotations`, "
                "`categories`",
            )
    if scan.members.get("images") is None:
        found = ", ".join(f"`{safe(name, limit=40)}`" for name in list(scan.members)[:6])
        raise RawDataError(
            f"`{safe(path)}` has no `images`: found {found or 'nothing'}",
            hint="a dataset in COCO's format lists its images",
        )
    return builder.table(drop_dangling=drop_dangling)
