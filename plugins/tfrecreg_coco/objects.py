"""The objects and the panoptic segments of one image, from all its files of annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from tfrecreg.api import (
    BadAnnotation,
    Boxes,
    Example,
    ImageError,
    ImageView,
    Keypoints,
    SkipImage,
    bytes_feature,
    int64_feature,
    read_header,
)
from tfrecreg_coco.annotations import Annotation, PanopticSegment
from tfrecreg_coco.coco_options import MaskForm
from tfrecreg_coco.dataset import CategoryLabels
from tfrecreg_coco.masks import Masks


class Objects:
    """The objects of one image, from all files that have some of them."""

    def __init__(
        self, labels: CategoryLabels, view: ImageView, masks: MaskForm, keypoints: int | None
    ) -> None:
        self._remarks = view.remarks
        self._boxes = Boxes(labels, view)
        self._masks = Masks(masks, *view.sizes)
        self._keypoints = None if keypoints is None else Keypoints(keypoints, *view.sizes[0])
        self._numbers: dict[tuple[int | float | None, int | float | None], int] = {}

    def add(self, annotations: Iterable[Annotation], task: str) -> None:
        """Add the annotations of one file.

        An annotation of a file of keypoints is the object that another file has under the same id
        and category, and adds its keypoints; without such an object it is one of its own.
        """
        numbers, points = self._numbers, self._keypoints
        earlier = dict(numbers) if task == "keypoints" else {}
        for each in annotations:
            number = earlier.pop((each.id, each.category_id), None) if earlier else None
            if number is None or each.id is None:
                around = partial(self._masks.box_around, each.segmentation)
                if not _add(self._boxes, each, around):
                    continue
                problem = self._masks.add(each.segmentation)
                if problem is not None:
                    self._remarks.add("SRC028", f"the mask of {each.name} {problem}")
                if points is None:
                    continue
                number = len(self._boxes) - 1
                numbers.setdefault((each.id, each.category_id), number)
                points.add()
            if points is not None and task == "keypoints" and each.keypoints is not None:
                try:
                    points.set(number, each.keypoints)
                except BadAnnotation as error:
                    detail = f"the keypoints of {each.name} were left out: {error}"
                    self._remarks.add("SRC029", detail)

    def features(self) -> Example:
        """All features of objects."""
        found = {**self._boxes.features(), **self._masks.features()}
        if self._keypoints is not None:
            found.update(self._keypoints.features())
        return found


class PanopticSegments:
    """The panoptic segments of one image, and the PNG that paints them."""

    def __init__(self, labels: CategoryLabels, view: ImageView) -> None:
        self._sizes = view.sizes
        self._boxes = Boxes(labels, view)
        self._ids: list[int] = []
        self._pngs: list[bytes] = []

    def add(self, annotations: Iterable[Annotation]) -> None:
        """Add the segments of the image's annotation; there is at most one."""
        for annotation in annotations:
            if annotation.segments_info is None:
                raise SkipImage("SRC031", "its panoptic annotation has no list of segments")
            for segment in annotation.segments_info:
                number = segment.id
                if number is None or not 0 <= number < 1 << 24 or number != int(number):
                    detail = f"a segment has the id {number}, which no pixel has"
                    raise SkipImage("SRC031", detail)
                if _add(self._boxes, segment):
                    self._ids.append(int(number))

    def add_png(self, data: bytes) -> None:
        """Add the PNG, byte for byte. The segment of a pixel is red + 256 × green + 256² × blue."""
        try:
            header = read_header(data)
        except ImageError as error:
            raise SkipImage("SRC031", f"the PNG of its segments: {error.detail}") from None
        if header.format != "png":
            raise SkipImage("SRC031", f"its segments are painted in a {header.format}, not a PNG")
        if (header.width, header.height) not in self._sizes:
            width, height = self._sizes[0]
            raise SkipImage(
                "SRC031",
                f"the PNG of its segments has {header.width} × {header.height} pixels, expected "
                f"{width} × {height}",
            )
        self._pngs.append(data)

    def features(self) -> Example:
        """The features; the lists are empty for an image without segments."""
        prefix = "image/panoptic"
        return {
            **self._boxes.features(f"{prefix}/segment"),
            f"{prefix}/segment/id": int64_feature(self._ids),
            f"{prefix}/segment/is_thing": int64_feature(self._boxes.things()),
            f"{prefix}/encoded": bytes_feature(self._pngs),
        }


def _add(
    boxes: Boxes, found: PanopticSegment, around: Callable[[], Sequence[float]] | None = None
) -> bool:
    """Add one annotation or segment; False where it is left out."""
    return boxes.add(found.name, found.category_id, found.bbox, found.area, found.crowd, around)
