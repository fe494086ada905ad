"""The source `coco`: each image, with its annotations in COCO's JSON, becomes one example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any, ClassVar

import msgspec

from tfrecreg.api import (
    MAX_IMAGE_BYTES,
    Example,
    Feature,
    ImageError,
    ImageRemarks,
    ImageView,
    Item,
    RawFile,
    Remark,
    SkipImage,
    Skipped,
    Source,
    Storage,
    Written,
    bytes_feature,
    image_features,
    object_schema,
    safe,
    truncation_text,
)
from tfrecreg_coco.annotation_files import Chosen, choose_files, find_annotation_files
from tfrecreg_coco.annotations import Annotation, AnnotationReader
from tfrecreg_coco.coco_options import OBJECT_TASKS, CocoOptions
from tfrecreg_coco.dataset import CocoDataset, ItemState, WorkerContext
from tfrecreg_coco.masks import require_pycocotools
from tfrecreg_coco.objects import Objects, PanopticSegments

_STATE = msgspec.msgpack.Decoder(ItemState)


class CocoSource(Source):
    """Images with annotations in COCO's format. An item's key is the image's path.

    The files of annotations are read once, in the parent. An item carries the offsets of its
    annotations in these files; a worker reads the annotations, the image, and nothing else.
    """

    Options: ClassVar[type[Any]] = CocoOptions

    def __init__(self, raw: Storage, options: CocoOptions) -> None:
        self._raw = raw
        self._options = options
        self._chosen: list[Chosen] | None = None
        self._unread: dict[str, str] = {}
        self._dataset: CocoDataset | None = None
        self._context: WorkerContext | None = None
        self._reader: AnnotationReader | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent, and open files where they are. Workers need the context,
        # also in a part of a build, which lists nothing.
        context = self._context or self._loaded().context
        return type(self), (self._raw, self._options), {"_context": context}

    def raw_files(self) -> Iterator[RawFile]:
        yield from self._loaded().raw_files()

    def labels(self) -> Mapping[str, Sequence[str]]:
        dataset = self._loaded()
        maps: dict[str, Sequence[str]] = {}
        for prefix, labels in (
            ("image/object/class", dataset.context.objects),
            ("image/panoptic/segment/class", dataset.context.segments),
        ):
            if labels is None:
                continue
            by_label = {each.label: each.name.decode("utf-8") for each in labels.values()}
            # A label without a category has the empty name.
            maps[f"{prefix}/label"] = [
                by_label.get(label, "") for label in range(max(by_label, default=-1) + 1)
            ]
            if self._options.categories == "contiguous":
                maps[f"{prefix}/id"] = [str(number) for number in labels]
        names = dataset.keypoint_names()
        if names:
            maps["image/object/keypoint"] = names
        return maps

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._loaded().items()
        for path, reason in self._unread.items():
            yield Remark(self._choice()[0].split, path, "SRC035", reason)

    def example(self, item: Item) -> Written | Skipped:
        context = self._context or self._loaded().context
        if self._reader is None:
            self._reader = AnnotationReader(self._raw, context.paths)
        state = _STATE.decode(item.state)
        data = self._raw.read(item.key, limit=MAX_IMAGE_BYTES)
        try:
            data, header, view = ImageView.read(
                item.key, data, self._options, width=state.width, height=state.height
            )
            identity = str(state.image_id)
            example = {
                **image_features(data, header, filename=state.file_name, source_id=identity),
                **self._annotated(state, view, context, self._reader),
            }
        except (ImageError, SkipImage) as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        if detail := truncation_text(data, header):
            view.remarks.add("SRC014", detail)
        return view.written(item, example)

    def raw_path(self, split: str, key: str) -> str | None:  # noqa: ARG002 - keys are paths
        return None if self._options.exif == "apply" else key

    def codecs(self) -> Mapping[str, str]:
        drawn = self._options.masks in ("rle", "png")
        found = {"pycocotools": metadata.version("pycocotools")} if drawn else {}
        return {**found, **self._options.codecs()}

    def describe(self) -> Mapping[str, str]:
        dataset = self._loaded()
        found = {"tasks": ", ".join(dict.fromkeys(dataset.context.tasks))}
        for split, _, files in self._choice():
            parts = [f"{task} of {safe(path)}" for task, path in files.items()]
            parts.append(f"images in {safe(dataset.folders[split] or '.')}")
            found[f"split {split}"] = "; ".join(parts)
        return found

    def schema(self) -> str:
        tasks = {task for each in self._choice() for task in each.files}
        parts = ["coco"]
        if tasks & set(OBJECT_TASKS):
            parts.append("objects")
            if self._options.masks != "none":
                form = "objects" if self._options.masks == "polygons" else "coco"
                parts.append(f"{form}_{self._options.masks}")
        if "keypoints" in tasks:
            parts.append("objects_keypoints")
        parts += [f"coco_{task}" for task in ("captions", "panoptic") if task in tasks]
        return object_schema("tfrecreg_coco", parts, self._options)

    def _choice(self) -> list[Chosen]:
        if self._chosen is None:
            if self._options.masks in ("rle", "png"):
                require_pycocotools()
            self._chosen = choose_files(
                find_annotation_files(self._raw, self._options, self._unread), self._options
            )
        return self._chosen

    def _loaded(self) -> CocoDataset:
        if self._dataset is None:
            self._dataset = CocoDataset(self._raw, self._options, self._choice())
            self._context = self._dataset.context
        return self._dataset

    def _annotated(
        self, state: ItemState, view: ImageView, context: WorkerContext, reader: AnnotationReader
    ) -> Example:
        """The features that come from an image's annotations."""
        by_task: dict[str, list[Annotation]] = {}
        for file, spans in state.spans:
            found = reader.read(file, spans, state.image_id)
            by_task.setdefault(context.tasks[file], []).extend(found)
        features: dict[str, Feature] = {}
        if context.objects is not None:
            keypoints = context.keypoints if "keypoints" in context.tasks else None
            objects = Objects(context.objects, view, self._options.masks, keypoints)
            for task in OBJECT_TASKS:
                objects.add(by_task.get(task, ()), task)
            features.update(objects.features())
        if "captions" in context.tasks:
            captions = _captions(by_task.get("captions", ()), view.remarks)
            features["image/caption"] = bytes_feature(captions)
        if context.segments is not None:
            segments = PanopticSegments(context.segments, view)
            segments.add(by_task.get("panoptic", ()))
            if state.segments:
                segments.add_png(self._raw.read(state.segments, limit=MAX_IMAGE_BYTES))
            features.update(segments.features())
        return features


def _captions(annotations: Sequence[Annotation], remarks: ImageRemarks) -> list[bytes]:
    captions = []
    for each in annotations:
        try:
            if each.caption is None:
                raise ValueError
            captions.append(each.caption.encode("utf-8"))
        except ValueError:
            remarks.add("SRC032", f"the caption {each.id} is not UTF-8 text, and was left out")
    return captions
