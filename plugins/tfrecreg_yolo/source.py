"""The source `yolo`: each image, with the rows of its label file, becomes one example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple, cast

from tfrecreg.api import (
    MAX_IMAGE_BYTES,
    BadAnnotation,
    Boxes,
    Example,
    ImageNotes,
    ImageView,
    Item,
    Keypoints,
    ObjectLabel,
    ObjectSource,
    Polygons,
    RawDataError,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    UsageError,
    box_around,
    class_summary,
    image_size,
    object_schema,
    paths_remark,
    safe,
)
from tfrecreg_yolo.dataset import YoloDataset, YoloOptions, YoloTask, label_paths

_OVERHEAD = 600
"""Bytes of an example apart from the image: keys, lengths, names and the checksum."""


class YoloContext(NamedTuple):
    task: YoloTask
    kpt_shape: Sequence[int]
    labels: Mapping[int, ObjectLabel]


class YoloSource(ObjectSource[YoloDataset, YoloContext]):
    Options: ClassVar[type[Any]] = YoloOptions

    def load(self) -> YoloDataset:
        return YoloDataset(self.raw, self.options)

    def context_of(self, dataset: YoloDataset) -> YoloContext:
        labels = {
            number: ObjectLabel(number, name.encode())
            for number, name in enumerate(dataset.names)
            if name
        }
        return YoloContext(self._task(dataset), dataset.kpt_shape, labels)

    def raw_files(self) -> Iterator[RawFile]:
        dataset = self.dataset
        paths = dict.fromkeys((dataset.file, dataset.names_file, *dataset.lists))
        for image in (image for split in dataset.splits for image in split.images):
            if image in dataset.files:
                paths.update(dict.fromkeys((image, dataset.label(image))))
        for found in map(dataset.files.get, paths):
            if found is not None and found.kind == "file":
                yield RawFile(found.path, found.size, found.size)

    def labels(self) -> Mapping[str, Sequence[str]]:
        dataset = self.dataset
        maps = {"image/object/class/label": dataset.names}
        if dataset.kpt_names and self.context.task == "pose":
            maps["image/object/keypoint"] = dataset.kpt_names
        return maps

    def items(self) -> Iterator[Item | Skipped | Remark]:
        dataset = self.dataset
        yield from dataset.remarks
        for split in dataset.splits:
            unlabeled: list[str] = []
            owners: dict[str, str] = {}
            shared: list[str] = []
            for image in split.images:
                label = dataset.label(image)
                if label and owners.setdefault(label, image) != image:
                    shared.append(image)
                try:
                    size = self._size(image, label)
                except SkipImage as error:
                    yield Skipped(split.name, image, error.code, error.detail)
                    continue
                if not label:
                    unlabeled.append(image)
                yield Item(split.name, image, size, label.encode())
            if shared:
                yield paths_remark(split.name, "SRC119", shared, "they share a label file")
            if unlabeled:
                yield paths_remark(split.name, "SRC116", unlabeled, "no label file, so no objects")

    def notes_on(self, item: Item) -> ImageNotes:
        return ImageNotes(item.key.rpartition("/")[2], item.key)

    def describe(self) -> Mapping[str, str]:
        dataset = self.dataset
        found = {
            "task": self.context.task,
            "classes": class_summary(dataset.names),
            "described by": safe(dataset.file or dataset.names_file or "options"),
        }
        for split in dataset.splits:
            origins = safe(", ".join(split.origins))
            found[f"split {safe(split.name)}"] = f"{len(split.images):,} of {origins}"
        return found

    def schema(self) -> str:
        parts = ["yolo", "objects"]
        task = self.context.task
        if task != "detect":
            parts.append("objects_keypoints" if task == "pose" else "objects_polygons")
        return object_schema("tfrecreg_yolo", parts, self.options)

    def _task(self, dataset: YoloDataset) -> YoloTask:
        """The task from the options, or else the task that fits the rows of all label files."""
        images = [image for split in dataset.splits for image in split.images]
        labels = [label for image in images if (label := dataset.label(image))]
        labels = [label for label in labels if dataset.files[label].kind == "file"]
        if not labels:
            raise RawDataError(
                "no image has a label file: looked for files such as "
                f"`{safe(label_paths(images[0])[0])}`",
                hint="`--raw` takes the folder above `images` and `labels`",
            )
        if self.options.task == "pose" and not dataset.kpt_shape:
            raise UsageError("`task=pose` needs the number of keypoints: `kpt_shape=17,3`")
        if self.options.task != "auto":
            return cast("YoloTask", self.options.task)
        if dataset.kpt_shape:
            return "pose"
        shapes: set[int] = set()
        for label in labels:
            rows = rows_of(self.raw.read(label, limit=MAX_IMAGE_BYTES))
            with suppress(SkipImage):  # the image is skipped later
                shapes.update(len(line.split()) - 1 for _, line in rows)
        shapes = {count for count in shapes if count >= 6 and count % 2 == 0}
        if shapes == {8}:
            raise RawDataError(
                "every row has the 4 numbers of a box or 8 coordinates; rows of 8 coordinates may "
                "be oriented boxes, or polygons with four points",
                hint="set --option task=segment or --option task=obb",
            )
        return "segment" if shapes else "detect"

    def _size(self, image: str, label: str) -> int:
        """The approximate size of an image's example, in bytes."""
        files, symlinks = self.dataset.files, self.options.symlinks
        size = _OVERHEAD + image_size(image, files.get(image), symlinks=symlinks)
        if not label:
            if self.options.unlabeled == "skip":
                raise SkipImage("SRC112", "no label file")
            return size
        try:
            return size + image_size(label, files[label], symlinks=symlinks)
        except SkipImage as error:
            raise SkipImage("SRC110", f"its label file `{safe(label)}`: {error.detail}") from None

    def objects(self, item: Item, notes: ImageNotes, view: ImageView) -> Example:  # noqa: ARG002
        context = self.context
        boxes = Boxes(context.labels, view)
        label = item.state.decode()
        data = self.raw.read(label, limit=MAX_IMAGE_BYTES) if label else b""
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
                view.leave_out(f"{name} {error}")
                continue
            first = seen.setdefault(line.strip(), number)
            if first != number:
                view.remarks.add("SRC116", f"{name} repeats the row {first}", "repeated")
            bbox = left * width, top * height, across * width, down * height
            if not boxes.add(name, category, bbox):
                continue
            if polygons is not None:
                usable: list[list[float]] = []
                try:
                    usable, _ = polygons.usable([points] if points else [])
                except BadAnnotation as error:
                    detail = f"the mask of {name} is left empty: {error}"
                    view.remarks.add("SRC115", detail, "mask")
                polygons.add(usable)
            if keypoints is not None:
                keypoints.add()
                try:
                    keypoints.set(len(boxes) - 1, points)
                except BadAnnotation as error:
                    detail = f"the keypoints of {name} were left out: {error}"
                    view.remarks.add("SRC115", detail, "keypoints")
        shapes = polygons or keypoints
        return {**boxes.features(), **(shapes.features() if shapes is not None else {})}


