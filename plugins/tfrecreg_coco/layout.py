"""Which files of a folder are read for which split and task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tfrecreg.api import RawDataError, Storage, UsageError, safe
from tfrecreg_coco.contents import kinds_of, refuse_what_is_no_object
from tfrecreg_coco.names import by_name, split_names, split_word
from tfrecreg_coco.options import KINDS, CocoOptions, named

__all__ = ["Chosen", "JsonFile", "choose", "few", "find_files"]

_FOLDER = "annotations"
_ROBOFLOW = "_annotations.coco.json"
_HINT = "`--raw` takes the folder above `annotations`; or say `--option annotations=FILE`"


class JsonFile(NamedTuple):
    """A file of annotations."""

    path: str
    kinds: tuple[str, ...]
    """What it can be read for, the first of them above all."""
    word: str
    """What its name says of its split: ``train2017``; may be empty."""
    split: str = ""
    """Its split, where an option names it."""


class Chosen(NamedTuple):
    """What is read of one split."""

    split: str
    words: tuple[str, ...]
    """What the names of its files say of it."""
    files: dict[str, str]
    """Task to file, in the order in which they are merged; two tasks may have one file."""


def find_files(raw: Storage, options: CocoOptions) -> list[JsonFile]:
    """The files of annotations in their usual places, or those that the options name.

    Raises:
        RawDataError: there are none, or what lies there is no dataset.
        UsageError: an option names a file that is not there.
    """
    root = raw.stat("")
    if root is None or root.kind != "dir":
        raise RawDataError(f"no such folder: `{safe(raw.root, limit=4096)}`", hint=_HINT)
    if options.annotations:
        return [_given(raw, split, path) for split, path in named(options.annotations)]
    paths = _usual(raw)
    if not paths:
        _refuse_broken_links(raw)
        found = few(entry.path for entry in raw.list(recursive=False))
        raise RawDataError(
            f"`{safe(raw.root, limit=4096)}` holds no annotations: expected JSON in "
            f"`{_FOLDER}/`, found {found or 'nothing'}",
            hint=_HINT,
        )
    files: list[JsonFile] = []
    refusal: RawDataError | None = None
    for path in paths:
        kind = by_name(_stem(path))
        kinds: tuple[str, ...] = (kind,) if kind is not None else ()
        try:
            # Result lists lie beside datasets, and are not read because of that.
            refuse_what_is_no_object(raw, path)
        except RawDataError as error:
            if kind is not None:
                raise
            refusal = refusal or error
            continue
        kinds = kinds or kinds_of(raw, path)
        if kinds:
            files.append(JsonFile(path, kinds, split_word(path, kinds[0])))
        elif refusal is None:
            refusal = _no_images(path)
    if not files and refusal is not None:
        raise refusal
    return files


def _no_images(path: str) -> RawDataError:
    return RawDataError(
        f"`{safe(path)}` has no `images`: expected an object with `images`, `annotations` and "
        "`categories`",
        hint="a dataset of COCO's form lists its pictures",
    )


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")


def _usual(raw: Storage) -> list[str]:
    """The JSON files of the first usual place that has any."""
    top = list(raw.list(recursive=False))
    folders = [entry.path for entry in top if entry.kind == "dir"]
    links = [entry.path for entry in top if entry.kind == "link"]
    folders += [path for path in links if _kind(raw, path) == "dir"]
    found = _json_in(raw, _FOLDER) if _FOLDER in folders else []
    if not found:
        found = [
            path
            for path in (_ROBOFLOW, *(f"{folder}/{_ROBOFLOW}" for folder in sorted(folders)))
            if _kind(raw, path) == "file"
        ]
    if not found:
        found = _json_in(raw, "")
    if not found:
        usual = [folder for folder in sorted(folders) if split_word(f"{folder}/x.json", "")]
        found = [path for folder in usual for path in _json_in(raw, folder)]
    return found


def _refuse_broken_links(raw: Storage) -> None:
    """Name the link to annotations that leads nowhere, where there is one.

    Raises:
        RawDataError: there is one.
    """
    for folder in ("", _FOLDER):
        for entry in raw.list(folder, recursive=False) if _kind(raw, folder) == "dir" else ():
            usual = entry.path == _FOLDER or entry.path.endswith(".json")
            if usual and _kind(raw, entry.path) == "link":
                raise RawDataError(
                    f"`{safe(entry.path)}` is a symbolic link that leads nowhere or in a circle",
                    hint="correct the link; `dvc checkout` or `dvc pull` brings what a link into "
                    "DVC's cache lacks",
                )


def _json_in(raw: Storage, folder: str) -> list[str]:
    return [
        entry.path
        for entry in raw.list(folder, recursive=False)
        if entry.path.endswith(".json") and _kind(raw, entry.path) == "file"
    ]


def _kind(raw: Storage, path: str) -> str:
    entry = raw.stat(path, follow="all")
    return entry.kind if entry is not None else ""


def _given(raw: Storage, split: str, path: str) -> JsonFile:
    entry = raw.stat(path, follow="all")
    if entry is None or entry.kind != "file":
        what = "is not there" if entry is None else "is no file in the raw folder"
        raise UsageError(
            f"the option `annotations` names `{safe(path)}`, which {what}",
            hint="paths are relative to the raw folder: --option annotations=annotations/x.json",
        )
    refuse_what_is_no_object(raw, path)
    kind = by_name(_stem(path))
    kinds = (kind,) if kind is not None else kinds_of(raw, path)
    if not kinds:
        raise _no_images(path)
    return JsonFile(path, kinds, split_word(path, kinds[0]), split)


def choose(files: Sequence[JsonFile], options: CocoOptions) -> list[Chosen]:
    """Which file is read for which split and task; train first, then by name.

    Raises:
        RawDataError: a task that no file serves, two files that serve the same, or a split with a
            part of the tasks only.
        UsageError: a split that there is not.
    """
    tasks = _tasks(files, options)
    names = split_names(file.word for file in files if not file.split)
    by_split: dict[str, list[JsonFile]] = defaultdict(list)
    for file in files:
        by_split[file.split or names[file.word]].append(file)
    chosen: list[Chosen] = []
    for split in sorted(by_split, key=lambda each: (each != "train", each)):
        if options.splits and split not in options.splits:
            continue
        served = {task: _serving(by_split[split], task, split) for task in tasks}
        used = {task: file for task, file in served.items() if file is not None}
        if not used:
            continue
        missing = [task for task in tasks if task not in used and task != "images"]
        if missing and set(used) != {"images"}:
            raise RawDataError(
                f"the split `{split}` has {_listed(used)}, no {_listed(missing)}",
                hint=f"leave it out, or the task: --option splits={_others(by_split, split)}",
            )
        words = tuple(dict.fromkeys(file.word for file in used.values()))
        chosen.append(Chosen(split, words, {task: file.path for task, file in used.items()}))
    unknown = [split for split in options.splits if split not in by_split]
    if unknown:
        raise UsageError(
            f"the option `splits` names `{safe(unknown[0])}`, and there are "
            f"{_listed(f'`{split}`' for split in sorted(by_split))}",
            hint="`--dry-run` without it shows what is found",
        )
    missing = [task for task in tasks if not any(task in each.files for each in chosen)]
    if missing:
        raise RawDataError(
            f"no file holds {_listed(missing)}: found {few(file.path for file in files)}",
            hint="leave the task out, or name its file: --option annotations=FILE,FILE",
        )
    return chosen


def _tasks(files: Sequence[JsonFile], options: CocoOptions) -> list[str]:
    if options.tasks:
        return [kind for kind in KINDS if kind in options.tasks]
    first = {file.kinds[0] for file in files}
    kinds = [kind for kind in KINDS if kind in first]
    if not kinds:
        raise RawDataError(
            f"{few(file.path for file in files)}: labels of whole pictures are not read",
            hint="put the pictures into folders of classes, and use the source `imagefolder`",
        )
    if options.annotations:
        return kinds
    if "instances" in kinds:
        return ["instances"]
    more = [kind for kind in kinds if kind != "images"]
    if len(more) > 1:
        raise RawDataError(
            f"`{files[0].path.rpartition('/')[0] or '.'}` holds {_listed(more)}, and no instances",
            hint=f"choose: --option tasks={','.join(more)}, or one of them",
        )
    return more or kinds


def _serving(files: Sequence[JsonFile], task: str, split: str) -> JsonFile | None:
    """The file of a split that is read for a task."""
    first = [file for file in files if file.kinds[0] == task]
    serving = first or [file for file in files if task in file.kinds]
    if len(serving) > 1:
        raise RawDataError(
            f"several files hold {task} of the split `{split}`: "
            f"{few(file.path for file in serving)}",
            hint=f"choose one: --option annotations={safe(serving[0].path)}",
        )
    return serving[0] if serving else None


def _others(by_split: Iterable[str], split: str) -> str:
    return ",".join(sorted(set(by_split) - {split})) or split


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def few(names: Iterable[str], count: int = 3) -> str:
    """The first names, escaped, and how many more there are."""
    every = list(names)
    shown = ", ".join(f"`{safe(name, limit=100)}`" for name in every[:count])
    return shown + (f" and {len(every) - count} more" if len(every) > count else "")
