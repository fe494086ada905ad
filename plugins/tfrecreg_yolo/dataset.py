"""The raw data of the source `yolo`: their files, what describes them, the images of each split."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from tfrecreg.api import (
    Entry,
    MissingExtraError,
    ObjectOptions,
    RawDataError,
    Remark,
    Storage,
    Symlinks,
    choose_splits,
    hidden_part,
    link_problem,
    list_files,
    listed,
    normal_splits,
    path_ends,
    paths_remark,
    read_text,
    safe,
)

SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp"),
    # Images that no record can have: they are skipped with a reason (SRC003).
    *(".tif", ".tiff", ".mpo", ".dng", ".pfm", ".heic", ".heif", ".avif", ".jp2"),
)
YoloTask = Literal["detect", "segment", "pose", "obb"]
_MAX_BYTES = 1 << 20
"""Most bytes of a file that describes the dataset: the names of ten thousand classes."""
_YAML_NAMES = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")
_NAMES_FILES = ("classes.txt", "obj.names")
_NOT_LABELS = frozenset({"classes.txt", "obj.names", "labels.txt", "train.txt", "val.txt"})
_SPLIT_KEYS = ("train", "val", "valid", "validation", "test")
_USUAL_SPLITS = ("train", "validation", "test")
_ROOT = "the raw folder"


@dataclass(frozen=True)
class YoloOptions(ObjectOptions):
    """Options of the source `yolo`."""

    task: Literal["auto", "detect", "segment", "pose", "obb"] = "auto"
    """What a row of a label file is: a box, a polygon, a box with keypoints, or an oriented box.
    `detect` takes the boxes around polygons. `auto` looks at all label files, and refuses rows that
    may be of several kinds."""
    data: str = ""
    """The file that describes the dataset, if it is not `data.yaml` or `obj.data`."""
    classes: tuple[str, ...] = ()
    """The names of the classes in order of their numbers, where no file lists them."""
    kpt_shape: tuple[int, ...] = ()
    """Number of keypoints, and of numbers for each: `17,3`, if `data.yaml` does not have it."""
    splits: tuple[str, ...] = ()
    """Read only these splits."""
    unlabeled: Literal["background", "skip"] = "background"
    """Handling of images without a label file: write them without objects, or skip them."""
    symlinks: Symlinks = "all"
    """`all`: follow symbolic links wherever they lead. `inside`: follow those that stay in the raw
    folder. `none`: follow none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_repeated("splits", "classes")


class Description(msgspec.Struct):
    """What `data.yaml` or `obj.data` says, and the option `kpt_shape`; other keys are ignored."""

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


class RawFiles:
    """The files of the raw data, links followed as far as the options allow."""

    def __init__(self, raw: Storage, symlinks: Symlinks) -> None:
        self._raw = raw
        self.symlinks = symlinks
        self.images: dict[str, int] = {}
        """Size in bytes of each image, by path."""
        self.texts: dict[str, int] = {}
        """The same of files that may be label files."""
        self.others: dict[str, int] = {}
        """The same of all other files. Hidden ones are among them."""
        self.unusable: dict[str, Entry] = {}
        """FIFOs, devices, and links that are not followed."""
        self.links: list[str] = []
        """Those of them that may lead to folders."""
        for entry in list_files(raw, symlinks=symlinks):
            path = entry.path
            name = path.lower()
            kind = self.others
            hidden = hidden_part(path)
            if name.endswith(".txt") and not hidden:
                kind = self.texts
            elif name.endswith(SUFFIXES) and not hidden:
                kind = self.images
            kind[path] = entry.size
            if entry.kind != "file":
                self.unusable[path] = entry
                if entry.kind == "link" and kind is self.others and not hidden:
                    self.links.append(path)
        if not self.images:
            raise RawDataError(
                f"`{safe(raw.root, limit=4096)}` holds no image",
                hint="name the folder with `images` and `labels`, or the one with `data.yaml`",
            )
        self.folders = {""}
        """Folders with images in them, also below; the raw folder is the empty path."""
        for folder in {path.rpartition("/")[0] for path in self.images}:
            while folder not in self.folders:
                self.folders.add(folder)
                folder = folder.rpartition("/")[0]

    def size(self, path: str) -> int | None:
        """The size in bytes of a file; None if there is none."""
        return self.images.get(path, self.texts.get(path, self.others.get(path)))

    def entry(self, path: str) -> Entry | None:
        """What is at a path."""
        size = self.size(path)
        found = None if size is None else Entry(path, "file", size, 0, 0)
        return self.unusable.get(path, found)

    def text(self, path: str, limit: int) -> str:
        """The text of a small file."""
        entry = self.unusable.get(path)
        return read_text(self._raw, path, limit=limit, entry=entry, symlinks=self.symlinks)

    def label(self, image: str) -> tuple[str, int]:
        """The label file of an image, and which of :func:`label_paths` it is; else empty and -1."""
        for number, path in enumerate(label_paths(image)):
            if path in self.texts:
                return path, number
        return "", -1


