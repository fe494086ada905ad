"""The files of the raw data, and which image belongs to which XML."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.api import Entry, RawDataError, Storage, list_files, read_text, safe
from tfrecreg_voc.voc_options import VocOptions

VOC_SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp"),
    # Images that no record can have: they are skipped with a reason (SRC003).
    *(".tif", ".tiff"),
)
MASK_FOLDERS = {"class": "SegmentationClass", "object": "SegmentationObject"}
_OF_XML = frozenset({"annotations", "annotation", "xmls", "xml", "labels"})
_OF_IMAGES = ("JPEGImages", "images", "Images", "image", "imgs", "img")
_SYSTEM_FOLDER = "__MACOSX"


class VocListing:
    """All files of the raw data, links followed as far as the options allow."""

    def __init__(self, raw: Storage, options: VocOptions) -> None:
        self._raw = raw
        self.symlinks = options.symlinks
        self.images: dict[str, int] = {}
        """Size in bytes of each image, by path."""
        self.xmls: dict[str, int] = {}
        self.masks: dict[str, int] = {}
        """The same of the PNGs of segmentations."""
        self.others: dict[str, int] = {}
        """The same of all other files. Hidden ones are among them."""
        self.links: dict[str, int] = {}
        """The same of other links that are not followed: they may be folders, or lists."""
        self.unusable: dict[str, Entry] = {}
        """What of all these is no file: links that are not followed, FIFOs, devices."""
        self._by_stem: dict[str, str] = {}
        for entry in list_files(raw, symlinks=options.symlinks):
            path, name = entry.path, entry.path.lower()
            kind = self.others
            if any(part.startswith(".") or part == _SYSTEM_FOLDER for part in path.split("/")):
                pass
            elif set(path.split("/")[:-1]) & set(MASK_FOLDERS.values()):
                kind = self.masks
            elif name.endswith(".xml"):
                kind = self.xmls
            elif name.endswith(VOC_SUFFIXES):
                kind = self.images
                self._add_image(path)
            elif entry.kind == "link":
                kind = self.links
            kind[path] = entry.size
            if entry.kind != "file":
                self.unusable[path] = entry
        if not self.xmls:
            raise RawDataError(
                f"`{safe(raw.root, limit=4096)}` holds no XML",
                hint="name the folder with `Annotations` and `JPEGImages`, or the one with the "
                "images and their XML",
            )

    def entry(self, path: str) -> Entry | None:
        """What is at the path of an image."""
        size = self.images.get(path)
        found = None if size is None else Entry(path, "file", size, 0, 0)
        return self.unusable.get(path, found)

    def text(self, path: str) -> str:
        """The text of a list."""
        entry = self.unusable.get(path)
        return read_text(self._raw, path, entry=entry, symlinks=self.symlinks)

    def image_of(self, xml: str) -> str:
        """The image with the name of an XML, beside it or in a folder of images; else empty."""
        for folder in _image_folders(xml.rpartition("/")[0]):
            stem = xml.rpartition("/")[2][: -len(".xml")]
            if found := self._by_stem.get(joined_path(folder, stem)):
                return found
        return ""

    def named_image(self, xml: str, filename: str) -> str:
        """The image that an XML names, without its folder, in the same places; else empty."""
        for folder in _image_folders(xml.rpartition("/")[0]):
            if filename and joined_path(folder, filename) in self.images:
                return joined_path(folder, filename)
        return ""

    def image_at(self, stem: str) -> str:
        """The image at a path without its suffix; empty without one."""
        return self._by_stem.get(stem, "")

    def mask_of(self, image: str, kind: str) -> str:
        """The PNG of an image's segmentation; empty without one."""
        folder, _, name = image.rpartition("/")
        base = folder.rpartition("/")[0]
        path = joined_path(joined_path(base, MASK_FOLDERS[kind]), name.rpartition(".")[0] + ".png")
        return path if path in self.masks and path not in self.unusable else ""

    def _add_image(self, path: str) -> None:
        """Note an image by its stem: of several, that with the most usual suffix."""
        stem, _, suffix = path.rpartition(".")
        other = self._by_stem.setdefault(stem, path)
        if _rank(suffix) < _rank(other.rpartition(".")[2]):
            self._by_stem[stem] = path


def _rank(suffix: str) -> int:
    return VOC_SUFFIXES.index(f".{suffix.lower()}")


def _image_folders(folder: str) -> Iterator[str]:
    """Where the image of an XML in a folder may be, the most likely first."""
    parts = folder.split("/")
    for place in range(len(parts) - 1, -1, -1):
        if parts[place].lower() in _OF_XML:
            for name in _OF_IMAGES:
                yield "/".join([*parts[:place], name, *parts[place + 1 :]])
            yield "/".join(parts[:place] + parts[place + 1 :])
            break
    yield folder


def folder_parts(path: str) -> list[str]:
    """The folders of an XML or an image, but for those that hold all XML or all images."""
    aside = {*_OF_XML, *(name.lower() for name in _OF_IMAGES)}
    return [part for part in path.split("/")[:-1] if part.lower() not in aside]


def joined_path(folder: str, path: str) -> str:
    """A path below a folder, which may be the raw folder."""
    return f"{folder}/{path}" if folder else path
