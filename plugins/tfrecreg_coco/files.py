"""Options, annotation files, and which of them are read for which split and task."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from tfrecreg.api import ObjectOptions, RawDataError, Storage, UsageError, normal_splits, safe

TASKS = ("instances", "stuff", "keypoints", "captions", "panoptic", "images")
"""Tasks of an annotation file, in the order in which files are merged."""
OBJECT_TASKS = ("instances", "stuff", "keypoints")
"""The tasks that read boxes."""
NO_SEGMENTATION = msgspec.Raw()
"""Of an annotation without one."""
MaskForm = Literal["none", "polygons", "rle", "png"]

_FOLDER = "annotations"
_ROBOFLOW = "_annotations.coco.json"
_TAKES = "name the folder above `annotations` with `--raw`, or set `--option annotations=FILE`"
_YEAR = r"[-_]?(?:19|20)[0-9]{2}"
_SPLIT_WORD = re.compile(
    r"(?:train|training|val|valid|validation|dev|test|testing|trainval|minival|valminusminival|"
    rf"unlabell?ed|test[-_]?dev|default)(?:{_YEAR})?",
    re.IGNORECASE,
)
_TASK_WORDS: Mapping[str, str] = {
    "instances": "instances",
    "person_keypoints": "keypoints",
    "keypoints": "keypoints",
    "captions": "captions",
    "panoptic": "panoptic",
    "stuff": "stuff",
    "image_info": "images",
    "labels": "labels",
}
_NAME = re.compile(
    rf"(?P<task>{'|'.join(_TASK_WORDS)})(?:[-_.](?P<word>.+))?", re.IGNORECASE | re.DOTALL
)
_PREFIXED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_]*):(.+)", re.DOTALL)
_MEMBERS = {
    "instances": ("bbox", "segmentation"),
    "stuff": ("bbox", "segmentation"),
    "keypoints": ("keypoints",),
    "captions": ("caption",),
    "panoptic": ("segments_info",),
}
"""Members by task: an annotation has one of them."""
_SERVED = {
    "instances": ("instances", "stuff"),
    "keypoints": ("keypoints", "instances"),
    "captions": ("captions",),
    "panoptic": ("panoptic",),
}
"""The tasks that a file of some kind can be read for, the main task first."""
_BOM = b"\xef\xbb\xbf"
_MAX_BYTES = 1 << 40


@dataclass(frozen=True)
class CocoOptions(ObjectOptions):
    """Options of the source `coco`."""

    tasks: tuple[
        Literal["instances", "stuff", "keypoints", "captions", "panoptic", "images"], ...
    ] = ()
    """What to read, such as `instances,keypoints,captions`. Files of several kinds become one
    record per image. Default: instances where there are any, else the only kind that there is."""
    annotations: tuple[str, ...] = ()
    """The files of annotations, where they do not lie in a usual place. `validation:a.json` also
    names the split."""
    images: tuple[str, ...] = ()
    """The folder of the images, where it is not found. `train:a,validation:b` for each split."""
    segments: tuple[str, ...] = ()
    """The folder of the panoptic PNGs, if it is not beside the JSON under its name.
    `train:a,validation:b` for each split."""
    splits: tuple[str, ...] = ()
    """Read only these splits."""
    masks: MaskForm = "none"
    """Segmentations of the objects: left out, as polygons where they are polygons, as compressed
    RLE, or as one PNG per object. The last two need the extra `coco`."""
    categories: Literal["as-is", "contiguous"] = "as-is"
    """`as-is`: labels are the ids of the categories. `contiguous`: labels count from 0 in the order
    of the ids."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_repeated("tasks", "splits")
        if self.masks != "none" and self.tasks and not set(OBJECT_TASKS) & set(self.tasks):
            raise UsageError(
                f"`masks={self.masks}` needs objects, and `tasks` names none of "
                f"{', '.join(OBJECT_TASKS)}",
                hint="leave out `masks`, or add instances to `tasks`",
            )


def split_and_path(value: str) -> tuple[str, str]:
    """Split and path of a value such as ``validation:a.json``; the split is empty in ``a.json``."""
    match = _PREFIXED.fullmatch(value)
    return (match[1], match[2]) if match else ("", value)


class ImageEntry(msgspec.Struct, gc=False):
    """An entry of `images`."""

    id: int | float
    file_name: str
    width: int | float | None = None
    height: int | float | None = None


class Category(msgspec.Struct, gc=False):
    """An entry of `categories`."""

    id: int | float
    name: str
    keypoints: list[str] | None = None
    isthing: int | bool | None = None


