"""The source `voc`: each image, with the objects of its XML, becomes one example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from tfrecreg.api import (
    MAX_IMAGE_BYTES,
    BadAnnotation,
    Boxes,
    Example,
    ImageError,
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
    class_summary,
    image_features,
    int64_feature,
    object_schema,
    read_header,
    safe,
    truncation_text,
)
from tfrecreg_voc.annotation import VocAnnotation, VocObject
from tfrecreg_voc.dataset import VocContext, VocDataset, VocItemState, read_annotation
from tfrecreg_voc.voc_options import VocOptions

_STATE = msgspec.msgpack.Decoder(VocItemState)


class VocSource(Source):
    """Images with an XML each. An item's key is the image's path.

    The raw folder is listed, and each XML read for the names of the classes, once, in the parent. A
    worker reads the images, the XML and the PNGs of its items, and nothing else.
    """

    Options: ClassVar[type[Any]] = VocOptions

    def __init__(self, raw: Storage, options: VocOptions) -> None:
        self._raw = raw
        self._options = options
        self._dataset: VocDataset | None = None
        self._context: VocContext | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent. Workers need the context, also in a part of a build,
        # which lists nothing.
        context = self._context or self._loaded().context
        return type(self), (self._raw, self._options), {"_context": context}

    def raw_files(self) -> Iterator[RawFile]:
        yield from self._loaded().raw_files()

    def labels(self) -> Mapping[str, Sequence[str]]:
        return {"image/object/class/label": self._loaded().classes}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._loaded().items()

    def example(self, item: Item) -> Written | Skipped:
        context = self._context or self._loaded().context
        state = _STATE.decode(item.state)
        data = self._raw.read(item.key, limit=MAX_IMAGE_BYTES)
        try:
            found = read_annotation(self._raw, state.xml) if state.xml else None
            width, height = (0, 0) if found is None else found.size
            data, header, view = ImageView.read(
                item.key, data, self._options, width=width, height=height
            )
            name = item.key.rpartition("/")[2]
            example = {
                **image_features(data, header, filename=name, source_id=item.key),
                **self._objects(found, state.xml, context, view),
            }
            for kind, path in zip(self._options.masks, state.masks, strict=True):
                example.update(self._mask(kind, path, found, view))
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
        found = {"classes": class_summary(dataset.classes), "coordinates": self._numbers()}
        for split in dataset.splits:
            origins = safe(", ".join(split.origins))
            found[f"split {safe(split.name)}"] = f"{len(split.entries):,} of {origins}"
        return found

    def notes(self) -> list[str]:
        """What the build prints first."""
        return [f"coordinates of boxes: {self._numbers()}"] if self._loaded().why else []

    def _numbers(self) -> str:
        found = self._loaded()
        other, first = ("edges", 1) if found.coordinates == "pixels" else ("pixels", 0)
        why = f" ({found.why}; else --option coordinates={other})" if found.why else ""
        return f"{found.coordinates}, counted from {first}{why}"

    def schema(self) -> str:
        parts = ["voc", "objects", "voc_objects", *(f"voc_{kind}" for kind in self._options.masks)]
        return object_schema("tfrecreg_voc", parts, self._options)

    def _loaded(self) -> VocDataset:
        if self._dataset is None:
            self._dataset = VocDataset(self._raw, self._options)
            self._context = self._dataset.context
        return self._dataset

    def _objects(
        self,
        annotation: VocAnnotation | None,
        path: str,
        context: VocContext,
        view: ImageView,
    ) -> Example:
        """The features of the objects in an image's XML."""
        boxes = Boxes(context.labels, view)
        kept: list[VocObject] = []
        first = 1 if context.counted_from_1 else 0
        for number, each in enumerate(annotation.objects() if annotation else (), start=1):
            name = f"the object {number} of `{safe(path)}`"
            if isinstance(each, BadAnnotation):
                view.leave_out("SRC040", f"{name} {each}")
                continue
            left, top, right, bottom = each.box
            left, top = left - first, top - first
            if not boxes.add(name, each.name, (left, top, right - left, bottom - top)):
                continue
            kept.append(each)
            for _ in range(each.parts):
                view.remarks.add("SRC046", f"a part of {name} was left out")
        return {
            **boxes.features(),
            "image/object/difficult": int64_feature([each.difficult for each in kept]),
            "image/object/truncated": int64_feature([each.truncated for each in kept]),
            "image/object/occluded": int64_feature([each.occluded for each in kept]),
            "image/object/view": bytes_feature([each.pose for each in kept]),
        }

    def _mask(
        self, kind: str, path: str, annotation: VocAnnotation | None, view: ImageView
    ) -> Example:
        """The PNG of a segmentation, or none with a remark where there should be one."""
        data: list[bytes] = []
        if path:
            png = self._raw.read(path, limit=MAX_IMAGE_BYTES)
            problem = _mask_problem(png, view)
            if problem:
                view.remarks.add("SRC028", f"`{safe(path)}` was left out: {problem}")
            else:
                data.append(png)
        elif annotation is not None and annotation.segmented:
            view.remarks.add("SRC028", f"it is segmented, and has no PNG of the kind `{kind}`")
        prefix = f"image/segmentation/{kind}"
        return {
            f"{prefix}/encoded": bytes_feature(data),
            f"{prefix}/format": bytes_feature(["png"] * len(data)),
        }


def _mask_problem(data: bytes, view: ImageView) -> str:
    """Why a PNG cannot be that of a segmentation; empty where it can."""
    try:
        header = read_header(data)
    except ImageError as error:
        return error.detail
    if header.format != "png":
        return f"it is a {header.format}, not a PNG"
    if (header.width, header.height) not in view.sizes:
        width, height = view.sizes[1]
        return f"it has {header.width} × {header.height} pixels, expected {width} × {height}"
    return ""
