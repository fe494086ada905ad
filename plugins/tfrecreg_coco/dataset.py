"""The raw data of the source `coco`: its options, annotation files, splits and images."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from posixpath import join
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec

from tfrecreg.api import (
    MissingExtraError,
    ObjectLabel,
    ObjectOptions,
    RawDataError,
    Remark,
    SkipImage,
    Skipped,
    Storage,
    choose_splits,
    hidden_part,
    image_size,
    link_problem,
    list_files,
    listed,
    media_kind,
    normal_splits,
    path_ends,
    paths_remark,
    safe,
)

TASKS = ("instances", "stuff", "keypoints", "captions", "panoptic", "images")
"""The tasks, in the order in which their files are merged."""
OBJECT_TASKS = ("instances", "stuff", "keypoints")
"""The tasks that read boxes."""
MaskForm = Literal["none", "polygons", "rle", "png"]


@dataclass(frozen=True)
class CocoOptions(ObjectOptions):
    """Options of the source `coco`."""

    tasks: tuple[
        Literal["instances", "stuff", "keypoints", "captions", "panoptic", "images"], ...
    ] = ()
    """What to read, such as `instances,keypoints,captions`. Files of several kinds become one
    record per image. Default: instances if there are any, else the only kind found."""
    annotations: tuple[str, ...] = ()
    """The annotation files, if they are not in usual places. `validation:a.json` sets the split."""
    images: tuple[str, ...] = ()
    """The folder of the images if it is unusual, or one for each split: `train:a,validation:b`."""
    segments: tuple[str, ...] = ()
    """The folder of the panoptic PNGs. Default: a folder next to the JSON file, with the same name.
    Per split: `train:a,validation:b`."""
    splits: tuple[str, ...] = ()
    """Read only these splits."""
    masks: MaskForm = "none"
    """Form of the objects' masks: `none`, `polygons` (empty for run lengths), compressed `rle`,
    or one `png` per object. The last two need the extra `coco`."""
    categories: Literal["as-is", "contiguous"] = "as-is"
    """`as-is`: labels are the ids of the categories. `contiguous`: labels count from 0 in the order
    of the ids."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.masks in ("rle", "png"):
            require_pycocotools()


def require_pycocotools() -> Any:
    try:
        return importlib.import_module("pycocotools.mask")
    except ModuleNotFoundError:
        raise MissingExtraError("writing masks as RLE or PNG", "coco") from None


NO_SEGMENTATION = msgspec.Raw()
"""The value of `segmentation` if an annotation lacks this member."""
Id = int | float


class ImageEntry(msgspec.Struct, gc=False):
    id: Id
    file_name: str
    width: int | float | None = None
    height: int | float | None = None


class Category(msgspec.Struct, gc=False):
    id: Id
    name: str
    keypoints: list[str] | None = None
    isthing: int | bool | None = None


class PanopticSegment(msgspec.Struct, gc=False, omit_defaults=True):
    id: Annotated[int, msgspec.Meta(ge=0, lt=1 << 24)]
    category_id: Id | None = None
    bbox: list[float] | None = None
    area: float | None = None
    iscrowd: int | bool | None = None