class PanopticSegment(msgspec.Struct, gc=False, omit_defaults=True):
    """One segment of a panoptic annotation. Members that the file lacks are None."""

    id: int | float | None = None
    category_id: int | float | None = None
    bbox: list[float] | None = None
    area: float | None = None
    iscrowd: int | bool | None = None

    @property
    def crowd(self) -> int:
        """1 for a crowd."""
        return 1 if self.iscrowd else 0

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"the segment {self.id}"


class Annotation(PanopticSegment, gc=False, kw_only=True, omit_defaults=True):
    """One annotation of any kind. Members that the file lacks are None or empty."""

    image_id: int | float
    is_crowd: int | bool | None = None
    segmentation: msgspec.Raw = NO_SEGMENTATION
    keypoints: list[float] | None = None
    caption: str | None = None
    file_name: str | None = None
    segments_info: list[PanopticSegment] | None = None

    @property
    def crowd(self) -> int:
        """1 for a crowd. Some tools write `is_crowd` for `iscrowd`."""
        return 1 if self.iscrowd or (self.iscrowd is None and self.is_crowd) else 0

    @property
    def name(self) -> str:
        """Its name in messages."""
        return "an annotation" if self.id is None else f"the annotation {self.id}"

    def serves(self, task: str) -> bool:
        """Whether it has what a task reads."""
        values = (getattr(self, member) for member in _MEMBERS[task])
        return any(value is not None and value is not NO_SEGMENTATION for value in values)


class Document(msgspec.Struct):
    """A file of annotations."""

    images: list[ImageEntry]
    annotations: list[Annotation] | None = None
    categories: list[Category] | None = None

    def tasks(self) -> tuple[str, ...]:
        """The tasks that it can be read for by its annotations, the main task first.

        A file of keypoints is one of instances as well. `labels` are those of whole images, which
        this source does not read.
        """
        if not self.annotations:
            whole = self.annotations is not None and self.categories is not None
            return ("instances",) if whole else ("images",)
        kinds = ("panoptic", "keypoints", "captions", "instances")
        main = (kind for each in self.annotations for kind in kinds if each.serves(kind))
        return _SERVED.get(next(main, "labels"), ("labels",))


class _RawImages(msgspec.Struct):
    images: list[msgspec.Raw]


_DECODER = msgspec.json.Decoder(Document)


def read_document(raw: Storage, path: str) -> Document:
    """Read a file of annotations."""
    data = raw.read(path, limit=_MAX_BYTES)
    try:
        return _DECODER.decode(data.removeprefix(_BOM))
    except (ValueError, RecursionError) as error:
        raise RawDataError(
            f"`{safe(path)}` is not a COCO dataset: {safe(str(error))}",
            hint="expected is JSON with lists of `images`, `annotations` and `categories`; fetch "
            "or write the file again",
        ) from None


def url_member(raw: Storage, path: str) -> str:
    """The member of the first image of a file that has a URL; empty without one."""
    data = raw.read(path, limit=_MAX_BYTES).removeprefix(_BOM)
    images = msgspec.json.decode(data, type=_RawImages).images
    first: dict[str, Any] = msgspec.json.decode(images[0]) if images else {}
    return next((name for name, each in first.items() if str(each).startswith("http")), "")


class AnnotationFile(NamedTuple):
    """A file of annotations."""

    path: str
    tasks: tuple[str, ...]
    """Tasks that it can be read for, the main task first."""
    word: str
    """The part of its name that identifies the split, ``train2017``; may be empty."""
    split: str = ""
    """Its split, where an option names it."""


class Chosen(NamedTuple):
    """Files of one split."""

    split: str
    words: tuple[str, ...]
    """The parts of its files' names that identify the split."""
    files: dict[str, str]
    """File by task, in the order in which they are merged. Two tasks may have one file."""


