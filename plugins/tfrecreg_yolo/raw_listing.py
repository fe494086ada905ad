"""The files of the raw data: images, label files and others; and how a label file is found."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tfrecreg.api import Entry, RawDataError, Storage, list_files, read_text, safe
from tfrecreg_yolo.yolo_options import YoloOptions

YOLO_SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp"),
    # Images that no record can have: they are skipped with a reason (SRC003).
    *(".tif", ".tiff", ".mpo", ".dng", ".pfm", ".heic", ".heif", ".avif", ".jp2"),
)
_NOT_LABELS = frozenset({"classes.txt", "obj.names", "labels.txt", "train.txt", "val.txt"})
_SYSTEM_FOLDER = "__MACOSX"


class YoloListing:
    """All files of the raw data, links followed as far as the options allow."""

    def __init__(self, raw: Storage, options: YoloOptions) -> None:
        self._raw = raw
        self.symlinks = options.symlinks
        self.images: dict[str, int] = {}
        """Size in bytes of each image, by path."""
        self.texts: dict[str, int] = {}
        """The same of files that may be label files."""
        self.others: dict[str, int] = {}
        """The same of all other files. Hidden ones are among them."""
        self.unusable: dict[str, Entry] = {}
        """What is not a file: links that are not followed, FIFOs, devices."""
        for entry in list_files(raw, symlinks=options.symlinks):
            path = entry.path
            name = path.lower()
            if _is_hidden(path):
                self.others[path] = entry.size
            elif name.endswith((*YOLO_SUFFIXES, ".txt")):
                is_image = not name.endswith(".txt")
                (self.images if is_image else self.texts)[path] = entry.size
            else:
                self.others[path] = entry.size
            if entry.kind != "file":
                self.unusable[path] = entry
        if not self.images:
            raise RawDataError(
                f"`{safe(raw.root, limit=4096)}` holds no image",
                hint="name the folder with `images` and `labels`, or the one with `data.yaml`",
            )
        direct = {path.rpartition("/")[0] for path in self.images}
        self.folders = direct.union(*map(parents, direct))
        """Folders with images in them, also below; the raw folder is the empty path."""
        self.links: list[str] = [
            path
            for path, entry in self.unusable.items()
            if entry.kind == "link" and path in self.others and not _is_hidden(path)
        ]
        """Links that are not followed and may lead to folders."""

    def entry(self, path: str) -> Entry | None:
        """What is at the path of an image or of a label file."""
        if path in self.unusable:
            return self.unusable[path]
        size = self.images.get(path, self.texts.get(path))
        return None if size is None else Entry(path, "file", size, 0, 0)

    def text(self, path: str, *, limit: int = 1 << 28) -> str:
        """The text of a small file."""
        entry = self.unusable.get(path)
        return read_text(self._raw, path, limit=limit, entry=entry, symlinks=self.symlinks)

    def below(self, folder: str) -> Iterator[str]:
        """The images in a folder, also below."""
        prefix = f"{folder}/" if folder else ""
        return (path for path in self.images if path.startswith(prefix))

    def find_label(self, image: str) -> tuple[str, int]:
        """The label file of an image, and which of :func:`label_paths` it is; else empty and -1."""
        for number, path in enumerate(label_paths(image)):
            if path in self.texts:
                return path, number
        return "", -1

    def unused_labels(self, places: Collection[str], read: Collection[str]) -> list[str]:
        """Label files without an image: other texts in folders of labels."""
        folders = {path.rpartition("/")[0] for path in places}
        return [
            path
            for path in self.texts
            if path not in places
            and path not in read
            and path.rpartition("/")[0] in folders
            and path.rpartition("/")[2].lower() not in _NOT_LABELS
            # A text beside images in the raw folder itself, such as README.dataset.txt.
            and ("/" in path or "readme" not in path.lower())
        ]


def label_paths(image: str) -> Sequence[str]:
    """Where the label file of an image may be, the first that exists: with the last folder `images`
    replaced by `labels`, and beside the image.
    """
    stem, dot, _ = image.rpartition(".")
    beside = f"{stem if dot else image}.txt"
    above, found, below = f"/{beside}".rpartition("/images/")
    return (f"{above}/labels/{below}"[1:], beside) if found else (beside,)


def parents(path: str) -> Iterator[str]:
    """The folders that a path is in, the innermost first, the empty one last."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def _is_hidden(path: str) -> bool:
    """Whether a part of a path is hidden, or of a folder that systems leave."""
    return any(part.startswith(".") or part == _SYSTEM_FOLDER for part in path.split("/"))
