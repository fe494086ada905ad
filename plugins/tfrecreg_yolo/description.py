"""What describes a dataset: its classes, its splits, its keypoints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tfrecreg.api import RawDataError, Storage, UsageError, listed, safe
from tfrecreg_yolo.raw_listing import YoloListing
from tfrecreg_yolo.yaml_reader import YamlValue, read_yaml
from tfrecreg_yolo.yolo_options import YoloOptions, is_keypoint_shape

MAX_CLASSES = 1 << 16
_SPLIT_KEYS = ("train", "val", "valid", "validation", "test")
_NAMES_FILES = ("classes.txt", "obj.names")
_NUMBER = re.compile(r"[0-9]{1,9}")
_MAX_BYTES = 1 << 20
"""Most bytes of a file that describes the dataset: the names of ten thousand classes."""


class YoloDescription(NamedTuple):
    """What the files say about the dataset."""

    file: str
    """The file that describes it; empty without one."""
    root: str
    """`path` of `data.yaml`, as it is written."""
    splits: Mapping[str, Sequence[str]]
    """Folders and lists of images by split, as they are written."""
    names: Sequence[str]
    """Names of the classes in order of their numbers; a number without a class has none."""
    names_file: str
    """The file that lists the classes."""
    kpt_shape: tuple[int, ...]
    """Number of keypoints, and of numbers for each; empty where nothing says it."""
    kpt_names: Sequence[str]
    """Names of the keypoints; empty where nothing says them, or not the same for all classes."""


def read_description(raw: Storage, listing: YoloListing, options: YoloOptions) -> YoloDescription:
    """What describes the dataset: the file that an option names, a usual one, or options alone."""
    file = options.data or _usual_file(listing)
    if options.data and options.data not in listing.others:
        raise UsageError(
            f"the option `data` names `{safe(options.data)}`, not a file in the raw folder",
            hint="paths are relative to the raw folder",
        )
    found = YoloDescription(file, "", {}, (), "", (), ())
    if file.lower().endswith((".yaml", ".yml")):
        found = _of_yaml(file, read_yaml(file, listing.text(file, limit=_MAX_BYTES)))
    elif file:
        found = _of_darknet(file, listing.text(file, limit=_MAX_BYTES), listing)
    if options.kpt_shape:
        found = found._replace(kpt_shape=options.kpt_shape)
    if options.classes:
        return found._replace(names=options.classes)
    if not found.names:
        path = found.names_file or _names_file(listing)
        if not path:
            raise RawDataError(
                f"no file of `{safe(raw.root, limit=4096)}` lists the names of the classes: "
                f"expected `names` in `{safe(file or 'data.yaml')}`, or `classes.txt`",
                hint="--option classes=cat,dog names them in the order of their numbers",
            )
        found = found._replace(names=_read_names(listing, path), names_file=path)
    return found


def _usual_file(listing: YoloListing) -> str:
    """The file that describes the dataset by its name; empty without one."""
    for name in ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml"):
        if name in listing.others:
            return name
    darknet = [name for name in listing.others if name.endswith(".data") and name.count("/") < 2]
    alone = darknet or [
        name for name in listing.others if "/" not in name and name.endswith((".yaml", ".yml"))
    ]
    if len(alone) > 1:
        raise RawDataError(
            f"several files may describe the dataset: {listed(alone[:5])}",
            hint=f"--option data={safe(alone[0])}",
        )
    return alone[0] if alone else ""


def _of_yaml(file: str, found: Mapping[str, YamlValue]) -> YoloDescription:
    names = _class_names(file, found.get("names", ""))
    count = _integer(file, "nc", found.get("nc", ""))
    if count is not None and names and count != len(names):
        raise RawDataError(
            f"`{safe(file)}` has {len(names)} `names`, and says `nc: {count}`",
            hint="correct the file: set `nc` to the number of names, or remove it",
        )
    if not names and count is not None:
        names = [f"class{number}" for number in range(count)]
    splits = {key: paths for key in _SPLIT_KEYS if (paths := _paths(file, key, found.get(key, "")))}
    root = found.get("path", "")
    if not isinstance(root, str):
        raise _wrong(file, "path", "a folder")
    shape = _keypoint_shape(file, found.get("kpt_shape", ""))
    return YoloDescription(file, root, splits, names, "", shape, _keypoint_names(found, shape))


def _class_names(file: str, found: YamlValue) -> list[str]:
    """The names of a list, or of a mapping of numbers to names."""
    if isinstance(found, str):
        if found:
            raise _wrong(file, "names", "a list, or a mapping of numbers to names")
        return []
    if not isinstance(found, Mapping):
        pairs: Iterable[tuple[str, YamlValue]] = (
            (str(place), each) for place, each in enumerate(found)
        )
    else:
        pairs = found.items()
    names: dict[int, str] = {}
    for key, name in pairs:
        number = int(key) if _NUMBER.fullmatch(key) else MAX_CLASSES
        if number >= MAX_CLASSES or not isinstance(name, str) or number in names:
            raise RawDataError(
                f"`{safe(file)}`: the entry `{safe(key)}` of `names` is not a class: expected a "
                f"number from 0 to {MAX_CLASSES - 1}, once, and its name",
                hint="`names: [cat, dog]`, or `names: {0: cat, 1: dog}`",
            )
        names[number] = name
    return [names.get(number, "") for number in range(max(names, default=-1) + 1)]


def _paths(file: str, key: str, found: YamlValue) -> list[str]:
    values = [found] if isinstance(found, str) else found
    if isinstance(values, Mapping) or not all(isinstance(each, str) for each in values):
        raise _wrong(file, key, "a folder, a list of images, or a list of these")
    return [each for each in values if isinstance(each, str) and each]


def _integer(file: str, key: str, found: YamlValue) -> int | None:
    if found == "":
        return None
    if not isinstance(found, str) or not _NUMBER.fullmatch(found) or int(found) > MAX_CLASSES:
        raise _wrong(file, key, f"a number up to {MAX_CLASSES}")
    return int(found)


def _keypoint_shape(file: str, found: YamlValue) -> tuple[int, ...]:
    if found == "":
        return ()
    values = found if isinstance(found, Sequence) and not isinstance(found, str) else ()
    numbers = [each for each in values if isinstance(each, str) and _NUMBER.fullmatch(each)]
    shape = tuple(map(int, numbers))
    if len(numbers) != len(values) or not is_keypoint_shape(shape):
        raise _wrong(file, "kpt_shape", "the number of keypoints and 2 or 3, as `[17, 3]`")
    return shape


def _keypoint_names(found: Mapping[str, YamlValue], shape: tuple[int, ...]) -> Sequence[str]:
    """The names of the keypoints, if there are some and all classes agree."""
    by_class = found.get("kpt_names", "")
    lists = list(by_class.values()) if isinstance(by_class, Mapping) else [by_class]
    named = {
        tuple(each for each in names if isinstance(each, str))
        for names in lists
        if not isinstance(names, str | Mapping)
    }
    (names,) = named if len(named) == 1 else ((),)
    return names if shape and len(names) == shape[0] else ()


def _wrong(file: str, key: str, expected: str) -> RawDataError:
    return RawDataError(
        f"`{safe(file)}`: `{key}` is not {expected}", hint="correct the file, or name another one"
    )


def _of_darknet(file: str, text: str, listing: YoloListing) -> YoloDescription:
    """A file of lines such as `train = data/train.txt`."""
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    found = {key.strip(): value.strip() for key, sign, value in pairs if sign}
    splits = {key: [found[key]] for key in _SPLIT_KEYS if found.get(key)}
    names_file = found.get("names", "")
    if names_file:
        known = {*listing.others, *listing.texts}
        folder = file.rpartition("/")[0]
        tail = names_file.replace("\\", "/").rpartition("/")[2]
        places = (names_file, f"{folder}/{tail}", tail)
        names_file = next((place for place in places if place in known), "")
        if not names_file:
            raise RawDataError(
                f"`{safe(file)}` names `{safe(found['names'])}` for the classes, which is not a "
                "file of the raw data",
                hint="add the file, or name the classes: --option classes=cat,dog",
            )
    return YoloDescription(file, "", splits, (), names_file, (), ())


def _names_file(listing: YoloListing) -> str:
    """The file that lists the classes; empty without one. Copies of one list are one."""
    paths = [
        path
        for path in sorted((*listing.texts, *listing.others), key=lambda path: path.count("/"))
        if path.rpartition("/")[2] in _NAMES_FILES
    ]
    for path in paths[1:]:
        if _read_names(listing, path) != _read_names(listing, paths[0]):
            raise RawDataError(
                f"`{safe(paths[0])}` and `{safe(path)}` list different classes",
                hint="--option classes=cat,dog names them in the order of their numbers",
            )
    return paths[0] if paths else ""


def _read_names(listing: YoloListing, path: str) -> list[str]:
    lines = listing.text(path, limit=_MAX_BYTES).rstrip().split("\n")
    names = [line.strip() for line in lines]
    if "" in names or len(names) > MAX_CLASSES:
        problem = f"line {names.index('') + 1} is empty" if "" in names else "too many lines"
        raise RawDataError(
            f"`{safe(path)}` does not list the classes: {problem}",
            hint="expected the name of a class in each line, in the order of their numbers",
        )
    return names