class YoloSplit(NamedTuple):
    """A split, with its images in the order of the data."""

    name: str
    key: str
    """What the description calls it."""
    paths: Sequence[str]
    """Its folders and lists of images, as they are written."""
    origins: list[str]
    """The same in the raw folder."""
    images: list[str]
    """Paths. One that a list names and that does not exist is among them."""
    remarks: list[Remark]


class YoloDataset:
    """The raw data, listed and described once."""

    def __init__(self, raw: Storage, options: YoloOptions) -> None:
        self._root = raw.root
        self._options = options
        self.files = RawFiles(raw, options.symlinks)
        self.file = options.data or self._usual_description()
        """The file that describes the dataset; empty without one."""
        self.names_file = ""
        """The file that lists the classes, if that is another one."""
        says = self._description()
        beside = (self.file.rpartition("/")[0], "")
        root, _ = _find(says.path, beside, self.files.folders) if says.path else (None, False)
        self._bases = beside if root is None else (root, *beside)
        self.kpt_shape = says.kpt_shape or ()
        lists = says.kpt_names if isinstance(says.kpt_names, dict) else {"": says.kpt_names}
        named = {tuple(names) for names in lists.values()}
        (names,) = named if len(named) == 1 else ((),)
        self.kpt_names = names if self.kpt_shape and len(names) == self.kpt_shape[0] else ()
        """Names of the keypoints; empty where nothing says them, or not the same for all."""
        self.names = self._classes(says)
        """Names of the classes in order of their numbers; a number without a class has none."""
        self.splits = self._find_splits(says)

    def lists(self) -> list[str]:
        """The lists of images that were read."""
        every = (origin for split in self.splits for origin in split.origins)
        return [origin for origin in every if origin in self.files.texts]

    def left_aside(self) -> Iterator[Remark]:
        """Images in no split, label files without an image, and all other files."""
        first, files = self.splits[0].name, self.files
        if not self._options.splits:
            taken = {image for split in self.splits for image in split.images}
            if orphans := [image for image in files.images if image not in taken]:
                yield paths_remark(first, "SRC030", orphans, "in no split")
        labels = {path for image in files.images for path in label_paths(image)}
        known = labels.union(self.lists(), files.links, (self.file, self.names_file))
        folders = {path.rpartition("/")[0] for path in labels}
        unused: list[str] = []
        strays: list[str] = []
        for path in chain(files.others, files.texts):
            folder, _, name = path.rpartition("/")
            if path not in known:
                is_label = path in files.texts and folder in folders
                (unused if is_label and name.lower() not in _NOT_LABELS else strays).append(path)
        if unused:
            yield paths_remark(first, "SRC042", unused, "no image has it")
        if strays:
            yield paths_remark(first, "SRC015", strays, "neither an image nor a label file")
        if files.links:
            yield paths_remark(first, "SRC011", files.links, link_problem(files.symlinks))

    def _usual_description(self) -> str:
        others = self.files.others
        found = (
            [name for name in _YAML_NAMES if name in others][:1]
            or [name for name in others if name.endswith(".data") and name.count("/") < 2]
            or [name for name in others if name.endswith((".yaml", ".yml")) and "/" not in name]
        )
        if len(found) > 1:
            raise RawDataError(
                f"several files may describe the dataset: {listed(found[:5])}",
                hint=f"--option data={safe(found[0])}",
            )
        return found[0] if found else ""

    def _description(self) -> Description:
        """What the file says that describes the dataset."""
        found: dict[str, Any] = {}
        text = self.files.text(self.file, _MAX_BYTES) if self.file else ""
        if self.file.lower().endswith((".yaml", ".yml")):
            found = _read_yaml(self.file, text)
        elif self.file:
            # Darknet's: lines such as `train = data/train.txt`.
            pairs = (line.partition("=") for line in text.splitlines())
            found = {key.strip(): value.strip() for key, sign, value in pairs if sign}
            self.names_file = found.pop("names", "")
        found["kpt_shape"] = self._options.kpt_shape or found.get("kpt_shape", "")
        try:
            said = {key: value for key, value in found.items() if value != ""}
            return msgspec.convert(said, Description, strict=False, str_keys=True)
        except msgspec.ValidationError as error:
            file = f"`{safe(self.file)}`" if self.file else "an option"
            raise RawDataError(f"{file} cannot be used: {safe(str(error))}") from None

    def _classes(self, says: Description) -> Sequence[str]:
        names = says.names
        if isinstance(names, dict):
            names = [names.get(number, "") for number in range(max(names, default=-1) + 1)]
        if says.nc is not None and names and says.nc != len(names):
            raise RawDataError(
                f"`{safe(self.file)}` has {len(names)} `names`, and says `nc: {says.nc}`"
            )
        numbered = [f"class{number}" for number in range(says.nc or 0)]
        return self._options.classes or names or numbered or self._listed_classes()

    def _listed_classes(self) -> Sequence[str]:
        """The classes of the file that lists them. Copies of one list are one."""
        known = [*self.files.texts, *self.files.others]
        if self.names_file:
            path, _ = _find(self.names_file, self._bases, set(known))
            paths = [] if path is None else [path]
        else:
            paths = [path for path in known if path.rpartition("/")[2] in _NAMES_FILES]
            paths.sort(key=lambda path: (path.count("/"), path))
        if not paths:
            file = safe(self.names_file) or "classes.txt"
            raise RawDataError(
                f"no file of `{safe(self._root, limit=4096)}` lists the names of the classes: "
                f"expected `names` in `{safe(self.file or 'data.yaml')}`, or `{file}`",
                hint="--option classes=cat,dog names them in the order of their numbers",
            )
        texts = [self.files.text(path, _MAX_BYTES) for path in paths]
        lists = [[line.strip() for line in text.rstrip().split("\n")] for text in texts]
        if any(names != lists[0] for names in lists):
            raise RawDataError(
                f"{listed(paths)} list different classes",
                hint="--option classes=cat,dog names them in the order of their numbers",
            )
        self.names_file = paths[0]
        return lists[0]

    def _find_splits(self, says: Description) -> list[YoloSplit]:
        """The splits of the description, of the lists in the raw folder, or of its folders."""
        written: dict[str, Sequence[str]] = {}
        for key in _SPLIT_KEYS:
            paths = getattr(says, key)
            if found := [each for each in ([paths] if isinstance(paths, str) else paths) if each]:
                written[key] = found
        bases = self._bases if written else ("",)
        written = written or self._usual_lists() or self._split_folders()
        names = normal_splits(written)
        every = [YoloSplit(names[key], key, paths, [], [], []) for key, paths in written.items()]
        chosen = choose_splits(every, self._options.splits)
        for split in chosen:
            self._find_images(split, bases)
        return chosen

    def _usual_lists(self) -> dict[str, Sequence[str]]:
        """The lists of images in the raw folder that are called like splits."""
        stems = {path.rpartition(".")[0] for path in self.files.images}
        names = [path.removesuffix(".txt") for path in self.files.texts if "/" not in path]
        return {name: [f"{name}.txt"] for name in names if name not in stems and _is_usual(name)}

    def _split_folders(self) -> dict[str, Sequence[str]]:
        """The folders `train`, `train/images` or `images/train`; else the raw folder."""
        found: dict[str, list[str]] = {}
        deep = ""
        for folder in sorted(self.files.folders):
            name = folder.rpartition("/")[2]
            if _is_usual(name):
                if [part for part in folder.split("/") if part != "images"] == [name]:
                    found.setdefault(name, []).append(folder)
                deep = deep or folder
        if deep and not found:
            raise RawDataError(
                f"`{safe(deep)}` is a folder of a split, and too deep in the raw folder",
                hint="name the folder that holds `images` or the folders of splits with `--raw`, "
                "or describe the splits in `data.yaml`",
            )
        return {**found} or {"train": ["."]}

    def _find_images(self, split: YoloSplit, bases: Sequence[str]) -> None:
        """Find the folders and lists of a split, and the images in them."""
        files = self.files
        known = {*files.folders, *files.texts, *files.links}  # reading a link says what is wrong
        images: dict[str, None] = {}
        for text in split.paths:
            place, moved = _find(text, bases, known)
            if place is None:
                raise RawDataError(
                    f"`{safe(self.file)}`: `{split.key}` is `{safe(text)}`, which is neither a "
                    "folder with images nor a list of images in the raw folder",
                    hint="correct the path, or read other splits alone: --option splits=",
                )
            if moved:
                read = place or "."
                detail = f"`{safe(text)}` is outside the raw folder; `{safe(read)}` was read"
                split.remarks.append(Remark(split.name, read, "SRC045", detail))
            split.origins.append(place or _ROOT)
            if place in files.folders:
                prefix = f"{place}/" if place else ""
                images.update((path, None) for path in files.images if path.startswith(prefix))
            else:
                self._read_list(split, place, images)
        split.images.extend(images)
        if not images:
            raise RawDataError(
                f"the split `{safe(split.key)}` has no image",
                hint="read other splits alone: --option splits=",
            )

    def _read_list(self, split: YoloSplit, path: str, images: dict[str, None]) -> None:
        """Add the images of a list to those of a split."""
        bases = tuple(dict.fromkeys((path.rpartition("/")[0], *self._bases)))
        moved: list[str] = []
        repeated: list[str] = []
        for text in filter(None, map(str.strip, self.files.text(path, 1 << 28).splitlines())):
            place, was_moved = _find(text, bases, self.files.images)
            if was_moved:
                moved.append(text)
            # What is not there is an item that is skipped, under the name in the list.
            image = text if place is None else place
            if image in images:
                repeated.append(image)
            images[image] = None
        if moved:
            detail = (
                f"`{safe(moved[0])}` is outside the raw folder; the file with the same end was read"
            )
            split.remarks.append(Remark(split.name, path, "SRC045", detail, len(moved)))
        if repeated:
            detail = f"`{safe(repeated[0])}` is listed twice, and written once"
            split.remarks.append(Remark(split.name, path, "SRC022", detail, len(repeated)))


