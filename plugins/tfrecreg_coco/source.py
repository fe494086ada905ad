"""The source `coco`: pictures and what COCO's JSON says of them become one example a picture."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from itertools import chain
from typing import Any, ClassVar

from tfrecreg.api import (
    Example,
    Feature,
    Item,
    PictureError,
    PictureHeader,
    RawFile,
    Remark,
    Skipped,
    Source,
    Storage,
    Written,
    bytes_feature,
    int64_feature,
    read_header,
    safe,
)
from tfrecreg_coco.annotations import Annotation, AnnotationReader
from tfrecreg_coco.contract import compose
from tfrecreg_coco.dataset import Dataset
from tfrecreg_coco.keypoints import Keypoints
from tfrecreg_coco.layout import Chosen, choose, find_files
from tfrecreg_coco.masks import BadMask, Masks, require_pycocotools
from tfrecreg_coco.objects import Boxes, Frame, Objects, SkipPicture
from tfrecreg_coco.options import OBJECTS, CocoOptions
from tfrecreg_coco.remarks import Notes
from tfrecreg_coco.segments import Segments
from tfrecreg_coco.state import Common, State, unpack

__all__ = ["CocoSource"]

_MAX_BYTES = 1 << 30


class CocoSource(Source):
    """Pictures with annotations of COCO's form. An item's key is the picture's path.

    The files of annotations are read once, in the parent. An item carries where in the files its
    annotations stand, and a worker reads these, the picture, and nothing else.
    """

    Options: ClassVar[type[Any]] = CocoOptions

    def __init__(self, raw: Storage, options: CocoOptions) -> None:
        self._raw = raw
        self._options = options
        self._chosen: list[Chosen] | None = None
        self._dataset: Dataset | None = None
        self._common: Common | None = None
        self._reader: AnnotationReader | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent, and open files where they are.
        return _restored, (type(self), self._raw, self._options, self._common)

    def raw_files(self) -> Iterator[RawFile]:
        yield from self._loaded().raw_files()

    def labels(self) -> Mapping[str, Sequence[str]]:
        loaded = self._loaded()
        maps: dict[str, Sequence[str]] = {}
        for prefix, classes in (
            ("image/object/class", loaded.common.objects),
            ("image/panoptic/segment/class", loaded.common.segments),
        ):
            if classes is not None:
                maps[f"{prefix}/label"] = classes.label_map()
                if self._options.categories == "contiguous":
                    maps[f"{prefix}/id"] = classes.ids()
        if loaded.keypoint_names:
            maps["image/object/keypoint"] = loaded.keypoint_names
        return maps

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._loaded().items()

    def example(self, item: Item) -> Written | Skipped:
        common = self._common
        if common is None:
            common = self._loaded().common
        if self._reader is None:
            self._reader = AnnotationReader(self._raw, common.paths)
        state = unpack(item.state)
        data = self._raw.read(item.key, limit=_MAX_BYTES)
        notes = Notes()
        try:
            header = read_header(data)
            example = _picture(state, data, header)
            example.update(self._annotated(item.key, state, header, common, notes))
        except PictureError as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        except SkipPicture as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        return Written(example, notes.remarks(item.split, item.key))

    def raw_path(self, split: str, key: str) -> str:  # noqa: ARG002 - keys are paths
        return key

    def codecs(self) -> Mapping[str, str]:
        drawn = self._options.masks in ("rle", "png")
        return {"pycocotools": metadata.version("pycocotools")} if drawn else {}

    def describe(self) -> Mapping[str, str]:
        folders = self._loaded().folders
        found = {
            f"split {each.split}": "; ".join(
                (
                    *(f"{task} of {safe(path)}" for task, path in each.files.items()),
                    f"pictures in {safe(folders[each.split] or '.')}",
                )
            )
            for each in self._choice()
        }
        return {"tasks": ", ".join(dict.fromkeys(self._loaded().common.tasks)), **found}

    def schema(self) -> str:
        tasks = {task for each in self._choice() for task in each.files}
        return compose(tasks, self._options)

    def _choice(self) -> list[Chosen]:
        if self._chosen is None:
            if self._options.masks in ("rle", "png"):
                require_pycocotools()
            self._chosen = choose(find_files(self._raw, self._options), self._options)
        return self._chosen

    def _loaded(self) -> Dataset:
        if self._dataset is None:
            self._dataset = Dataset(self._raw, self._options, self._choice())
            self._common = self._dataset.common
        return self._dataset

    def _annotated(
        self, path: str, state: State, header: PictureHeader, common: Common, notes: Notes
    ) -> Example:
        """The features of all that is said of a picture.

        Raises:
            SkipPicture: of that, something stands in the way of an example.
        """
        width, height = state.width or header.width, state.height or header.height
        if (width, height) != (header.width, header.height):
            found = f"{header.width} × {header.height}"
            notes.add("SRC027", f"{found} pixels, and its annotations say {width} × {height}")
        by_task: dict[str, list[list[Annotation]]] = {}
        for slices in state.slices:
            read = self._reader.read(slices, state.image_id) if self._reader else []
            by_task.setdefault(common.tasks[slices.table], []).append(read)
        frame = Frame(path, width, height)
        features: dict[str, Feature] = {}
        if common.objects is not None:
            try:
                masks = Masks(self._options.masks, (width, height), (header.width, header.height))
            except BadMask as error:
                raise SkipPicture("SRC028", str(error)) from None
            boxes = Boxes(common.objects, frame, self._options, notes)
            points = None
            if "keypoints" in common.tasks:
                points = Keypoints(common.keypoints, width, height)
            objects = Objects(boxes, masks, points, notes)
            for task in OBJECTS:
                for annotations in by_task.get(task, ()):
                    objects.add(annotations, task)
            features.update(objects.features())
        if "captions" in common.tasks:
            said = chain.from_iterable(by_task.get("captions", ()))
            features["image/caption"] = bytes_feature(_captions(said, notes))
        if common.segments is not None:
            segments = Segments(Boxes(common.segments, frame, self._options, notes))
            for annotations in by_task.get("panoptic", ()):
                segments.add(annotations)
            if state.segments:
                data = self._raw.read(state.segments, limit=_MAX_BYTES)
                segments.add_png(data, (width, height), (header.width, header.height))
            features.update(segments.features())
        return features


def _restored(
    kind: type[CocoSource], raw: Storage, options: CocoOptions, common: Common | None
) -> CocoSource:
    source = kind(raw, options)
    source._common = common
    return source


def _picture(state: State, data: bytes, header: PictureHeader) -> dict[str, Feature]:
    return {
        "image/encoded": bytes_feature(data),
        "image/format": bytes_feature(header.format),
        "image/height": int64_feature(header.height),
        "image/width": int64_feature(header.width),
        "image/filename": bytes_feature(state.file_name),
        "image/source_id": bytes_feature(str(state.image_id)),
        "image/key/sha256": bytes_feature(hashlib.sha256(data).hexdigest()),
    }


def _captions(found: Iterable[Annotation], notes: Notes) -> Iterator[bytes]:
    for each in found:
        try:
            if each.caption is None:
                raise ValueError
            yield each.caption.encode("utf-8")
        except ValueError:
            notes.add("SRC032", f"the caption {each.id} is no text in UTF-8, and was left out")
