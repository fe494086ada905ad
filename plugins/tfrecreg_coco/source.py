"""The source `coco`: each image, with its annotations in COCO's JSON, becomes one example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import metadata
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec

from tfrecreg.api import (
    MAX_IMAGE_BYTES,
    Example,
    Feature,
    ImageError,
    ImageRemarks,
    ImageView,
    Item,
    ObjectLabel,
    RawDataError,
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
from tfrecreg_coco.files import (
    NO_SEGMENTATION,
    OBJECT_TASKS,
    Annotation,
    AnnotationFiles,
    Category,
    Chosen,
    CocoOptions,
    ImageEntry,
    url_member,
)
from tfrecreg_coco.folders import FolderFinder, ImageFolder, unread_folders, usual_folders
from tfrecreg_coco.objects import CategoryLabels, Objects, PanopticSegments, require_pycocotools

_MAX_LABEL = 1 << 16
"""Ids that serve as labels stay below: the label map is a list in the order of the labels."""
_OVERHEAD = 600
"""Bytes of an example beside the image: keys, lengths, names, the checksum."""
_OBJECT = 60
"""Bytes of an object beside its mask and keypoints."""
_MASK_SHARE = {"none": 0.0, "polygons": 0.6, "rle": 0.4, "png": 1.0}
"""Bytes of a mask for each byte of its annotation as JSON, roughly."""

Entry = TypeVar("Entry", ImageEntry, Category)
Id = int | float


class ItemState(msgspec.Struct, array_like=True):
    """The state of an item, as JSON."""

    image_id: int
    file_name: str
    """File name as in the annotations."""
    width: int
    """Pixels as the annotations have them; 0 where they do not say."""
    height: int
    segments: str
    """Path of the PNG of its panoptic segments; empty where it has none."""
    annotations: dict[str, msgspec.Raw]
    """The list of its annotations by task."""


_STATE = msgspec.json.Decoder(ItemState)
_ANNOTATIONS = msgspec.json.Decoder(list[Annotation])


class WorkerContext(NamedTuple):
    """What all items share. Picklable and small."""

    tasks: tuple[str, ...]
    """The task of each file."""
    objects: CategoryLabels | None
    """Labels of objects; None where no objects are read."""
    segments: CategoryLabels | None
    """Labels of panoptic segments; None where these are not read."""
    keypoints: int
    """Keypoints of each object; 0 where these are not read."""


class _Table:
    """A file of annotations that is read for a task."""

    def __init__(self, files: AnnotationFiles, path: str, task: str, options: CocoOptions) -> None:
        document = files.take(path, task)
        self.path = path
        self.task = task
        self.images = _by_id(path, "images", document.images)
        self.categories = _by_id(path, "categories", document.categories or [])
        self.annotations: dict[Id, list[Annotation]] = {}
        """By the id of the image."""
        self.remarks: list[Remark] = []
        """On annotations that were left out or are strange; without a split."""
        listed = (document.annotations or []) if task != "images" else []
        self._refuse_dangling(listed, drop=options.dangling == "drop")
        for each in listed:
            image = self.images.get(each.image_id)
            if image is not None:
                self.annotations.setdefault(each.image_id, []).append(each)
                if options.masks == "none" or task not in OBJECT_TASKS:
                    # Else the text of the whole file stays in memory.
                    fits = task not in OBJECT_TASKS or _fits(each.bbox, image)
                    each.segmentation = NO_SEGMENTATION if fits else each.segmentation.copy()
        self.keypoints = 0
        """The most keypoints that an annotation or a category has."""
        if task == "keypoints":
            declared = (len(each.keypoints or ()) for each in self.categories.values())
            found = (len(each.keypoints or ()) // 3 for each in listed)
            self.keypoints = max((*declared, *found), default=0)

    def _refuse_dangling(self, listed: list[Annotation], *, drop: bool) -> None:
        """Refuse or remark annotations of what is not listed, and ids of several annotations."""
        lost = [each for each in listed if each.image_id not in self.images]
        if lost:
            detail = _dangling("picture", lost, lost[0].image_id)
            if not drop:
                raise self._refusal(detail)
            self.remarks.append(Remark("", self.path, "SRC025", detail, len(lost)))
            if self.task in OBJECT_TASKS:
                self.remarks.append(Remark("", self.path, "SRC047", detail, len(lost)))
        if self.task in OBJECT_TASKS and not drop:  # else each image drops its own
            lost = [each for each in listed if each.category_id not in self.categories]
            if lost:
                raise self._refusal(_dangling("category", lost, lost[0].category_id))
        if self.task != "panoptic":
            times = Counter(each.id for each in listed if each.id is not None)
            repeated = {number: count for number, count in times.items() if count > 1}
            if repeated:
                one = min(repeated)
                detail = f"annotations have an id that another one has, {one} for one; all stay"
                count = sum(repeated.values()) - len(repeated)
                self.remarks.append(Remark("", self.path, "SRC026", detail, count))

    def _refusal(self, detail: str) -> RawDataError:
        return RawDataError(
            f"`{safe(self.path)}`: {detail}",
            hint="fix the file, or leave them out: --option dangling=drop",
        )


def _by_id(path: str, section: str, entries: list[Entry]) -> dict[Id, Entry]:
    found = {each.id: each for each in entries}
    for each in entries if len(found) < len(entries) else ():
        if found[each.id] is not each:
            raise RawDataError(
                f"`{safe(path)}` has the id {each.id} twice in `{section}`",
                hint="annotations refer to it by that id, so ids have to be unique: fix the file",
            )
    return found


def _dangling(what: str, lost: list[Annotation], target: Id | None) -> str:
    refer = "annotation refers" if len(lost) == 1 else "annotations refer"
    named = "one" if lost[0].id is None else f"the annotation {lost[0].id}"
    shown = "none" if target is None else target
    return f"{len(lost)} {refer} to a {what} that is not listed: {named} to the {what} {shown}"


def _fits(bbox: list[float] | None, image: ImageEntry) -> bool:
    """Whether a box can be written, and needs no segmentation."""
    if bbox is None or len(bbox) != 4 or not image.width or not image.height:
        return False
    left, top, across, down = bbox
    inside = left + across <= image.width and top + down <= image.height
    return inside and left >= 0 and top >= 0 and across >= 1 and down >= 1


class _Split(NamedTuple):
    name: str
    folder: ImageFolder
    segments: ImageFolder | None
    """The folder of the panoptic PNGs."""
    tables: list[_Table]
    """The files that are merged, in this order."""


class _Found(NamedTuple):
    """An image of a split that is there."""

    path: str
    size: int
    image: ImageEntry
    tables: list[_Table]
    """The files that list it."""
    segments: str
    segments_size: int


class CocoDataset:
    """All files of annotations, read once, and the images that they name."""

    def __init__(
        self, raw: Storage, options: CocoOptions, files: AnnotationFiles, chosen: Sequence[Chosen]
    ) -> None:
        self._raw = raw
        self._options = options
        by_split = [self._read_tables(files, each) for each in chosen]
        self._tables = [table for tables in by_split for table in tables]
        objects = [table for table in self._tables if table.task in OBJECT_TASKS]
        panoptic = [table for table in self._tables if table.task == "panoptic"]
        self.context = WorkerContext(
            tasks=tuple(table.task for table in self._tables),
            objects=_make_labels(objects, options) if objects else None,
            segments=_make_labels(panoptic, options) if panoptic else None,
            keypoints=max((table.keypoints for table in self._tables), default=0),
        )
        self._entries: list[tuple[str, _Found | Skipped]] = []
        self._remarks: list[Remark] = []
        splits = self._find_folders(chosen, by_split)
        self.folders = {split.name: split.folder.path for split in splits}
        """The folder of images by split."""
        for split in splits:
            self._entries += [(split.name, each) for each in self._list_images(split)]
            for table in split.tables:
                self._remarks += [each._replace(split=split.name) for each in table.remarks]
            if split.segments is not None:
                self._remarks += split.segments.moved(split.name)
        # A folder of several splits is looked through once, in the name of the first of them.
        for first in {split.folder.path: split for split in reversed(splits)}.values():
            self._remarks += first.folder.moved(first.name)
            self._remarks += first.folder.orphans(first.name)
        if not (options.splits or options.annotations):  # these leave folders out by choice
            used = {split.folder.path: split.folder for split in splits}
            aside = {split.segments.path for split in splits if split.segments is not None}
            self._remarks += unread_folders(raw, used, aside, splits[0].name)

    def raw_files(self) -> Iterator[RawFile]:
        """The files of annotations, the images and the PNGs of segments that are there."""
        for table in self._tables:
            entry = self._raw.stat(table.path, follow="all")
            size = entry.size if entry is not None else 0
            yield RawFile(table.path, size, size)
        seen: set[str] = set()
        for _, found in self._entries:
            if isinstance(found, _Found):
                for path, size in ((found.path, found.size), (found.segments, found.segments_size)):
                    if path and path not in seen:
                        seen.add(path)
                        yield RawFile(path, size, size)

    def items(self) -> Iterator[Item | Skipped | Remark]:
        """Every image, in the order of the files."""
        yield from self._remarks
        for split, found in self._entries:
            yield found if isinstance(found, Skipped) else self._item(split, found)

    def keypoint_names(self) -> list[str]:
        """The names of the keypoints, where all categories that name them agree."""
        named = {
            tuple(category.keypoints)
            for table in self._tables
            if table.task == "keypoints"
            for category in table.categories.values()
            if category.keypoints
        }
        return list(named.pop()) if len(named) == 1 else []

    def _read_tables(self, files: AnnotationFiles, chosen: Chosen) -> list[_Table]:
        tasks: dict[str, str] = {}
        for task, path in chosen.files.items():
            # A file of keypoints is read as such for all tasks.
            if path not in tasks or task == "keypoints":
                tasks[path] = task
        return [_Table(files, path, task, self._options) for path, task in tasks.items()]

    def _find_folders(
        self, chosen: Sequence[Chosen], by_split: Sequence[list[_Table]]
    ) -> list[_Split]:
        names = [each.split for each in chosen]
        images = FolderFinder(self._raw, "images", self._options.images, names)
        segments = FolderFinder(self._raw, "segments", self._options.segments, names)
        folders: dict[str, ImageFolder] = {}
        splits: list[_Split] = []
        for each, tables in zip(chosen, by_split, strict=True):
            files = [image.file_name for table in tables for image in table.images.values()]
            urls = partial(url_member, self._raw, tables[0].path)
            path = images.find(each.split, usual_folders(tables[0].path, each), files, urls)
            if path not in folders:
                deep = any("/" in name or "\\" in name for name in files)
                folders[path] = ImageFolder(self._raw, path, deep=deep)
            pngs: ImageFolder | None = None
            for table in tables:
                if table.task == "panoptic" and table.annotations:
                    beside = table.path.removesuffix(".json")
                    folder, _, stem = beside.rpartition("/")
                    # An image of the same name in the folder of the images is not the PNG.
                    usual = [usual for usual in (beside, stem, folder) if usual != path]
                    painted = (each for found in table.annotations.values() for each in found)
                    listed = [each.file_name for each in painted if each.file_name is not None]
                    place = segments.find(each.split, usual, listed, str)
                    pngs = ImageFolder(self._raw, place, deep=False)
            splits.append(_Split(each.split, folders[path], pngs, tables))
        return splits

    def _list_images(self, split: _Split) -> Iterator[_Found | Skipped]:
        seen: dict[str, Id] = {}
        for number, (image, tables) in _merge(split.tables).items():
            path = image.file_name
            try:
                path = split.folder.path_of(path)
                size = split.folder.size_of(path)
                first = seen.setdefault(path, number)
                if first != number:
                    path = f"{path}#{number}"
                    detail = f"the picture {number} has the file of the picture {first}"
                    raise SkipImage("SRC022", detail)
                yield _Found(path, size, image, tables, *self._segments(split, number))
            except SkipImage as error:
                yield Skipped(split.name, path, error.code, error.detail)

    def _segments(self, split: _Split, number: Id) -> tuple[str, int]:
        """Path and size of the PNG of an image's panoptic segments; nothing where it has none."""
        for table in split.tables:
            annotations = table.annotations.get(number)
            if split.segments is None or table.task != "panoptic" or not annotations:
                continue
            if len(annotations) > 1:
                detail = f"it has {len(annotations)} panoptic annotations, not one"
                raise SkipImage("SRC031", detail)
            name = annotations[0].file_name
            if name is None:
                raise SkipImage("SRC031", "its panoptic annotation has no `file_name`")
            try:
                path = split.segments.path_of(name)
                return path, split.segments.size_of(path)
            except SkipImage as error:
                raise SkipImage("SRC031", f"the PNG of its segments: {error.detail}") from None
        return "", 0

    def _item(self, split: str, found: _Found) -> Item:
        size = found.size + found.segments_size + _OVERHEAD
        image, texts = found.image, {}
        for table in found.tables:
            annotations = table.annotations.get(image.id)
            if annotations:
                text = msgspec.json.encode(annotations)
                texts[table.task] = msgspec.Raw(text)
                if table.task in OBJECT_TASKS:
                    size += len(annotations) * (_OBJECT + 12 * self.context.keypoints)
                    size += int(len(text) * _MASK_SHARE[self._options.masks])
                else:
                    size += len(text)
        sides = _pixels(image.width), _pixels(image.height)
        state = ItemState(int(image.id), image.file_name, *sides, found.segments, texts)
        return Item(split, found.path, size, msgspec.json.encode(state))