class Annotation(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    """One annotation of any kind. Members that the file lacks are None or empty."""

    image_id: Id
    id: Id | None = None
    category_id: Id | None = None
    bbox: list[float] | None = None
    area: float | None = None
    iscrowd: int | bool | None = None
    is_crowd: int | bool | None = None
    segmentation: msgspec.Raw = NO_SEGMENTATION
    keypoints: list[float] | None = None
    caption: str | None = None
    file_name: str | None = None
    segments_info: list[PanopticSegment] | None = None

    @property
    def crowd(self) -> int:
        """1 for a crowd. Some tools write `is_crowd` for `iscrowd`."""
        return int(bool(self.is_crowd if self.iscrowd is None else self.iscrowd))

    @property
    def name(self) -> str:
        """The annotation's name in messages."""
        return "an annotation" if self.id is None else f"the annotation {self.id}"

    def tasks(self) -> tuple[str, ...]:
        """The tasks that can use the annotation, the main task first. Empty if no task can."""
        if self.segments_info is not None:
            return ("panoptic",)
        if self.keypoints is not None:
            return "keypoints", "instances"
        if self.caption is not None:
            return ("captions",)
        has_shape = self.bbox is not None or self.segmentation is not NO_SEGMENTATION
        return ("instances",) if has_shape else ()


class Document(msgspec.Struct):
    images: list[ImageEntry]
    annotations: list[Annotation] | None = None
    categories: list[Category] | None = None

    def tasks(self) -> tuple[str, ...]:
        """The tasks for which the file can be read, according to its first usable annotation. If no
        annotation is usable, the task is `labels`, for which no file is read.
        """
        if not self.annotations:
            return ("images",) if self.annotations is None else ("instances",)
        return next(filter(None, (each.tasks() for each in self.annotations)), ("labels",))


_DECODER = msgspec.json.Decoder(Document)


_YEAR = r"[-_]?(?:19|20)[0-9]{2}"
_WORD = (
    r"(?:train|training|val|valid|validation|dev|test|testing|trainval|minival|valminusminival|"
    rf"unlabell?ed|test[-_]?dev|default)(?:{_YEAR})?"
)
_SPLIT = re.compile(_WORD, re.IGNORECASE)
_TASKS = {
    "instances": "instances",
    "person_keypoints": "keypoints",
    "keypoints": "keypoints",
    "captions": "captions",
    "panoptic": "panoptic",
    "stuff": "stuff",
    "image_info": "images",
}
_NAME = re.compile(rf"({'|'.join(_TASKS)})(?:[-_.]({_WORD}))?", re.IGNORECASE)
_OTHER_NAME = re.compile(rf"({'|'.join(_TASKS)})[-_.](.+)", re.IGNORECASE)
_PREFIXED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_]*):(.+)", re.DOTALL)


class AnnotationFile(NamedTuple):
    path: str
    tasks: tuple[str, ...]
    """The tasks for which it can be read, the main task first."""
    word: str
    """The part of its name that identifies the split, such as ``train2017``; may be empty."""
    split: str = ""
    """The file's split, if an option sets the split."""


def split_and_path(value: str) -> tuple[str, str]:
    """The split and the path in a value such as ``validation:a.json``. The split may be empty."""
    match = _PREFIXED.fullmatch(value)
    split, path = (match[1], match[2]) if match else ("", value)
    return split, "/".join(part for part in path.split("/") if part not in ("", "."))


def task_and_word(path: str) -> tuple[str, str]:
    """The task in a file's name, and the word for the split in the name of the file or its folder.
    Both may be empty. For ``annotations/instances_train2017.json`` they are `instances` and
    `train2017`.
    """
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".json")
    if match := _NAME.fullmatch(stem):
        return _TASKS[match[1].lower()], match[2] or ""
    words = (*re.split(r"[^A-Za-z0-9]+", stem), folder.rpartition("/")[2])
    return "", next(filter(_SPLIT.fullmatch, words), "")


def _split_names(words: Iterable[str]) -> dict[str, str]:
    """Map words to splits: ``train2017`` becomes `train`, ``val2017`` becomes `validation`.

    Years are left out, unless only the year differs. `default` and the empty word become `train`.
    """
    short = {word: re.sub(rf"{_YEAR}\Z", "", word) for word in sorted(set(words))}
    counts = Counter(short.values())
    plain = {}
    for word, without_year in short.items():
        name = without_year if counts[without_year] == 1 else word
        # Letters, digits and underscores only: the name becomes a part of file names.
        name = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
        plain[word] = "train" if name.lower() in ("", "default") else name
    normal = normal_splits(set(plain.values()))
    return {word: normal[name] for word, name in plain.items()}


CategoryLabels = dict[Any, ObjectLabel]
"""Labels by category id, in the order of the ids."""
Listed = TypeVar("Listed", ImageEntry, Category)
_MAX_LABEL = 1 << 16
"""Ids that become labels must be below this limit: the label map lists all smaller numbers."""
_PROBED = 20
"""Number of images of a split to look for in one folder before the next folder is tried."""
_SPELLINGS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}