def rows_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The non-empty lines of a label file, with their numbers from 1.

    Raises:
        SkipImage: the file is not plain text.
    """
    if b"\0" in data:  # a crash leaves zeros, and some shells write UTF-16
        raise SkipImage("SRC110", "it is not plain text: it contains a NUL byte")
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        if line.strip():
            yield number, line


def plain_rows(
    data: bytes, width: int, height: int
) -> list[tuple[float, float, float, float, float]] | None:
    """Class and box of each row of a label file. A box consists of left, top, width and height, in
    pixels. The result is None if a row does not have five numbers, or if two rows give the same
    class and box. If the result is None, the caller reads the rows one by one.
    """
    rows = []
    if b"_" in data:  # Python reads `1_0` as 10
        return None
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
    """The class of a row, its box and its points. The box consists of left, top, width and height.
    A point of a polygon has x and y; a keypoint has x, y and visibility. All lengths and positions
    are shares of the image's sides.
    """
    task = context.task
    try:
        # Python reads `1_0` as 10, but not `1?0`.
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
            # A point does not count if neither of its coordinates is above 0.
            pairs = zip(points[::2], points[1::2], strict=True)
            points = [each for x, y in pairs for each in (x, y, 0.0 if x <= 0 and y <= 0 else 2.0)]
        return int(category), (x - width / 2, y - height / 2, width, height), points
    is_polygon = count >= 6 and count % 2 == 0 and task != "pose"
    if is_polygon and (task != "obb" or count == 8):
        return int(category), box_around([values]), values
    raise BadAnnotation(f"has {count + 1} numbers, which do not form a row of `task={task}`")
