"""The source `yolo`: each image, with the rows of its label file, becomes one example."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from tfrecreg.api import (
    MAX_IMAGE_BYTES,
    BadAnnotation,
    Boxes,
    Example,
    ImageError,
    ImageView,
    Item,
    Keypoints,
    Polygons,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    Source,
    Storage,
    Written,
    class_summary,
    image_features,
    object_schema,
    safe,
    truncation_text,
)
from tfrecreg_yolo.dataset import YoloContext, YoloDataset
from tfrecreg_yolo.raw_listing import label_paths
from tfrecreg_yolo.rows import MAX_LABEL_BYTES, LabelRowReader, YoloRow, plain_rows, rows_of
from tfrecreg_yolo.yolo_options import YoloOptions


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
        self._reader: LabelRowReader | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent. Workers need the context, also in a part of a build,
        # which lists nothing.
        context = self._context or self._loaded().context
        return type(self), (self._raw, self._options), {"_context": context}

    def raw_files(self) -> Iterator[RawFile]:
        yield from self._loaded().raw_files()

    def labels(self) -> Mapping[str, Sequence[str]]:
        found = self._loaded().description
        maps = {"image/object/class/label": found.names}
        if found.kpt_names and self._loaded().context.task == "pose":
            maps["image/object/keypoint"] = found.kpt_names
        return maps

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._loaded().items()

    def example(self, item: Item) -> Written | Skipped:
        context = self._context or self._loaded().context
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
        dataset = self._loaded()
        description = dataset.description
        found = {
            "task": dataset.context.task,
            "classes": class_summary(description.names),
            "described by": safe(description.file or description.names_file or "options"),
        }
        for split in dataset.splits:
            found[f"split {safe(split.name)}"] = (
                f"{len(split.images):,} of {safe(', '.join(split.origins))}"
            )
        return found

    def schema(self) -> str:
        parts = ["yolo", "objects"]
        task = self._loaded().context.task
        if task in ("segment", "obb"):
            parts.append("objects_polygons")
        if task == "pose":
            parts.append("objects_keypoints")
        return object_schema("tfrecreg_yolo", parts, self._options)

    def _loaded(self) -> YoloDataset:
        if self._dataset is None:
            self._dataset = YoloDataset(self._raw, self._options)
            self._context = self._dataset.context
        return self._dataset

    def _objects(self, item: Item, view: ImageView, context: YoloContext) -> Example:
        """The features of the objects in an image's label file."""
        boxes = Boxes(context.labels, view)
        label = label_paths(item.key)[int(item.state)] if item.state else ""
        data = self._raw.read(label, limit=MAX_LABEL_BYTES) if label else b""
        width, height = view.sizes[0]
        if context.task == "detect":
            plain = plain_rows(data, width, height)
            if plain is not None and boxes.add_usable(plain):
                return boxes.features()
        # Coordinates are shares already.
        polygons = Polygons(1, 1) if context.task in ("segment", "obb") else None
        keypoints = Keypoints(context.kpt_shape[0], 1, 1) if context.task == "pose" else None
        shown = safe(label)
        for number, row in self._rows(data, shown, view, context):
            name = f"the row {number} of `{shown}`"
            left, top, across, down = row.box
            bbox = left * width, top * height, across * width, down * height
            if not boxes.add(name, row.category, bbox):
                continue
            if polygons is not None:
                _add_polygon(polygons, row, name, view)
            if keypoints is not None:
                keypoints.add()
                try:
                    keypoints.set(len(boxes) - 1, row.keypoints)
                except BadAnnotation as error:
                    detail = f"the keypoints of {name} were left out: {error}"
                    view.remarks.add("SRC029", detail)
        found = boxes.features()
        for shapes in (polygons, keypoints):
            if shapes is not None:
                found = {**found, **shapes.features()}
        return found

    def _rows(
        self, data: bytes, shown: str, view: ImageView, context: YoloContext
    ) -> Iterator[tuple[int, YoloRow]]:
        """The rows that can be read, by their lines from 1, and remarks on the others."""
        if self._reader is None:
            self._reader = LabelRowReader(context.task, context.kpt_shape)
        seen: dict[bytes, int] = {}
        for number, line in rows_of(data):
            try:
                row = self._reader.read(line)
            except BadAnnotation as error:
                view.leave_out("SRC040", f"the row {number} of `{shown}` {error}")
                continue
            first = seen.setdefault(line.strip(), number)
            if first != number:
                detail = f"the row {number} of `{shown}` is the row {first} again"
                view.remarks.add("SRC044", detail)
            yield number, row


def _add_polygon(polygons: Polygons, row: YoloRow, name: str, view: ImageView) -> None:
    try:
        if not row.polygon:
            raise BadAnnotation("there is none")
        if not math.isfinite(row.box[0]):
            raise BadAnnotation("it is not finite")
        usable, _ = polygons.usable([row.polygon])
        polygons.add(usable)
    except BadAnnotation as error:
        polygons.add([])
        view.remarks.add("SRC028", f"the mask of {name} is left empty: {error}")