class AnnotationFiles:
    """The annotation files of a raw folder.

    Args:
        raw: the raw folder.
        options: the options.
    """

    def __init__(self, raw: Storage, options: CocoOptions) -> None:
        self.unread: dict[str, str] = {}
        """Files in usual places that are no datasets: why, by path."""
        self._raw = raw
        self._options = options
        self._documents: dict[str, Document] = {}

    def take(self, path: str, task: str) -> Document:
        """The content of a file that is read for a task. It is not kept."""
        document = self._documents.pop(path, None) or read_document(self._raw, path)
        listed = document.annotations if task in _MEMBERS else None
        if listed and not any(each.serves(task) for each in listed):
            members = " and no ".join(f"`{member}`" for member in _MEMBERS[task])
            raise RawDataError(
                f"`{safe(path)}` holds no {task}: its annotations have no {members}",
                hint="check that this is the right file",
            )
        return document

    def choose(self) -> list[Chosen]:
        """Which file is read for which split and task; train first, then by name."""
        files = self._find()
        tasks = _choose_tasks(files, self._options)
        names = split_names(file.word for file in files if not file.split)
        by_split: dict[str, list[AnnotationFile]] = defaultdict(list)
        for file in files:
            by_split[file.split or names[file.word]].append(file)
        unknown = [split for split in self._options.splits if split not in by_split]
        if unknown:
            raise UsageError(
                f"the option `splits` names `{safe(unknown[0])}`, and there are "
                + ", ".join(f"`{split}`" for split in sorted(by_split)),
                hint="`--dry-run` without it lists the splits",
            )
        chosen: list[Chosen] = []
        for split in sorted(by_split, key=lambda each: (each != "train", each)):
            if self._options.splits and split not in self._options.splits:
                continue
            serving = {task: _file_for(by_split[split], task, split) for task in tasks}
            used = {task: file for task, file in serving.items() if file is not None}
            missing = [task for task in tasks if task not in used and task != "images"]
            if missing and set(used) - {"images"}:
                others = ",".join(sorted(set(by_split) - {split})) or split
                raise RawDataError(
                    f"the split `{split}` has {', '.join(used)}, no {', '.join(missing)}",
                    hint=f"leave it out, or the task: --option splits={others}",
                )
            if used:
                words = tuple(dict.fromkeys(file.word for file in used.values()))
                paths = {task: file.path for task, file in used.items()}
                chosen.append(Chosen(split, words, paths))
        missing = [task for task in tasks if not any(task in each.files for each in chosen)]
        if missing:
            found = format_names(file.path for file in files)
            raise RawDataError(
                f"no file holds {', '.join(missing)}: found {found}",
                hint="leave out the task, or name its file: --option annotations=FILE,FILE",
            )
        return chosen

    def _find(self) -> list[AnnotationFile]:
        """The files in their usual places, or those that the options name."""
        raw = self._raw
        root = raw.stat("")
        if root is None or root.kind != "dir":
            raise RawDataError(f"no such folder: `{safe(raw.root, limit=4096)}`", hint=_TAKES)
        if self._options.annotations:
            return [self._named(*split_and_path(each)) for each in self._options.annotations]
        paths = self._usual_paths()
        if not paths:
            found = format_names(entry.path for entry in raw.list(recursive=False))
            raise RawDataError(
                f"`{safe(raw.root, limit=4096)}` holds no annotations: expected JSON in "
                f"`{_FOLDER}/`, found {found or 'nothing'}",
                hint=_TAKES,
            )
        files: list[AnnotationFile] = []
        refusal: RawDataError | None = None
        for path in paths:
            try:
                files.append(self._file(path))
            except RawDataError as error:
                # Lists of results are beside datasets, and other JSON; COCO's names are datasets.
                if task_by_name(path) is not None:
                    raise
                self.unread[path] = error.message
                refusal = refusal or error
        if refusal is not None and not files:
            raise refusal
        return files

    def _named(self, split: str, path: str) -> AnnotationFile:
        if target_kind(self._raw, path) != "file":
            raise UsageError(
                f"the option `annotations` names `{safe(path)}`, which is not a file in the raw "
                "folder",
                hint="paths are relative to the raw folder, such as annotations/x.json",
            )
        return self._file(path)._replace(split=split)

    def _file(self, path: str) -> AnnotationFile:
        """A file with its tasks: by its name, or else by its annotations."""
        if target_kind(self._raw, path) == "link":
            raise RawDataError(
                f"`{safe(path)}` is a symbolic link that leads nowhere or in a circle",
                hint="correct the link; `dvc checkout` or `dvc pull` restores the target of a link "
                "into DVC's cache",
            )
        named = task_by_name(path)
        if named is not None:
            tasks: tuple[str, ...] = (named,)
        else:
            self._documents[path] = document = read_document(self._raw, path)
            tasks = document.tasks()
        return AnnotationFile(path, tasks, split_word(path, tasks[0]))

    def _usual_paths(self) -> list[str]:
        """The JSON files of the first usual place that has any."""
        entries = [entry.path for entry in self._raw.list(recursive=False)]
        folders = sorted(path for path in entries if target_kind(self._raw, path) == "dir")
        found = self._json_in(_FOLDER) if _FOLDER in folders else []
        if not found:
            roboflow = (_ROBOFLOW, *(f"{folder}/{_ROBOFLOW}" for folder in folders))
            found = [path for path in roboflow if target_kind(self._raw, path) == "file"]
        if not found:
            found = self._json_in("")
        if not found:
            splits = [folder for folder in folders if split_word(f"{folder}/x.json", "")]
            found = [path for folder in splits for path in self._json_in(folder)]
        return found

    def _json_in(self, folder: str) -> list[str]:
        return [
            entry.path
            for entry in self._raw.list(folder, recursive=False)
            if entry.path.endswith(".json") and target_kind(self._raw, entry.path) != "dir"
        ]