def _merge(tables: list[_Table]) -> dict[Id, tuple[ImageEntry, list[_Table]]]:
    """Each image of a split by its id, with every file that lists it."""
    merged: dict[Id, tuple[ImageEntry, list[_Table]]] = {}
    for table in tables:
        for number, image in table.images.items():
            known, listing = merged.setdefault(number, (image, []))
            if known.file_name != image.file_name:
                raise RawDataError(
                    f"the image {number} is `{safe(known.file_name)}` in "
                    f"`{safe(listing[0].path)}` and `{safe(image.file_name)}` in "
                    f"`{safe(table.path)}`",
                    hint="files are merged by the ids of their images: build them apart",
                )
            listing.append(table)
    return merged


def _pixels(side: int | float | None) -> int:
    """A side of an image as annotations have it; 0 where they say nothing of use."""
    return int(side) if side is not None and 0 < side < 2**31 else 0


def _make_labels(tables: Iterable[_Table], options: CocoOptions) -> CategoryLabels:
    """The labels of all categories that the files list."""
    found: dict[Id, tuple[Category, str]] = {}
    for table in tables:
        for number, category in table.categories.items():
            other, first = found.setdefault(number, (category, table.path))
            if other.name != category.name:
                raise RawDataError(
                    f"the category {number} is `{safe(other.name)}` in `{safe(first)}` and "
                    f"`{safe(category.name)}` in `{safe(table.path)}`",
                    hint="one dataset has one list of categories: fix the files, or build these "
                    "splits as datasets of their own, with --option splits=",
                )
    ids = sorted(found)
    contiguous = options.categories == "contiguous"
    if ids and not contiguous and not 0 <= ids[0] <= ids[-1] < _MAX_LABEL:
        wrong = ids[0] if ids[0] < 0 else ids[-1]
        raise RawDataError(
            f"the category {wrong} of `{safe(found[wrong][1])}` cannot be a label as it is: "
            f"expected ids from 0 to {_MAX_LABEL - 1}",
            hint="--option categories=contiguous counts them from 0",
        )
    all_say = all(category.isthing is not None for category, _ in found.values())
    labels: CategoryLabels = {}
    for position, number in enumerate(ids):
        category, _ = found[number]
        label = position if contiguous else int(number)
        thing = int(bool(category.isthing)) if all_say else None
        labels[number] = ObjectLabel(label, category.name.encode(), thing)
    return labels