def label_paths(image: str) -> Sequence[str]:
    """Where the label file of an image may be, the first that exists: with the last folder `images`
    replaced by `labels`, and beside the image.
    """
    stem, dot, _ = image.rpartition(".")
    beside = f"{stem if dot else image}.txt"
    above, found, below = f"/{beside}".rpartition("/images/")
    return (f"{above}/labels/{below}"[1:], beside) if found else (beside,)


def _read_yaml(path: str, text: str) -> dict[str, Any]:
    """The mapping of a YAML file, whose scalars are the texts that are written there: a class that
    is called `no` is not False.
    """
    try:
        import yaml
    except ModuleNotFoundError:
        raise MissingExtraError(f"reading `{safe(path)}`", "yaml") from None
    try:
        found = yaml.load(text, Loader=yaml.BaseLoader) or {}
        if not isinstance(found, dict):
            raise yaml.YAMLError("expected a mapping with `train`, `val` and `names`")
    except (yaml.YAMLError, RecursionError) as error:
        problem = safe(" ".join(str(error).split()), limit=300)
        raise RawDataError(f"`{safe(path)}` cannot be read as YAML: {problem}") from None
    return found


def _find(text: str, bases: Sequence[str], known: Collection[str]) -> tuple[str | None, bool]:
    """The path in `known` that is meant, or None; and whether only the end of `text` is one, as in
    paths of another machine.
    """
    parts = text.replace("\\", "/").split("/")
    if not (parts[0] == "" or parts[0].endswith(":")):
        for base in bases:
            joined = _joined(base, parts)
            if joined is not None and joined in known:
                return joined, False
    for end in path_ends(text):
        for base in bases:
            joined = f"{base}/{end}" if base else end
            if joined in known:
                return joined, True
    return None, False


def _joined(base: str, parts: Sequence[str]) -> str | None:
    """A path below a folder, `..` resolved; None if it leaves the raw folder."""
    found = base.split("/") if base else []
    for part in parts:
        if part == "..":
            if not found:
                return None
            found.pop()
        elif part not in ("", "."):
            found.append(part)
    return "/".join(found)


def _is_usual(name: str) -> bool:
    """Whether a name is that of a usual split, in any spelling."""
    return normal_splits([name])[name] in _USUAL_SPLITS
