"""The source `coco`: each image, with its annotations in COCO's JSON, becomes one example.

Run lengths (RLE) describe a mask of h × w pixels, column by column from the top left: the number of
zeros, then the number of ones, and so on. COCO's MIT-licensed `maskApi.c` defines their text form,
which has a number per run. The first three are lengths; each further number is the difference from
the run two positions earlier. A number has base-32 digits, the lowest first. A digit d is
stored as the character 48 + d, plus 32 if more digits follow. A number is negative if its last
digit contains 16 (that is, if `digit & 16` is not 0).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import metadata
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from tfrecreg.api import (
    MAX_IMAGE_BYTES,
    BadAnnotation,
    Boxes,
    Example,
    ImageNotes,
    ImageView,
    Item,
    Keypoints,
    ObjectSource,
    Polygons,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    box_around,
    bytes_feature,
    int64_feature,
    object_schema,
    png_of,
    safe,
)
from tfrecreg_coco.dataset import (
    NO_SEGMENTATION,
    OBJECT_TASKS,
    Annotation,
    CategoryLabels,
    CocoDataset,
    CocoOptions,
    Found,
    MaskForm,
    require_pycocotools,
)

_OVERHEAD = 600
"""Bytes of an example without its image, for keys, lengths, names and the checksum."""
_OBJECT = 60
"""Bytes of an object besides its mask and keypoints."""
_MASK_SHARE = {"none": 0.0, "polygons": 0.6, "rle": 0.4, "png": 1.0}
"""Approximate size of a mask, relative to the size of its annotation in JSON."""
_MAX_PIXELS = 1 << 26
"""Maximum number of pixels of an image whose masks are drawn."""
_MAX_DIGITS = 7
"""Maximum number of base-32 digits of one run."""


class ItemState(msgspec.Struct, array_like=True):
    """The state of an item, as JSON."""

    image_id: int
    file_name: str
    """File name as in the annotations."""
    width: int
    """Size in pixels from the annotations; 0 if they do not state it."""
    height: int
    segments: str
    """Path of the PNG of its panoptic segments; empty without one."""
    annotations: dict[str, msgspec.Raw]
    """For each task, the list of its annotations."""


_STATE = msgspec.json.Decoder(ItemState)
_ANNOTATIONS = msgspec.json.Decoder(list[Annotation])


class WorkerContext(NamedTuple):
    tasks: tuple[str, ...]
    """The task of each table."""
    objects: CategoryLabels | None
    """Labels of objects; None if no objects are read."""
    segments: CategoryLabels | None
    """Labels of panoptic segments; None if these are not read."""
    keypoints: int
    """Keypoints per object; 0 if these are not read."""


class CocoSource(ObjectSource[CocoDataset, WorkerContext]):
    """Images with annotations in COCO's format.

    An item carries its annotations. So a worker reads only the image and, for panoptic segments,
    the PNG.
    """

    Options: ClassVar[type[Any]] = CocoOptions

    def load(self) -> CocoDataset:
        return CocoDataset(self.raw, self.options)

    def context_of(self, dataset: CocoDataset) -> WorkerContext:
        return WorkerContext(
            tasks=tuple(table.task for table in dataset.tables),
            objects=dataset.labels(OBJECT_TASKS),
            segments=dataset.labels(("panoptic",)),
            keypoints=max(table.keypoints for table in dataset.tables),
        )

    def raw_files(self) -> Iterator[RawFile]:
        paths = dict.fromkeys(table.path for table in self.dataset.tables)
        for found in self.dataset.entries:
            if isinstance(found, Found):
                paths.update(dict.fromkeys(filter(None, (found.path, found.segments))))
        sizes = ((path, self.dataset.files[path].size) for path in paths)
        yield from (RawFile(path, size, size) for path, size in sizes)

    def labels(self) -> Mapping[str, Sequence[str]]:
        maps: dict[str, Sequence[str]] = {}
        for prefix, labels in (
            ("image/object/class", self.context.objects),
            ("image/panoptic/segment/class", self.context.segments),
        ):
            if labels is None:
                continue
            names = {each.label: each.name.decode() for each in labels.values()}
            # A label without a category has the empty name.
            size = max(names, default=-1) + 1
            maps[f"{prefix}/label"] = [names.get(label, "") for label in range(size)]
            if self.options.categories == "contiguous":
                maps[f"{prefix}/id"] = [str(int(number)) for number in labels]
        keypoints = {
            tuple(category.keypoints)
            for table in self.dataset.tables
            if table.task == "keypoints"
            for category in table.categories.values()
            if category.keypoints
        }
        if len(keypoints) == 1:  # all categories with names agree
            maps["image/object/keypoint"] = list(keypoints.pop())
        return maps

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self.dataset.remarks
        for found in self.dataset.entries:
            yield found if isinstance(found, Skipped) else self._item(found)

    def _item(self, found: Found) -> Item:
        files, image, texts = self.dataset.files, found.image, {}
        size = _OVERHEAD + sum(files[path].size for path in (found.path, found.segments) if path)
        for table in found.tables:
            annotations = table.annotations.get(image.id)
            if annotations:
                text = msgspec.json.encode(annotations)
                texts[table.task] = msgspec.Raw(text)
                if table.task in OBJECT_TASKS:
                    size += len(annotations) * (_OBJECT + 12 * self.context.keypoints)
                    size += int(len(text) * _MASK_SHARE[self.options.masks])
                else:
                    size += len(text)
        sides = _pixels(image.width), _pixels(image.height)
        state = ItemState(int(image.id), image.file_name, *sides, found.segments, texts)
        return Item(found.split, found.path, size, msgspec.json.encode(state))

    def notes_on(self, item: Item) -> ImageNotes:
        state = _STATE.decode(item.state)
        return ImageNotes(
            state.file_name, str(state.image_id), state.width, state.height, annotations=state
        )

    def codecs(self) -> Mapping[str, str]:
        drawn = self.options.masks in ("rle", "png")
        found = {"pycocotools": metadata.version("pycocotools")} if drawn else {}
        return {**found, **super().codecs()}

    def describe(self) -> Mapping[str, str]:
        found = {"tasks": ", ".join(dict.fromkeys(self.context.tasks))}
        for split in self.dataset.splits:
            parts = [f"{task} of {safe(file.path)}" for task, file in split.files.items()]
            parts.append(f"images in {safe(split.image_folder or '.')}")
            found[f"split {split.name}"] = "; ".join(parts)
        return found

    def schema(self) -> str:
        tasks, masks = self.context.tasks, self.options.masks
        parts = ["coco"]
        if not set(OBJECT_TASKS).isdisjoint(tasks):
            parts.append("objects")
            if masks != "none":
                parts.append("objects_polygons" if masks == "polygons" else f"coco_{masks}")
        if "keypoints" in tasks:
            parts.append("objects_keypoints")
        parts += [f"coco_{task}" for task in ("captions", "panoptic") if task in tasks]
        return object_schema("tfrecreg_coco", parts, self.options)

    def objects(self, item: Item, notes: ImageNotes, view: ImageView) -> Example:  # noqa: ARG002
        context, state = self.context, notes.annotations
        found = {task: _ANNOTATIONS.decode(text) for task, text in state.annotations.items()}
        features: Example = {}
        if context.objects is not None:
            features = _objects(found, context, view, self.options.masks)
        if "captions" in context.tasks:
            captions = []
            for each in found.get("captions", ()):
                if each.caption is None:
                    detail = f"the caption {each.id} has no text, and was left out"
                    view.remarks.add("SRC115", detail, "value")
                else:
                    captions.append(each.caption)
            features = {**features, "image/caption": bytes_feature(captions)}
        if context.segments is not None:
            png = self.raw.read(state.segments, limit=MAX_IMAGE_BYTES) if state.segments else None
            segments = _panoptic(found.get("panoptic", ()), png, context.segments, view)
            features = {**features, **segments}
        return features


def _pixels(side: int | float | None) -> int:
    """A side of an image, as the annotations state it; 0 if the value is unusable."""
    return int(side) if side is not None and 0 < side < 2**31 else 0


def _objects(
    annotations: Mapping[str, Sequence[Annotation]],
    context: WorkerContext,
    view: ImageView,
    form: MaskForm,
) -> Example:
    """The features of the objects of one image.

    An annotation of a keypoint file adds its keypoints to the object with the same id and category.
    Without such an object, the annotation becomes a separate object.
    """
    boxes = Boxes(context.objects or {}, view)
    masks = Masks(form, *view.sizes)
    points = Keypoints(context.keypoints, *view.sizes[0])
    has_points = "keypoints" in context.tasks
    index_of: dict[tuple[Any, Any], int] = {}
    """Maps the id and the category of an annotation to the index of its object."""
    for task in OBJECT_TASKS:
        # An object takes the keypoints of one annotation; a second with its id is another object.
        without_keypoints = dict(index_of) if task == "keypoints" else {}
        for each in annotations.get(task, ()):
            identity = each.id, each.category_id
            index = None if each.id is None else without_keypoints.pop(identity, None)
            if index is None:
                around = partial(masks.box_around, each.segmentation)
                box = each.bbox, each.area, each.crowd
                if not boxes.add(each.name, each.category_id, *box, around):
                    continue
                if problem := masks.add(each.segmentation):
                    detail = f"the mask of {each.name} {problem}"
                    view.remarks.add("SRC115", detail, "mask")
                if not has_points:
                    continue
                points.add()
                index = len(boxes) - 1
                index_of.setdefault(identity, index)
            if task == "keypoints" and each.keypoints is not None:
                try:
                    points.set(index, each.keypoints)
                except BadAnnotation as error:
                    detail = f"the keypoints of {each.name} were left out: {error}"
                    view.remarks.add("SRC115", detail, "keypoints")
    found = {**boxes.features(), **masks.features()}
    return {**found, **points.features()} if has_points else found


def _panoptic(
    annotations: Sequence[Annotation], png: bytes | None, labels: CategoryLabels, view: ImageView
) -> Example:
    """The features of the panoptic segments of one image, with the PNG of their pixels. The id of
    a pixel's segment is red + 256 × green + 256² × blue.
    """
    boxes = Boxes(labels, view)
    ids: list[int] = []
    for annotation in annotations:
        for each in annotation.segments_info or ():
            crowd = int(bool(each.iscrowd))
            if boxes.add(f"the segment {each.id}", each.category_id, each.bbox, each.area, crowd):
                ids.append(each.id)
    if png is not None and (problem := view.png_problem(png)):
        raise SkipImage("SRC113", f"the PNG of its segments: {problem}")
    prefix = "image/panoptic"
    return {
        **boxes.features(f"{prefix}/segment"),
        f"{prefix}/segment/id": int64_feature(ids),
        f"{prefix}/segment/is_thing": int64_feature(boxes.things()),
        f"{prefix}/encoded": bytes_feature([] if png is None else [png]),
    }


_Polygons = list[list[float]]


class _Rle(msgspec.Struct):
    """Run lengths in the form that annotations use."""

    size: tuple[int, int]
    counts: str | list[int]


_SEGMENTATION: msgspec.json.Decoder[_Polygons | _Rle] = msgspec.json.Decoder(_Polygons | _Rle)


class Masks:
    """The masks of the objects of one image. `sizes` are pairs of width and height: first the size
    in the annotations, then the size of the stored image. Masks stored as run lengths may have
    either size.
    """

    def __init__(self, form: MaskForm, *sizes: tuple[int, int]) -> None:
        width, height = sizes[0]
        wide, high = max(sizes, key=math.prod)
        if form in ("rle", "png") and wide * high > _MAX_PIXELS:
            raise SkipImage("SRC113", f"masks of {wide} × {high} pixels are too large to draw")
        self._form = form
        self._sizes = sizes
        self._masks: list[bytes] = []
        self._mask_sizes: list[int] = []
        self._polygons = Polygons(width, height)

    def add(self, segmentation: msgspec.Raw) -> str:
        """Add the mask of an object, from JSON; return the problem, or an empty text."""
        if self._form == "none":
            return ""
        width, height = self._sizes[0]
        runs = [width * height]  # one run of zeros: an empty mask
        polygons: _Polygons = []
        problem = ""
        try:
            found = _decoded(segmentation)
            if not isinstance(found, _Rle):
                polygons, problem = self._polygons.usable(found)
                problem = problem and f"lacks a part: {problem}"
            elif self._form == "polygons":
                raise BadAnnotation("it consists of run lengths, which cannot become polygons")
            else:
                runs = self._runs(found)
                height, width = found.size
        except BadAnnotation as error:
            problem = f"is left empty: {error}"
        if self._form == "polygons":
            self._polygons.add(polygons)
        else:
            self._masks.append(self._drawn(runs, polygons, width, height))
            self._mask_sizes += [height, width]
        return problem

    def box_around(self, segmentation: msgspec.Raw) -> Sequence[float]:
        """Left, top, width and height of the box around a segmentation; empty if no box exists."""
        try:
            found = _decoded(segmentation)
            if not isinstance(found, _Rle):
                return box_around(self._polygons.usable(found)[0])
            runs, height = self._runs(found), found.size[0]
        except BadAnnotation:
            return ()
        ends = np.cumsum(np.array(runs, np.int64))
        filled = np.diff(ends, prepend=0)[1::2] > 0
        first, last = (ends - runs)[1::2][filled], ends[1::2][filled] - 1
        if not len(first):
            return ()
        whole = (first // height != last // height).any()  # a run continues in the next column
        top = 0 if whole else int((first % height).min())
        bottom = height if whole else int((last % height).max()) + 1
        left, right = int(first[0]) // height, int(last[-1]) // height + 1
        across, down = (a / b for a, b in zip(self._sizes[0], found.size[::-1], strict=True))
        return left * across, top * down, (right - left) * across, (bottom - top) * down

    def features(self) -> Example:
        """The features of the masks in the chosen form; empty for the form `none`."""
        if self._form == "none":
            return {}
        if self._form == "polygons":
            return self._polygons.features()
        if self._form == "png":
            return {"image/object/mask": bytes_feature(self._masks)}
        return {
            "image/object/rle/counts": bytes_feature(self._masks),
            "image/object/rle/size": int64_feature(self._mask_sizes),
        }

    def _runs(self, rle: _Rle) -> list[int]:
        """The run lengths. They are checked against the image, because C code allocates the size
        that they state.
        """
        height, width = rle.size
        if (width, height) not in self._sizes:
            expected = " or ".join(f"{wide} × {high}" for wide, high in dict.fromkeys(self._sizes))
            raise BadAnnotation(f"it is for {width} × {height} pixels, expected {expected}")
        runs = decode_rle(rle.counts.encode()) if isinstance(rle.counts, str) else rle.counts
        if min(runs, default=0) < 0 or sum(runs) != width * height:
            raise BadAnnotation(f"its runs have {sum(runs)} pixels, expected {width * height}")
        return runs

    def _drawn(self, runs: list[int], polygons: _Polygons, width: int, height: int) -> bytes:
        """A mask in the chosen form, from the polygons or, without polygons, from the runs."""
        coder = require_pycocotools()
        if polygons:
            mask = coder.merge(coder.frPyObjects(polygons, height, width))
        else:
            mask = coder.frPyObjects({"size": [height, width], "counts": runs}, height, width)
        counts: bytes = mask["counts"]
        if self._form == "rle":
            return counts
        # Not pycocotools' decode: with NumPy 2 it warns, which is an error under `python -W error`.
        lengths = decode_rle(counts)
        bits = np.repeat((np.arange(len(lengths)) % 2).astype(np.uint8), lengths)
        return encode_mask(bits.reshape(width, height).T)


def _decoded(segmentation: msgspec.Raw) -> _Polygons | _Rle:
    if segmentation == NO_SEGMENTATION:
        raise BadAnnotation("the annotation has no segmentation")
    try:
        return _SEGMENTATION.decode(segmentation)
    except (ValueError, RecursionError):
        raise BadAnnotation("it is neither polygons nor run lengths") from None


def decode_rle(text: bytes) -> list[int]:
    """Decode run lengths from their text form."""
    counts: list[int] = []
    value = shift = 0
    for byte in text:
        digit = byte - 48
        if not 0 <= digit < 64 or shift >= 5 * _MAX_DIGITS:
            raise BadAnnotation("its counts are not run lengths")
        value |= (digit & 31) << shift
        shift += 5
        if not digit & 32:
            if digit & 16:
                value -= 1 << shift
            if len(counts) > 2:
                value += counts[-2]
            counts.append(value)
            value = shift = 0
    if shift:
        raise BadAnnotation("its counts end inside a number")
    return counts


def encode_mask(mask: npt.NDArray[np.uint8]) -> bytes:
    """A PNG of a mask (u8, height × width), with one bit per pixel: nonzero becomes white. The same
    zlib gives the same bytes.
    """
    height, width = mask.shape
    rows = np.zeros((height, 1 + (width + 7) // 8), np.uint8)
    # Masks are stored by columns. Packing columns is five times as slow as transposing first.
    rows[:, 1:] = np.packbits(np.ascontiguousarray(mask), axis=1)
    return png_of(zlib.compress(rows.tobytes(), 6), width, height, depth=1)
