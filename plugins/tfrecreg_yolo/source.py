"""The source `yolo`: each image, with the rows of its label file, becomes one example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from math import isfinite
from typing import Any, ClassVar, NamedTuple

from tfrecreg.api import (
    MAX_IMAGE_BYTES,
    BadAnnotation,
    Boxes,
    Example,
    ImageError,
    ImageView,
    Item,
    Keypoints,
    ObjectLabel,
    Polygons,
    RawDataError,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    Source,
    Storage,
    UsageError,
    Written,
    box_around,
    class_summary,
    image_features,
    image_size,
    object_schema,
    paths_remark,
    safe,
    truncation_text,
)
from tfrecreg_yolo.dataset import YoloDataset, YoloOptions, YoloTask, label_paths

_MAX_LABEL_BYTES = 1 << 24
"""Most bytes of a label file."""
_OVERHEAD = 600
"""Bytes of an example beside the image: keys, lengths, names, the checksum."""


class YoloContext(NamedTuple):
    """What all items share. Picklable and small."""

    task: YoloTask
    kpt_shape: Sequence[int]
    labels: Mapping[int, ObjectLabel]
    """By the number of the class."""


class YoloSource(Source):
    """Images with label files. An item's key is the image's path.

    The raw folder is listed once, in the parent. A worker reads the images and the label files of
    its items, and nothing else.
    """

    Options: ClassVar[type[Any]] = YoloOptions

    def __init__(self, raw: Storage, options: YoloOptions) -> None:
        self._raw = raw
        self._options = options
        self._dataset: YoloDataset | None = None
        self._context: YoloContext | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent. Workers need the context, also in a part of a build,
        # which lists nothing.
        return type(self), (self._raw, self._options), {"_context": self._shared()}

    def raw_files(self) -> Iterator[RawFile]:
        dataset = self._listed()
        files = dataset.files
        images = (image for split in dataset.splits for image in split.images)
        pairs = ((image, files.label(image)[0]) for image in images if image in files.images)
        described = dataset.file, dataset.names_file, *dataset.lists()
        seen = {*files.unusable}
        for path in chain(described, chain.from_iterable(pairs)):
            size = files.size(path)
            if size is not None and path not in seen:
                seen.add(path)
                yield RawFile(path, size, size)

    def labels(self) -> Mapping[str, Sequence[str]]:
        dataset = self._listed()
        maps = {"image/object/class/label": dataset.names}
        if dataset.kpt_names and self._shared().task == "pose":
            maps["image/object/keypoint"] = dataset.kpt_names
        return maps

    def items(self) -> Iterator[Item | Skipped | Remark]:
        dataset = self._listed()
        for split in dataset.splits:
            yield from split.remarks
            unlabeled: list[str] = []
            owners: dict[str, str] = {}
            shared: list[str] = []
            for image in split.images:
                label, rule = dataset.files.label(image)
                if label and owners.setdefault(label, image) != image:
                    shared.append(image)
                try:
                    size = self._size(image, label)
                except SkipImage as error:
                    yield Skipped(split.name, image, error.code, error.detail)
                    continue
                if not label:
                    unlabeled.append(image)
                yield Item(split.name, image, size, b"%d" % rule if label else b"")
            if shared:
                yield paths_remark(split.name, "SRC049", shared, "the label file of another image")
            if unlabeled:
                yield paths_remark(split.name, "SRC043", unlabeled, "no label file; no objects")
        yield from dataset.left_aside()

    def example(self, item: Item) -> Written | Skipped:
        context = self._shared()
        data = self._raw.read(item.key, limit=MAX_IMAGE_BYTES)
        try:
            data, header, view = ImageView.read(item.key, data, self._options)
            name = item.key.rpartition("/")[2]
            example = {
                **image_features(data, header, filename=name, source_id=item.key),
                **self._objects(item, view, context),
            }
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
        dataset = self._listed()
        found = {
            "task": self._shared().task,
            "classes": class_summary(dataset.names),
            "described by": safe(dataset.file or dataset.names_file or "options"),
        }
        for split in dataset.splits:
            origins = safe(", ".join(split.origins))
            found[f"split {safe(split.name)}"] = f"{len(split.images):,} of {origins}"
        return found

    def schema(self) -> str:
        parts = ["yolo", "objects"]
        task = self._shared().task
        if task != "detect":
            parts.append("objects_keypoints" if task == "pose" else "objects_polygons")
        return object_schema("tfrecreg_yolo", parts, self._options)

    def _listed(self) -> YoloDataset:
        if self._dataset is None:
            self._dataset = YoloDataset(self._raw, self._options)
        return self._dataset

    def _shared(self) -> YoloContext:
        if self._context is None:
            dataset = self._listed()
            labels = {
                number: ObjectLabel(number, name.encode())
                for number, name in enumerate(dataset.names)
                if name
            }
            self._context = YoloContext(self._task(dataset), dataset.kpt_shape, labels)
        return self._context

    def _task(self, dataset: YoloDataset) -> YoloTask:
        """The task that the options say, or the rows of all label files."""
        files = dataset.files
        images = [image for split in dataset.splits for image in split.images]
        labels = [label for image in images if (label := files.label(image)[0])]
        labels = [label for label in labels if label not in files.unusable]
        if not labels:
            raise RawDataError(
                f"no image has a label file: looked for `{safe(label_paths(images[0])[0])}` and so "
                "on",
                hint="label files are in a folder `labels` in place of `images`, or beside the "
                "images; name the folder above both with `--raw`",
            )
        if self._options.task == "pose" and not dataset.kpt_shape:
            raise UsageError(
                "`task=pose` needs the number of keypoints, and no `kpt_shape` says it",
                hint="--option kpt_shape=17,3 for 17 keypoints of x, y and visibility",
            )
        if self._options.task != "auto":
            return self._options.task
        if dataset.kpt_shape:
            return "pose"
        shapes: set[int] = set()
        for label in labels:
            # A file that is too large or no text skips its image, with this reason.
            with suppress(SkipImage):
                if files.texts[label] <= _MAX_LABEL_BYTES:
                    rows = rows_of(self._raw.read(label, limit=_MAX_LABEL_BYTES))
                    shapes.update(len(line.split()) - 1 for _, line in rows)
        shapes = {count for count in shapes if count >= 6 and count % 2 == 0}
        if shapes == {8}:
            raise RawDataError(
                "all rows that are no boxes have 8 coordinates: they may be polygons of four "
                "points, or oriented boxes",
                hint="--option task=segment or --option task=obb says which",
            )
        return "segment" if shapes else "detect"

    def _size(self, image: str, label: str) -> int:
        """About how many bytes the example of an image has."""
        files = self._listed().files
        size = image_size(image, files.entry(image), symlinks=files.symlinks)
        if not label:
            if self._options.unlabeled == "skip":
                raise SkipImage("SRC043", "no label file")
            return size + _OVERHEAD
        try:
            rows = image_size(label, files.entry(label), symlinks=files.symlinks)
        except SkipImage as error:
            raise SkipImage("SRC041", f"its label file `{safe(label)}`: {error.detail}") from None
        if rows > _MAX_LABEL_BYTES:
            raise SkipImage("SRC041", f"its label file has {rows:,} bytes, too many")
        return size + _OVERHEAD + rows

    def _objects(self, item: Item, view: ImageView, context: YoloContext) -> Example:
        """The features of the objects in an image's label file."""
        boxes = Boxes(context.labels, view)
        label = label_paths(item.key)[int(item.state)] if item.state else ""
        data = self._raw.read(label, limit=_MAX_LABEL_BYTES) if label else b""
        width, height = view.sizes[0]
        if context.task == "detect":
            plain = plain_rows(data, width, height)
            if plain is not None and boxes.add_usable(plain):
                return boxes.features()
        # Coordinates are shares already.
        polygons = Polygons(1, 1) if context.task in ("segment", "obb") else None
        keypoints = Keypoints(context.kpt_shape[0], 1, 1) if context.task == "pose" else None
        seen: dict[bytes, int] = {}
        for number, line in rows_of(data):
            name = f"the row {number} of `{safe(label)}`"
            try:
                category, (left, top, across, down), points = _read_row(line, context)
            except BadAnnotation as error:
                view.leave_out("SRC040", f"{name} {error}")
                continue
            first = seen.setdefault(line.strip(), number)
            if first != number:
                view.remarks.add("SRC044", f"{name} is the row {first} again")
            bbox = left * width, top * height, across * width, down * height
            if not boxes.add(name, category, bbox):
                continue
            if polygons is not None:
                usable: list[list[float]] = []
                try:
                    if not points or not all(map(isfinite, points)):
                        raise BadAnnotation("it is not finite" if points else "there is none")
                    usable, _ = polygons.usable([points])
                except BadAnnotation as error:
                    view.remarks.add("SRC028", f"the mask of {name} is left empty: {error}")
                polygons.add(usable)
            if keypoints is not None:
                keypoints.add()
                try:
                    keypoints.set(len(boxes) - 1, points)
                except BadAnnotation as error:
                    detail = f"the keypoints of {name} were left out: {error}"
                    view.remarks.add("SRC029", detail)
        found = boxes.features()
        for shapes in (polygons, keypoints):
            if shapes is not None:
                found = {**found, **shapes.features()}
        return found


