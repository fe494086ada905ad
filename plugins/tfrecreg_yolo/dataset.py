"""The raw data of the source `yolo`: its files, their description, the images of each split."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from posixpath import join, normpath
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from tfrecreg.api import (
    MissingExtraError,
    ObjectOptions,
    RawDataError,
    Remark,
    Storage,
    Symlinks,
    choose_splits,
    hidden_part,
    list_files,
    listed,
    normal_splits,
    path_ends,
    paths_remark,
    read_text,
    safe,
    usual_split,
)

SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp"),
    # Images that no record can have: they are skipped with a reason (SRC110).
    *(".tif", ".tiff", ".mpo", ".dng", ".pfm", ".heic", ".heif", ".avif", ".jp2"),
)
YoloTask = Literal["detect", "segment", "pose", "obb"]
_MAX_BYTES = 1 << 20
"""Maximum size in bytes of a file that describes the dataset: room for ten thousand class names."""
_YAML_NAMES = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")
_NAMES_FILES = ("classes.txt", "obj.names")
_SPLIT_KEYS = ("train", "val", "valid", "validation", "test")
_ROOT = "the raw folder"


@dataclass(frozen=True)
class YoloOptions(ObjectOptions):
    """Options of the source `yolo`."""

    task: Literal["auto", "detect", "segment", "pose", "obb"] = "auto"
    """The content of the rows: boxes, polygons, boxes with keypoints, or oriented boxes. `detect`
    takes the boxes around polygons. `auto` examines all label files, and refuses ambiguous rows."""
    data: str = ""
    """The file that describes the dataset, if it is not `data.yaml` or `obj.data`."""
    classes: tuple[str, ...] = ()
    """The names of the classes in order of their numbers, if no file lists them."""
    kpt_shape: tuple[int, ...] = ()
    """The number of keypoints and the numbers per keypoint, if `data.yaml` lacks them: `17,3`."""
    splits: tuple[str, ...] = ()
    """Read only these splits."""
    unlabeled: Literal["background", "skip"] = "background"
    """Handling of images without a label file: write them without objects, or skip them."""
    symlinks: Symlinks = "all"
    """`all`: follow all symbolic links. `inside`: follow links that stay in the raw
    folder. `none`: follow no links."""


class Description(msgspec.Struct):
    """The keys read from `data.yaml` or `obj.data`, and the option `kpt_shape`."""

    path: str = ""
    train: str | list[str] = ""
    val: str | list[str] = ""
    valid: str | list[str] = ""
    validation: str | list[str] = ""
    test: str | list[str] = ""
    names: list[str] | dict[Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)], str] = []
    nc: Annotated[int, msgspec.Meta(ge=0, le=1 << 16)] | None = None
    kpt_shape: tuple[Annotated[int, msgspec.Meta(ge=1, le=10_000)], Literal[2, 3]] | None = None
    kpt_names: list[str] | dict[str, list[str]] = []


class YoloSplit(NamedTuple):
    """A split, with its images in the order of the data."""

    name: str
    key: str
    """The name of the split in the description."""
    paths: Sequence[str]
    """Its folders and lists of images, as they are written."""
    origins: list[str]
    """The same folders and lists, as paths in the raw folder."""
    images: list[str]
    """Paths of images, including images that a list names but that do not exist."""


class YoloDataset:
    """The raw data, listed and described once."""

    def __init__(self, raw: Storage, options: YoloOptions) -> None:
        self._raw = raw
        self._options = options
        self.files = {entry.path: entry for entry in list_files(raw, symlinks=options.symlinks)}
        self.images = [
            path for path in self.files if path.lower().endswith(SUFFIXES) and not hidden_part(path)
        ]
        if not self.images:
            raise RawDataError(
                f"`{safe(raw.root, limit=4096)}` holds no image",
                hint="`--raw` takes the folder that contains `images` and `labels`, or `data.yaml`",
            )
        self._folders = {""}
        """Folders that contain images at any depth. The raw folder is the empty path."""
        for path in self.images:
            while path := path.rpartition("/")[0]:
                self._folders.add(path)
        self.remarks: list[Remark] = []
        self.file = options.data.removeprefix("./") or self._usual_description()
        """The file that describes the dataset; empty without one."""
        self.names_file = ""
        """The file that lists the classes, if the description does not list them."""
        says = self._description()
        beside = (self.file.rpartition("/")[0], "")
        root, _ = _find(says.path, beside, self._folders) if says.path else (None, False)
        self._bases = beside if root is None else (root, *beside)
        self.kpt_shape = says.kpt_shape or ()
        lists = says.kpt_names if isinstance(says.kpt_names, dict) else {"": says.kpt_names}
        named = {tuple(names) for names in lists.values()}
        (names,) = named if len(named) == 1 else ((),)
        self.kpt_names = names if self.kpt_shape and len(names) == self.kpt_shape[0] else ()
        """Names of the keypoints; empty if they are unknown or differ between classes."""
        self.names = self._classes(says)
        """Names of the classes in order of their numbers. An unused number has an empty name."""
        self.splits = self._find_splits(says)
        origins = [origin for split in self.splits for origin in split.origins]
        self.lists = [origin for origin in origins if origin in self.files]
        """The lists of images that were read."""
        self._remark_others()

    def label(self, image: str) -> str:
        """The label file of an image; empty if the image has no label file."""
        return next((path for path in label_paths(image) if path in self.files), "")

    def _remark_others(self) -> None:
        """Add remarks that count the images without a split and the other unread files."""
        first = self.splits[0].name
        taken = {image for split in self.splits for image in split.images}
        known = {*self.images, *self.lists, self.file, self.names_file}
        known.update(path for image in self.images for path in label_paths(image))
        others = [path for path in self.files if path not in known]
        orphans = [image for image in self.images if image not in taken]
        if self._options.splits:  # this option omits images on purpose
            orphans = []
        for code, paths, why in (
            ("SRC117", orphans, "in no split"),
            ("SRC015", others, "neither an image nor the label file of an image"),
        ):
            if paths:
                self.remarks.append(paths_remark(first, code, paths, why))

    def _text(self, path: str, limit: int = _MAX_BYTES) -> str:
        entry, symlinks = self.files.get(path), self._options.symlinks
        return read_text(self._raw, path, limit=limit, entry=entry, symlinks=symlinks)

    def _usual_description(self) -> str:
        found = (
            [name for name in _YAML_NAMES if name in self.files][:1]
            or [name for name in self.files if name.endswith(".data") and name.count("/") < 2]
            or [name for name in self.files if name.endswith((".yaml", ".yml")) and "/" not in name]
        )
        if len(found) > 1:
            names = listed(found, most=5)
            raise RawDataError(f"{names} may describe the dataset: `--option data=` selects one")
        return found[0] if found else ""

    def _description(self) -> Description:
        """The content of the file that describes the dataset."""
        found: dict[str, Any] = {}
        text = self._text(self.file) if self.file else ""
        if self.file.lower().endswith((".yaml", ".yml")):
            found = _read_yaml(self.file, text)
        elif self.file:
            # Darknet's format: lines such as `train = data/train.txt`.
            pairs = (line.partition("=") for line in text.splitlines())
            found = {key.strip(): value.strip() for key, sign, value in pairs if sign}
            self.names_file = found.pop("names", "")
        found["kpt_shape"] = self._options.kpt_shape or found.get("kpt_shape", "")
        try:
            said = {key: value for key, value in found.items() if value != ""}
            return msgspec.convert(said, Description, strict=False, str_keys=True)
        except msgspec.ValidationError as error:
            file = f"`{self.file}`" if self.file else "an option"
            raise RawDataError(f"{file} cannot be used: {error}") from None

    def _classes(self, says: Description) -> Sequence[str]:
        names = says.names
        if isinstance(names, dict):
            names = [names.get(number, "") for number in range(max(names, default=-1) + 1)]
        if says.nc is not None and names and says.nc != len(names):
            raise RawDataError(f"`{self.file}` has {len(names)} `names`, but says `nc: {says.nc}`")
        numbered = [f"class{number}" for number in range(says.nc or 0)]
        return self._options.classes or names or numbered or self._listed_classes()

    def _listed_classes(self) -> Sequence[str]:
        """The classes in the file that lists them. Copies of one list count as one."""
        if self.names_file:
            path, _ = _find(self.names_file, self._bases, self.files)
            paths = [] if path is None else [path]
        else:
            paths = [path for path in self.files if path.rpartition("/")[2] in _NAMES_FILES]
            paths.sort(key=lambda path: (path.count("/"), path))
        if not paths:
            raise RawDataError(
                f"no file of `{safe(self._raw.root, limit=4096)}` lists the names of the classes: "
                f"expected `names` in `{self.file or 'data.yaml'}`, or "
                f"`{self.names_file or 'classes.txt'}`",
                hint="--option classes=cat,dog names them in the order of their numbers",
            )
        texts = [self._text(path) for path in paths]
        lists = [[line.strip() for line in text.rstrip().split("\n")] for text in texts]
        if any(names != lists[0] for names in lists):
            raise RawDataError(f"{listed(paths)} list different classes")
        self.names_file = paths[0]
        return lists[0]

    def _find_splits(self, says: Description) -> list[YoloSplit]:
        """The splits, from the description, else from lists in the raw folder, else from
        folders."""
        written: dict[str, Sequence[str]] = {}
        for key in _SPLIT_KEYS:
            paths = getattr(says, key)
            if found := [each for each in ([paths] if isinstance(paths, str) else paths) if each]:
                written[key] = found
        bases = self._bases if written else ("",)
        if not written:
            stems = {path.rpartition(".")[0] for path in self.images}
            top = [path for path in self.files if "/" not in path and path.endswith(".txt")]
            names = [path.removesuffix(".txt") for path in top]
            lists = [name for name in names if name not in stems and usual_split(name)]
            written = {name: [f"{name}.txt"] for name in lists} or self._split_folders()
        normal = normal_splits(written)
        every = [YoloSplit(normal[key], key, paths, [], []) for key, paths in written.items()]
        chosen = choose_splits(every, self._options.splits)
        for split in chosen:
            self._find_images(split, bases)
        return chosen

    def _split_folders(self) -> dict[str, Sequence[str]]:
        """Folders such as `train`, `train/images` or `images/train`; the raw folder if there are
        none."""
        found: dict[str, list[str]] = {}
        deep = ""
        for folder in sorted(self._folders):
            name = folder.rpartition("/")[2]
            if usual_split(name):
                if [part for part in folder.split("/") if part != "images"] == [name]:
                    found.setdefault(name, []).append(folder)
                deep = deep or folder
        if deep and not found:
            raise RawDataError(
                f"the split folder `{deep}` is too deep: `--raw` takes the folder that contains "
                "all split folders"
            )
        return {**found} or {"train": ["."]}

    def _find_images(self, split: YoloSplit, bases: Sequence[str]) -> None:
        """Find the folders and lists of a split, and the images in them."""
        known = self._folders | self.files.keys()
        images: dict[str, None] = {}
        for text in split.paths:
            place, moved = _find(text, bases, known)
            if place is None:
                raise RawDataError(
                    f"`{self.file}`: `{split.key}` is `{text}`, which is neither a folder with "
                    "images nor a list of images in the raw folder",
                    hint="correct the path, or read only the other splits: --option splits=",
                )
            if moved:
                read = place or "."
                detail = f"`{safe(text)}` is outside the raw folder; `{safe(read)}` was read"
                self.remarks.append(Remark(split.name, read, "SRC116", detail))
            split.origins.append(place or _ROOT)
            if place in self._folders:
                prefix = f"{place}/" if place else ""
                images.update((path, None) for path in self.images if path.startswith(prefix))
            else:
                self._read_list(split, place, images)
        split.images.extend(images)
        if not images:
            raise RawDataError(f"the split `{split.key}` has no image")

    def _read_list(self, split: YoloSplit, path: str, images: dict[str, None]) -> None:
        """Read a list of images, and add them to `images`."""
        bases = tuple(dict.fromkeys((path.rpartition("/")[0], *self._bases)))
        known = set(self.images)
        moved: list[str] = []
        repeated: list[str] = []
        for text in filter(None, map(str.strip, self._text(path, 1 << 28).splitlines())):
            place, was_moved = _find(text, bases, known)
            if was_moved:
                moved.append(text)
            # A missing image becomes an item that is skipped, under its name in the list.
            image = text if place is None else place
            if image in images:
                repeated.append(image)
            images[image] = None
        if moved:
            detail = f"`{safe(moved[0])}` is outside the raw folder; a path inside was read instead"
            self.remarks.append(Remark(split.name, path, "SRC116", detail, len(moved)))
        if repeated:
            detail = f"`{safe(repeated[0])}` is listed twice, and written once"
            self.remarks.append(Remark(split.name, path, "SRC119", detail, len(repeated)))


def label_paths(image: str) -> Sequence[str]:
    """The paths that an image's label file may have, in order of preference. If the image is below
    a folder `images`, the first path has `labels` in place of the last such folder. The last path
    is next to the image.
    """
    stem, dot, _ = image.rpartition(".")
    beside = f"{stem if dot else image}.txt"
    above, found, below = f"/{beside}".rpartition("/images/")
    return (f"{above}/labels/{below}"[1:], beside) if found else (beside,)


def _read_yaml(path: str, text: str) -> dict[str, Any]:
    """The mapping in a YAML file. Its scalars are the texts in the file, so a class that is called
    `no` does not become False.
    """
    try:
        import yaml
    except ModuleNotFoundError:
        raise MissingExtraError(f"reading `{path}`", "yaml") from None
    try:
        found = yaml.load(text, Loader=yaml.BaseLoader) or {}
        if not isinstance(found, dict):
            raise yaml.YAMLError("expected a mapping with `train`, `val` and `names`")
    except (yaml.YAMLError, RecursionError) as error:
        problem = " ".join(str(error).split())[:300]
        raise RawDataError(f"`{path}` cannot be read as YAML: {problem}") from None
    return found


def _find(text: str, bases: Sequence[str], known: Collection[str]) -> tuple[str | None, bool]:
    """The path in `known` that matches `text`, or None. The second value is true if only the end of
    `text` matches, for example because `text` comes from another machine.
    """
    plain = text.replace("\\", "/")
    is_relative = not (plain.startswith("/") or plain.partition("/")[0].endswith(":"))
    for base in bases if is_relative else ():
        # A path that leads out of the raw folder still begins with `..`.
        joined = normpath(join(base, plain))
        if (path := "" if joined == "." else joined) in known:
            return path, False
    for end in path_ends(text):
        for base in bases:
            if (path := join(base, end)) in known:
                return path, True
    return None, False