class CocoSource(Source):
    """Images with annotations in COCO's format. An item's key is the image's path.

    The files of annotations are read once, in the parent. An item carries its annotations, so a
    worker reads the image and nothing else.
    """

    Options: ClassVar[type[Any]] = CocoOptions

    def __init__(self, raw: Storage, options: CocoOptions) -> None:
        self._raw = raw
        self._options = options
        self._files = AnnotationFiles(raw, options)
        self._chosen: list[Chosen] | None = None
        self._dataset: CocoDataset | None = None
        self._context: WorkerContext | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent. Workers need the context, also in a part of a build,
        # which lists nothing.
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
                maps[f"{prefix}/id"] = [str(int(number or 0)) for number in labels]
        names = dataset.keypoint_names()
        if names:
            maps["image/object/keypoint"] = names
        return maps

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._loaded().items()
        for path, reason in self._files.unread.items():
            yield Remark(self._choice()[0].split, path, "SRC035", reason)

    def example(self, item: Item) -> Written | Skipped:
        context = self._context or self._loaded().context
        state = _STATE.decode(item.state)
        data = self._raw.read(item.key, limit=MAX_IMAGE_BYTES)
        try:
            data, header, view = ImageView.read(
                item.key, data, self._options, width=state.width, height=state.height
            )
            identity = str(state.image_id)
            example = {
                **image_features(data, header, filename=state.file_name, source_id=identity),
                **self._annotated(state, view, context),
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
            self._chosen = self._files.choose()
        return self._chosen

    def _loaded(self) -> CocoDataset:
        if self._dataset is None:
            self._dataset = CocoDataset(self._raw, self._options, self._files, self._choice())
            self._context = self._dataset.context
        return self._dataset

    def _annotated(self, state: ItemState, view: ImageView, context: WorkerContext) -> Example:
        """The features that come from an image's annotations."""
        by_task = {task: _ANNOTATIONS.decode(text) for task, text in state.annotations.items()}
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
        if each.caption is None:
            remarks.add("SRC032", f"the caption {each.id} has no text, and was left out")
        else:
            captions.append(each.caption.encode())
    return captions