def rows_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of a label file that are not empty, with their numbers from 1."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data:
        raise SkipImage("SRC041", "its label file is not plain text: write it again as UTF-8")
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        if line.strip():
            yield number, line


def plain_rows(
    data: bytes, width: int, height: int
) -> list[tuple[float, float, float, float, float]] | None:
    """The class of each row of a label file, and left, top, width and height in pixels; None where
    a row is not five numbers or may be there twice, so that rows have to be read one by one.
    """
    if b"_" in data:
        return None
    rows = []
    try:
        for line in data.splitlines():
            if words := line.split():
                category, x, y, across, down = map(float, words)
                left, top = (x - across / 2) * width, (y - down / 2) * height
                rows.append((category, left, top, across * width, down * height))
    except ValueError:
        return None
    return rows if len({*rows}) == len(rows) else None


def _read_row(line: bytes, context: YoloContext) -> tuple[int, Sequence[float], list[float]]:
    """The class of a row; its box: left, top, width, height; and x and y of each point of its
    polygon, or x, y and visibility of each keypoint. All as shares of the image's sides.
    """
    task = context.task
    try:
        # Python takes `1_0` for ten.
        category, *values = map(float, line.replace(b"_", b"?").split())
    except ValueError:
        shown = safe(line.decode("utf-8", "replace"), limit=60)
        raise BadAnnotation(f"is `{shown}`, expected numbers") from None
    if not category.is_integer() or abs(category) > 1 << 31:
        raise BadAnnotation(f"has the class {category:g}, expected a whole number")
    number, dimensions = context.kpt_shape if task == "pose" else (0, 0)
    count = len(values)
    if task != "obb" and count == 4 + number * dimensions:
        x, y, width, height, *points = values
        if dimensions == 2:
            # A point at the origin or left or above of it is none.
            pairs = zip(points[::2], points[1::2], strict=True)
            points = [each for x, y in pairs for each in (x, y, 0.0 if x <= 0 and y <= 0 else 2.0)]
        return int(category), (x - width / 2, y - height / 2, width, height), points
    is_polygon = count >= 6 and count % 2 == 0 and task != "pose"
    if is_polygon and (task != "obb" or count == 8):
        return int(category), box_around([values]), values
    raise BadAnnotation(f"has {count + 1} numbers, which is no row of `task={task}`")