def target_kind(raw: Storage, path: str) -> str:
    """The kind of the file at `path`, links followed; empty if it does not exist."""
    entry = raw.stat(path, follow="all")
    return entry.kind if entry is not None else ""


def task_by_name(path: str) -> str | None:
    """The task of a file by its name: `instances` for ``annotations/instances_train2017.json``.

    None if the name has no split, or if the word after the task is not a usual one for a
    split: ``panoptic_coco_detection_format.json`` is not panoptic.
    """
    match = _NAME.fullmatch(_stem(path))
    if match is None or (match["word"] and not _SPLIT_WORD.fullmatch(match["word"])):
        return None
    task = _TASK_WORDS[match["task"].lower()]
    # `labels.json` alone may hold anything.
    return None if task == "labels" and not match["word"] else task


def split_word(path: str, task: str) -> str:
    """The part of a file's name, or else its folder's, that identifies its split; may be empty."""
    stem = _stem(path)
    match = _NAME.fullmatch(stem)
    if match is not None and _TASK_WORDS[match["task"].lower()] == task:
        return match["word"] or ""
    words = {word for word in re.split(r"[^A-Za-z0-9]+", stem) if _SPLIT_WORD.fullmatch(word)}
    if len(words) == 1:
        return words.pop()
    folder = path.rpartition("/")[0].rpartition("/")[2]
    return folder if not words and _SPLIT_WORD.fullmatch(folder) else ""


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")


def split_names(words: Iterable[str]) -> dict[str, str]:
    """Name of the split by word: ``train2017`` is `train`, ``val2017`` is `validation`.

    Years are left out unless two words differ only by them. Two splits are never merged.
    """
    short = {word: re.sub(rf"{_YEAR}\Z", "", word) for word in sorted(set(words))}
    counts = Counter(short.values())
    plain = {}
    for word, without_year in short.items():
        name = without_year if counts[without_year] == 1 else word
        if name.lower() in ("", "default"):
            name = "train"
        # Letters, digits and underscores only: the name becomes a part of file names.
        plain[word] = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "train"
    normal = normal_splits(set(plain.values()))
    return {word: normal[name] for word, name in plain.items()}


def _choose_tasks(files: Sequence[AnnotationFile], options: CocoOptions) -> list[str]:
    if options.tasks:
        return [task for task in TASKS if task in options.tasks]
    main = {file.tasks[0] for file in files}
    tasks = [task for task in TASKS if task in main]
    if not tasks:
        raise RawDataError(
            f"{format_names(file.path for file in files)}: labels of whole images are not read",
            hint="put the images into folders of classes, and use the source `imagefolder`",
        )
    if options.annotations:
        return tasks
    if "instances" in tasks:
        return ["instances"]
    annotated = [task for task in tasks if task != "images"]
    if len(annotated) > 1:
        folder = files[0].path.rpartition("/")[0] or "."
        raise RawDataError(
            f"`{folder}` holds {', '.join(annotated)}, and no instances",
            hint=f"select: --option tasks={','.join(annotated)}, or one of them",
        )
    return annotated or tasks


def _file_for(files: Sequence[AnnotationFile], task: str, split: str) -> AnnotationFile | None:
    """The file of a split that is read for a task."""
    main = [file for file in files if file.tasks[0] == task]
    serving = main or [file for file in files if task in file.tasks]
    if len(serving) > 1:
        raise RawDataError(
            f"several files hold {task} of the split `{split}`: "
            f"{format_names(file.path for file in serving)}",
            hint=f"select one: --option annotations={safe(serving[0].path)}",
        )
    return serving[0] if serving else None


def format_names(names: Iterable[str], count: int = 3) -> str:
    """The first names, escaped, and how many more there are."""
    every = list(names)
    shown = ", ".join(f"`{safe(name, limit=100)}`" for name in every[:count])
    return shown + (f" and {len(every) - count} more" if len(every) > count else "")