class Table(NamedTuple):
    """The content of an annotation file, as one task reads it."""

    path: str
    task: str
    images: dict[Id, ImageEntry]
    categories: dict[Id, Category]
    annotations: dict[Id, list[Annotation]]
    """Annotations by the id of the image."""
    keypoints: int
    """The largest number of keypoints of an annotation or a category; 0 for all other tasks."""


class CocoSplit(NamedTuple):
    name: str
    files: Mapping[str, AnnotationFile]
    """The file of each task, in the order in which they are merged. Two tasks may share a file."""
    tables: Sequence[Table]
    image_folder: str
    segment_folder: str
    """The folder of the panoptic PNGs."""


class Found(NamedTuple):
    """An existing image."""

    split: str
    path: str
    image: ImageEntry
    tables: list[Table]
    """The tables that list the image."""
    segments: str
    """The path of the PNG of its panoptic segments; empty without one."""


class _Group(NamedTuple):
    name: str
    files: list[AnnotationFile]


class CocoDataset:
    """The raw data, listed and read once."""

    def __init__(self, raw: Storage, options: CocoOptions) -> None:
        self._raw = raw
        self._options = options
        self.files = {entry.path: entry for entry in list_files(raw)}
        self._documents: dict[str, Document] = {}
        """Files already read to find the tasks. Each is kept until its annotations are needed."""
        self._named: set[str] = set()
        """The images and panoptic PNGs to which the annotations refer."""
        self._unread: dict[str, RawDataError] = {}
        """JSON in the usual place that is not a dataset, such as results."""
        self.remarks: list[Remark] = []
        chosen = self._chosen_files()
        self.splits = [self._split(name, files) for name, files in chosen.items()]
        self._documents.clear()
        self.tables = [table for split in self.splits for table in split.tables]
        self.entries = [each for split in self.splits for each in self._list(split)]
        self._remark_others()

    def labels(self, tasks: Sequence[str]) -> CategoryLabels | None:
        """The labels of all categories in the tables of these tasks; None if there is no table."""
        tables = [table for table in self.tables if table.task in tasks]
        found: dict[Id, Category] = {}
        for number, category in (pair for table in tables for pair in table.categories.items()):
            name = found.setdefault(number, category).name
            if name != category.name:
                raise RawDataError(f"the category {number} is both `{name}` and `{category.name}`")
        ids = sorted(found)
        contiguous = self._options.categories == "contiguous"
        if ids and not contiguous and not 0 <= ids[0] <= ids[-1] < _MAX_LABEL:
            raise RawDataError(
                f"labels must be from 0 to {_MAX_LABEL - 1}, but the ids of the categories are "
                f"from {ids[0]} to {ids[-1]}: `categories=contiguous` numbers them from 0"
            )
        all_say = all(category.isthing is not None for category in found.values())
        labels: CategoryLabels = {}
        for position, number in enumerate(ids):
            thing = int(bool(found[number].isthing)) if all_say else None
            label = position if contiguous else int(number)
            labels[number] = ObjectLabel(label, found[number].name.encode(), thing)
        return labels if tables else None

    def _chosen_files(self) -> dict[str, dict[str, AnnotationFile]]:
        """For each split, the file of each task. Train comes first, then the others by name."""
        files = self._annotation_files()
        tasks = self._tasks(files)
        names = _split_names(file.word for file in files if not file.split)
        groups: dict[str, _Group] = {}
        for file in files:
            name = file.split or names[file.word]
            groups.setdefault(name, _Group(name, [])).files.append(file)
        ordered = sorted(groups.values(), key=lambda group: (group.name != "train", group.name))
        chosen: dict[str, dict[str, AnnotationFile]] = {}
        for split, group in choose_splits(ordered, self._options.splits):
            used = {task: found for task in tasks if (found := _file_for(group, task, split))}
            missing = [task for task in tasks if task not in used and task != "images"]
            if missing and set(used) - {"images"}:
                raise RawDataError(
                    f"the split `{split}` has {', '.join(used)}, but no {', '.join(missing)}"
                )
            if used:
                chosen[split] = used
        if not chosen:
            paths = listed((file.path for file in files), most=3)
            raise RawDataError(f"{paths}: no annotations of {' or '.join(tasks or OBJECT_TASKS)}")
        return chosen

    def _annotation_files(self) -> list[AnnotationFile]:
        """The annotation files: those that the option `annotations` names, otherwise those in the
        first usual place that has any JSON files.
        """
        if self._options.annotations:
            given = map(split_and_path, self._options.annotations)
            return [self._annotation_file(path, split) for split, path in given]
        files: list[AnnotationFile] = []
        for path in self._usual_paths():
            try:
                files.append(self._annotation_file(path))
            except RawDataError as error:
                self._unread[path] = error
        if not files:
            missing = RawDataError(
                f"`{safe(self._raw.root, limit=4096)}` holds no annotations: expected JSON in "
                "`annotations/`",
                hint="`--raw` takes the folder that contains `annotations/`; or name the JSON file "
                "with `--option annotations=FILE`",
            )
            raise next(iter(self._unread.values()), missing)
        return files

    def _usual_paths(self) -> list[str]:
        """The JSON files in the first usual place that has any."""
        by_folder: dict[str, list[str]] = {}
        for path in self.files:
            folder, _, name = path.rpartition("/")
            if name.endswith(".json") and "/" not in folder:
                by_folder.setdefault(folder, []).append(path)
        paths = [path for found in by_folder.values() for path in found]
        return (
            by_folder.get("annotations")
            or [path for path in paths if path.endswith("_annotations.coco.json")]
            or by_folder.get("")
            or [path for path in paths if _SPLIT.fullmatch(path.rpartition("/")[0])]
        )

    def _annotation_file(self, path: str, split: str = "") -> AnnotationFile:
        """A file with its tasks. If its name states no task, its annotations decide."""
        task, word = task_and_word(path)
        if task:
            return AnnotationFile(path, (task,), word, split)
        self._documents[path] = document = self._read(path)
        tasks = document.tasks()
        other = _OTHER_NAME.fullmatch(path.rpartition("/")[2].removesuffix(".json"))
        if other and _TASKS[other[1].lower()] == tasks[0]:
            word = other[2]
        return AnnotationFile(path, tasks, word, split)

    def _read(self, path: str) -> Document:
        entry = self.files.get(path)
        if entry is None or entry.kind != "file":
            why = "not in the raw folder" if entry is None else link_problem("all")
            raise RawDataError(f"`{path}` is {why}")
        data = self._raw.read(path, limit=1 << 40)
        try:
            return _DECODER.decode(data.removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError) as error:
            raise RawDataError(f"`{path}` is not a COCO dataset: {error}") from None

    def _tasks(self, files: Sequence[AnnotationFile]) -> list[str]:
        options = self._options
        main = options.tasks or {file.tasks[0] for file in files}
        tasks = [task for task in TASKS if task in main]
        if options.tasks or options.annotations:
            return tasks
        if "instances" in tasks:
            return ["instances"]
        annotated = [task for task in tasks if task != "images"]
        if len(annotated) > 1:
            raise RawDataError(
                f"the annotation files hold {', '.join(annotated)}, but no instances",
                hint=f"select all or some of these: --option tasks={','.join(annotated)}",
            )
        return annotated or tasks

    def _split(self, name: str, files: Mapping[str, AnnotationFile]) -> CocoSplit:
        """Read the files of a split, and find its folders."""
        tasks: dict[str, str] = {}
        for task, file in files.items():
            # A file of keypoints is read as keypoints for all tasks.
            if file.path not in tasks or task == "keypoints":
                tasks[file.path] = task
        tables = [self._table(name, path, task) for path, task in tasks.items()]
        names = (image.file_name for table in tables for image in table.images.values())
        usual = _usual_folders(name, files)
        folder = self._folder("images", name, usual, names)
        segments = ""
        for table in tables:
            if table.task == "panoptic" and table.annotations:
                beside = table.path.removesuffix(".json")
                above, _, stem = beside.rpartition("/")
                # A file of the same name in the folder of images is the image, not the PNG.
                usual = [each for each in (beside, stem, above) if each != folder]
                painted = (each for found in table.annotations.values() for each in found)
                names = (each.file_name for each in painted if each.file_name is not None)
                segments = self._folder("segments", name, usual, names)
        return CocoSplit(name, files, tables, folder, segments)

    def _table(self, split: str, path: str, task: str) -> Table:
        options = self._options
        document = self._documents.pop(path, None) or self._read(path)
        images = _by_id(path, "images", document.images)
        categories = _by_id(path, "categories", document.categories or [])
        found = (document.annotations or []) if task != "images" else []
        annotations: dict[Id, list[Annotation]] = {}
        lost: list[Annotation] = []
        for each in found:
            image = images.get(each.image_id)
            if image is None:
                lost.append(each)
                continue
            annotations.setdefault(each.image_id, []).append(each)
            if options.masks == "none" or task not in OBJECT_TASKS:
                # A `Raw` is a view that keeps the text of the whole file in memory. Without masks,
                # only the box around a segmentation may be needed, in place of an unusable box.
                needless = task not in OBJECT_TASKS or _is_usable(each.bbox, image)
                each.segmentation = NO_SEGMENTATION if needless else each.segmentation.copy()
        if lost:
            which = f"the first is {lost[0].name}, which refers to the image {lost[0].image_id}"
            detail = f"{len(lost)} annotations refer to an image that is not listed; {which}"
            if options.dangling == "fail":
                raise RawDataError(
                    f"`{path}`: {detail}",
                    hint="fix the file, or leave out these annotations: --option dangling=drop",
                )
            for code in ("SRC115", "SRC047") if task in OBJECT_TASKS else ("SRC115",):
                self.remarks.append(Remark(split, path, code, detail, len(lost)))
        keypoints = 0
        if task == "keypoints":
            declared = (len(each.keypoints or ()) for each in categories.values())
            counts = (len(each.keypoints or ()) // 3 for each in found)
            keypoints = max((*declared, *counts), default=0)
        return Table(path, task, images, categories, annotations, keypoints)

    def _folder(self, option: str, split: str, usual: Sequence[str], names: Iterable[str]) -> str:
        """The folder that an option names, or else the first usual folder with one of `names`."""
        given = dict(map(split_and_path, getattr(self._options, option)))
        folder = given.get(split, given.get(""))
        if folder is not None:
            return folder
        probed = list(islice(names, _PROBED))
        for folder in usual:
            if any(self._locate(folder, name.replace("\\", "/")) for name in probed):
                return folder
        if not probed:
            return usual[0]
        raise RawDataError(
            f"none of the first {len(probed)} {option} of the split `{split}` was found; the first "
            f"is `{safe(probed[0])}`",
            hint=f"--option {option}=FOLDER names the folder; files behind URLs are not fetched",
        )

    def _list(self, split: CocoSplit) -> Iterator[Found | Skipped]:
        """The images of a split, each with all tables that list it."""
        merged: dict[Id, tuple[ImageEntry, list[Table]]] = {}
        for table in split.tables:
            for image_id, image in table.images.items():
                known, tables = merged.setdefault(image_id, (image, []))
                if known.file_name != image.file_name:
                    names = f"`{known.file_name}`, and `{image.file_name}` in `{table.path}`"
                    raise RawDataError(f"the image {image_id} has two files: {names}")
                tables.append(table)
        owners: dict[str, Id] = {}
        moved: list[str] = []
        for image_id, (image, tables) in merged.items():
            path = image.file_name
            try:
                path = self._path(split.image_folder, path, moved)
                image_size(path, self.files.get(path))
                owner = owners.setdefault(path, image_id)
                if owner != image_id:
                    path = f"{path}#{image_id}"
                    detail = f"the image {image_id} has the same file as the image {owner}"
                    raise SkipImage("SRC114", detail)
                segments = self._segments(split, image_id, moved)
                yield Found(split.name, path, image, tables, segments)
            except SkipImage as error:
                yield Skipped(split.name, path, error.code, error.detail)
        if moved:
            why = "paths lead out of the raw folder, so files in it with the same endings were read"
            self.remarks.append(paths_remark(split.name, "SRC116", moved, why))

    def _segments(self, split: CocoSplit, image_id: Id, moved: list[str]) -> str:
        """The PNG of an image's panoptic segments; empty if the image has no panoptic
        annotation.
        """
        for table in split.tables:
            annotations = table.annotations.get(image_id)
            if table.task != "panoptic" or not annotations:
                continue
            try:
                if len(annotations) > 1:
                    raise SkipImage("SRC113", "there are several panoptic annotations")
                path = self._path(split.segment_folder, annotations[0].file_name or "", moved)
                image_size(path, self.files.get(path))
                return path
            except SkipImage as error:
                raise SkipImage("SRC113", f"the PNG of its segments: {error.detail}") from None
        return ""

    def _path(self, folder: str, name: str, moved: list[str]) -> str:
        """The path of the file for a `name` in the annotations. If `name` leads out of the raw
        folder, the path is the longest trailing part of `name` that exists inside the raw folder.
        """
        plain = name.replace("\\", "/")
        path = self._locate(folder, plain) or join(folder, plain)
        if _leads_out(plain):
            if path not in self.files:
                raise SkipImage("SRC111", f"`{safe(name)}` leads out of the raw folder")
            moved.append(name)
        self._named.add(path)
        return path

    def _locate(self, folder: str, name: str) -> str:
        ends = path_ends(name)
        paths = (join(folder, end) for end in (ends if _leads_out(name) else ends[:1]))
        return next((path for path in paths if path in self.files), "")

    def _remark_others(self) -> None:
        """Add remarks on JSON that was not read, and on images that are in no annotation file."""
        first = self.splits[0].name
        for path, error in self._unread.items():
            self.remarks.append(Remark(first, path, "SRC015", error.message))
        orphans = [
            path
            for path in self.files
            if media_kind(path) == "image"
            and path not in self._named
            and "annotations" not in path.split("/")
            and not hidden_part(path)
        ]
        # Both options omit images on purpose.
        if orphans and not (self._options.splits or self._options.annotations):
            why = "no annotation file that was read names them"
            self.remarks.append(paths_remark(first, "SRC117", orphans, why))


def _file_for(files: Sequence[AnnotationFile], task: str, split: str) -> AnnotationFile | None:
    """The file to read for a task, among the files of a split."""
    main = [file for file in files if file.tasks[0] == task]
    serving = main or [file for file in files if task in file.tasks]
    if len(serving) > 1:
        raise RawDataError(
            f"several files hold {task} of the split `{split}`: "
            f"{listed((file.path for file in serving), most=3)}",
            hint=f"select one: --option annotations={safe(serving[0].path)}",
        )
    return serving[0] if serving else None


def _is_usable(bbox: list[float] | None, image: ImageEntry) -> bool:
    """Whether a box can be written unclipped. Other boxes may still be clipped and written."""
    if bbox is None or len(bbox) != 4 or not image.width or not image.height:
        return False
    left, top, across, down = bbox
    inside = left + across <= image.width and top + down <= image.height
    return inside and left >= 0 and top >= 0 and across >= 1 and down >= 1


def _by_id(path: str, section: str, entries: list[Listed]) -> dict[Id, Listed]:
    found = {each.id: each for each in entries}
    if len(found) < len(entries):
        number = next(each.id for each in entries if found[each.id] is not each)
        raise RawDataError(f"`{path}` has the id {number} twice in `{section}`")
    return found


def _usual_folders(split: str, files: Mapping[str, AnnotationFile]) -> list[str]:
    """The folders that usually hold a split's images, the most likely first."""
    own = next(iter(files.values())).path.rpartition("/")[0]
    above, _, last = own.rpartition("/")
    base = above if last == "annotations" else own
    words = dict.fromkeys((*(file.word for file in files.values()), split))
    words.update(dict.fromkeys(_SPELLINGS.get(split, ())))
    of_split = [join(base, each) for word in words if word for each in (word, f"images/{word}")]
    return [*of_split, own, join(base, "images"), join(base, "data"), base, ""]


def _leads_out(path: str) -> bool:
    """Whether a path leads out of the raw folder, for example to a folder of another machine."""
    return path.startswith("/") or path[1:2] == ":" or ".." in path.split("/")
