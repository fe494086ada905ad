"""Which JSON files of a folder are read for which split and task, by their names and contents."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from tfrecreg.api import RawDataError, Storage, UsageError, normal_splits, safe
from tfrecreg_coco.coco_options import TASKS, CocoOptions, split_and_path
from tfrecreg_coco.json_scanner import ListScan, decode_loosely

_FOLDER = "annotations"
_ROBOFLOW = "_annotations.coco.json"
_TAKES = "name the folder above `annotations` with `--raw`, or set `--option annotations=FILE`"
_DEFAULT_SPLIT = "train"
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
_FETCH_AGAIN = "fetch it again, and compare its checksum with the publisher's"
_OTHER_FORMATS = (
    (b"version https://git-lfs", "a git-lfs pointer, not the file it stands for", "git lfs pull"),
    (b"\x1f\x8b", "gzip", "gunzip"),
    (b"PK\x03\x04", "a zip archive", "unzip"),
    (b"<", "an HTML or XML page", ""),
    (b"\xff\xfe", "UTF-16", "iconv -f utf-16 -t utf-8"),
    (b"\xfe\xff", "UTF-16", "iconv -f utf-16 -t utf-8"),
)


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


def find_annotation_files(
    raw: Storage, options: CocoOptions, unread: dict[str, str] | None = None
) -> list[AnnotationFile]:
    """The files of annotations in their usual places, or those that the options name."""
    root = raw.stat("")
    if root is None or root.kind != "dir":
        raise RawDataError(f"no such folder: `{safe(raw.root, limit=4096)}`", hint=_TAKES)
    if options.annotations:
        return [_named_file(raw, *split_and_path(value)) for value in options.annotations]
    paths = _usual_paths(raw)
    if not paths:
        _reject_broken_links(raw)
        found = format_names(entry.path for entry in raw.list(recursive=False))
        raise RawDataError(
            f"`{safe(raw.root, limit=4096)}` holds no annotations: expected JSON in "
            f"`{_FOLDER}/`, found {found or 'nothing'}",
            hint=_TAKES,
        )
    files: list[AnnotationFile] = []
    refusal: RawDataError | None = None
    unread = {} if unread is None else unread
    for path in paths:
        try:
            _reject_other_formats(raw, path)
        except RawDataError as error:
            # Lists of results are beside datasets, so only a name of COCO's makes it an error.
            if task_by_name(path) is not None:
                raise
            refusal = refusal or error
            unread.update({path: error.message})
            continue
        tasks = _tasks_of(raw, path)
        if tasks:
            files.append(AnnotationFile(path, tasks, split_word(path, tasks[0])))
        else:
            refusal = refusal or _no_images(path)
            unread.update({path: _no_images(path).message})
    if not files and refusal is not None:
        raise refusal
    return files


def _named_file(raw: Storage, split: str, path: str) -> AnnotationFile:
    kind = target_kind(raw, path)
    if kind != "file":
        problem = "is not a file in the raw folder" if kind else "is not there"
        raise UsageError(
            f"the option `annotations` names `{safe(path)}`, which {problem}",
            hint="paths are relative to the raw folder: --option annotations=annotations/x.json",
        )
    _reject_other_formats(raw, path)
    tasks = _tasks_of(raw, path)
    if not tasks:
        raise _no_images(path)
    return AnnotationFile(path, tasks, split_word(path, tasks[0]), split)


def _no_images(path: str) -> RawDataError:
    return RawDataError(
        f"`{safe(path)}` has no `images`: expected an object with `images`, `annotations` and "
        "`categories`",
        hint="a dataset in COCO's format lists its images",
    )


def _usual_paths(raw: Storage) -> list[str]:
    """The JSON files of the first usual place that has any."""
    folders = [
        entry.path
        for entry in raw.list(recursive=False)
        if entry.kind == "dir" or (entry.kind == "link" and target_kind(raw, entry.path) == "dir")
    ]
    folders.sort()
    found = _json_in(raw, _FOLDER) if _FOLDER in folders else []
    if not found:
        roboflow = (_ROBOFLOW, *(f"{folder}/{_ROBOFLOW}" for folder in folders))
        found = [path for path in roboflow if target_kind(raw, path) == "file"]
    if not found:
        found = _json_in(raw, "")
    if not found:
        splits = [folder for folder in folders if split_word(f"{folder}/x.json", "")]
        found = [path for folder in splits for path in _json_in(raw, folder)]
    return found


def _json_in(raw: Storage, folder: str) -> list[str]:
    return [
        entry.path
        for entry in raw.list(folder, recursive=False)
        if entry.path.endswith(".json") and target_kind(raw, entry.path) == "file"
    ]


def _reject_broken_links(raw: Storage) -> None:
    for folder in ("", _FOLDER):
        for entry in raw.list(folder, recursive=False) if target_kind(raw, folder) == "dir" else ():
            usual = entry.path == _FOLDER or entry.path.endswith(".json")
            if usual and target_kind(raw, entry.path) == "link":
                raise RawDataError(
                    f"`{safe(entry.path)}` is a symbolic link that leads nowhere or in a circle",
                    hint="correct the link; `dvc checkout` or `dvc pull` restores the target of a "
                    "link into DVC's cache",
                )


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
            name = _DEFAULT_SPLIT
        # Letters, digits and underscores only: the name becomes a part of file names.
        plain[word] = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or _DEFAULT_SPLIT
    normal = normal_splits(set(plain.values()))
    return {word: normal[name] for word, name in plain.items()}


def _reject_other_formats(raw: Storage, path: str) -> None:
    """Look at the first bytes of a file."""
    with raw.open(path) as reader:
        head = reader.read_at(0, 1 << 16)
    name = safe(path)
    if not head:
        raise RawDataError(f"`{name}` is empty", hint=_FETCH_AGAIN)
    for start, format_, command in _OTHER_FORMATS:
        if head.startswith(start):
            hint = f"run `{command}`" if command else _FETCH_AGAIN
            raise RawDataError(f"`{name}` is {format_}", hint=hint)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        kind = _kind_of_list(text)
        raise RawDataError(
            f"`{name}` is {kind}, not a dataset: expected an object with `images`, "
            "`annotations` and `categories`",
            hint="results are made from a dataset: name the dataset's own file"
            if "results" in kind
            else "name its folder with `--raw`, and the file with `--option annotations=`",
        )
    if not text.startswith(b"{"):
        problem = f"is not JSON: expected `{{` at its start, found {text[:8]!r}"
        raise RawDataError(f"`{name}` {problem}", hint=_FETCH_AGAIN)


def _kind_of_list(text: bytes) -> str:
    """The probable content of a list, by its first element."""
    try:
        first, _ = json.JSONDecoder().raw_decode(text[1:].decode("utf-8", "replace").lstrip())
    except (ValueError, RecursionError):
        return "a list"
    if not isinstance(first, dict):
        return "a list"
    keys = ", ".join(f"`{safe(str(key), limit=40)}`" for key in list(first)[:6])
    return f"a list of {'results' if 'image_id' in first else 'objects'} with {keys}"


def _tasks_of(raw: Storage, path: str) -> tuple[str, ...]:
    """The tasks that a file can be read for, the main task first; empty where it is not a dataset.

    By its name, or else by its first annotation: a file of keypoints is one of instances as well.
    `labels` are those of whole images, which this source does not read.
    """
    named = task_by_name(path)
    if named is not None:
        return (named,)
    first, members = _first_of(raw, path, "annotations")
    if not first:
        if "images" not in members:
            return ()
        whole = "annotations" in members and "categories" in members
        return ("instances",) if whole else ("images",)
    if "segments_info" in first:
        return ("panoptic",)
    if "keypoints" in first:
        return ("keypoints", "instances")
    if "caption" in first:
        return ("captions",)
    if "bbox" in first or "segmentation" in first:
        return ("instances", "stuff")
    return ("labels",)


def _first_of(raw: Storage, path: str, section: str) -> tuple[dict[str, Any], Collection[str]]:
    """The first element of a list in a file, empty without one; and the members of the file."""
    scan = ListScan(raw, path, frozenset({section}))
    with closing(iter(scan)) as batches:
        batch = next(batches, None)
    if batch is None:
        return {}, scan.members
    try:
        found: dict[str, Any] = decode_loosely(batch.element(0), dict)
    except ValueError as error:
        raise RawDataError(
            f"`{safe(path)}` is not JSON in the first of its {section}: {safe(str(error))}",
            hint=_FETCH_AGAIN,
        ) from None
    return found, scan.members


def url_member(raw: Storage, path: str) -> str:
    """The member of the first image of a file that has a URL; empty without one."""
    first, _ = _first_of(raw, path, "images")
    values = ((name, str(value)) for name, value in first.items())
    return next((name for name, value in values if value.startswith(("http:", "https:"))), "")


def choose_files(files: Sequence[AnnotationFile], options: CocoOptions) -> list[Chosen]:
    """Which file is read for which split and task; train first, then by name."""
    tasks = _choose_tasks(files, options)
    names = split_names(file.word for file in files if not file.split)
    by_split: dict[str, list[AnnotationFile]] = defaultdict(list)
    for file in files:
        by_split[file.split or names[file.word]].append(file)
    chosen: list[Chosen] = []
    for split in sorted(by_split, key=lambda each: (each != "train", each)):
        if options.splits and split not in options.splits:
            continue
        serving = {task: _file_for(by_split[split], task, split) for task in tasks}
        used = {task: file for task, file in serving.items() if file is not None}
        if not used:
            continue
        missing = [task for task in tasks if task not in used and task != "images"]
        if missing and set(used) != {"images"}:
            others = ",".join(sorted(set(by_split) - {split})) or split
            raise RawDataError(
                f"the split `{split}` has {', '.join(used)}, no {', '.join(missing)}",
                hint=f"leave it out, or the task: --option splits={others}",
            )
        words = tuple(dict.fromkeys(file.word for file in used.values()))
        chosen.append(Chosen(split, words, {task: file.path for task, file in used.items()}))
    unknown = [split for split in options.splits if split not in by_split]
    if unknown:
        raise UsageError(
            f"the option `splits` names `{safe(unknown[0])}`, and there are "
            + ", ".join(f"`{split}`" for split in sorted(by_split)),
            hint="`--dry-run` without it lists the splits",
        )
    missing = [task for task in tasks if not any(task in each.files for each in chosen)]
    if missing:
        found = format_names(file.path for file in files)
        raise RawDataError(
            f"no file holds {', '.join(missing)}: found {found}",
            hint="leave out the task, or name its file: --option annotations=FILE,FILE",
        )
    return chosen


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
