"""The source `imagefolder`: every picture file becomes one example, its bytes as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, ClassVar

from tfrecreg.api import (
    Example,
    Feature,
    Item,
    PictureError,
    PictureHeader,
    RawDataError,
    RawFile,
    Remark,
    Skipped,
    Source,
    Storage,
    Undecodable,
    Written,
    bundled_schema,
    bytes_feature,
    int64_feature,
    is_truncated,
    read_header,
    require_pillow,
    safe,
    shared_decoder,
    sniff,
)
from tfrecreg_imagefolder.flat import list_flat
from tfrecreg_imagefolder.layout import few, find_folders
from tfrecreg_imagefolder.listing import Listing, Place, list_folders
from tfrecreg_imagefolder.options import ImageFolderOptions
from tfrecreg_imagefolder.walk import LeftOut, Walker

__all__ = ["ImageFolderSource"]

_LABEL = "image/class/label"
_MOST_BYTES = 1 << 30
"""Of a picture: a record may have twice as many, and a worker holds a few copies."""
_LOOK_FIRST = 1 << 24
"""A larger file is only read when its first bytes are those of a picture."""
_LAYOUTS = {
    "class": "class/file",
    "split": "split/class/file",
    "flat": "files, labelled by a file",
}


class ImageFolderSource(Source):
    """Pictures of folders of classes. An item's key is its path below the folder of its split.

    The folder is listed once, and all that is asked of the source before the work starts is
    answered from that; a worker only ever opens the files of its items.
    """

    Options: ClassVar[type[Any]] = ImageFolderOptions

    def __init__(self, raw: Storage, options: ImageFolderOptions) -> None:
        self._raw = raw
        self._options = options
        self._conversion = options.conversion
        self._listing: Listing | None = None
        self._folders: Mapping[str, str] | None = None
        self._classes: dict[bytes, tuple[str, Feature, Feature]] = {}
        if self._conversion is not None:
            require_pillow("`reencode`")
        elif options.verify == "decode":
            require_pillow("`verify=decode`")

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent: an item has all that a worker needs.
        return type(self), (self._raw, self._options)

    def raw_files(self) -> Iterator[RawFile]:
        yield from self._list().raw_files()

    def labels(self) -> Mapping[str, Sequence[str]]:
        # Numbers below the first class have no name; a folder cannot be called so.
        return {_LABEL: [""] * self._options.labels_from + self._list().classes}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        listing = self._list()
        yield from listing.entries
        for each in listing.left_out:
            yield Remark(each.split, each.first, "SRC015", _counted(each), each.times)

    def schema(self) -> str:
        return bundled_schema("tfrecreg_imagefolder", "imagefolder")

    def describe(self) -> Mapping[str, str]:
        """What was found, for `--dry-run`."""
        listing = self._list()
        found = {
            "layout": _LAYOUTS[listing.layout],
            "classes": f"{len(listing.classes)} ({few(listing.classes)})",
        }
        if listing.unused:
            found["classes without pictures"] = f"{len(listing.unused)} ({few(listing.unused)})"
        if listing.left_out:
            found["left out"] = ", ".join(_counted(each) for each in listing.left_out)
        return found

    def codecs(self) -> Mapping[str, str]:
        """Pillow, where it decides which pictures go in, or what they become."""
        if self._conversion is None and self._options.verify == "header":
            return {}
        return {"pillow": version("pillow")}

    def raw_path(self, split: str, key: str) -> str | None:
        """The raw file whose bytes a record has as its picture; None where it was made anew."""
        if self._conversion is not None:
            return None
        if self._options.layout == "flat" or self._options.label_file is not None:
            return key
        if self._folders is None:
            walker = Walker(self._raw, symlinks=self._options.symlinks)
            _, folders = find_folders(walker, self._options.layout)
            self._folders = {folder.split: f"{folder.path}/" for folder in folders if folder.path}
        return self._folders.get(split, "") + key

    def example(self, item: Item) -> Example | Written | Skipped:
        folder, label, text = self._class(item.state)
        try:
            data = self._read(folder + item.key)
            header = read_header(data)
        except PictureError as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        try:
            data, header = self._decoded(data, header)
        except Undecodable as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        example = {
            "image/encoded": bytes_feature(data),
            "image/format": bytes_feature(header.format),
            "image/height": int64_feature(header.height),
            "image/width": int64_feature(header.width),
            "image/filename": bytes_feature(item.key.rpartition("/")[2]),
            "image/key/sha256": bytes_feature(hashlib.sha256(data).hexdigest()),
            _LABEL: label,
            "image/class/text": text,
        }
        if is_truncated(data):
            detail = f"a {header.format.upper()} that ends before its end, written as it is"
            return Written(example, [Remark(item.split, item.key, "SRC014", detail)])
        return example

    def _read(self, path: str) -> bytes:
        """The bytes of a file, all of them, once."""
        with self._raw.open(path) as file:
            size = file.size
            if size > _LOOK_FIRST:
                start = file.read_at(0, 64)
                if sniff(start) is None:
                    read_header(start)
                if size > _MOST_BYTES:
                    raise PictureError(
                        "unsupported", f"a picture of {size} bytes, at most {_MOST_BYTES} go in"
                    )
            data = file.read_at(0, size)
        if len(data) != size:
            raise RawDataError(
                f"`{safe(path)}` became shorter while it was read: expected {size} bytes, found "
                f"{len(data)}",
                hint="build again when nothing writes to the raw data",
            )
        return data

    def _decoded(self, data: bytes, header: PictureHeader) -> tuple[bytes, PictureHeader]:
        """What goes in: the same bytes, verified if that is asked for, or others."""
        if self._conversion is not None:
            made = shared_decoder().convert(data, header, self._conversion)
            return made, read_header(made)
        if self._options.verify == "decode":
            shared_decoder().verify(data, header)
        return data, header

    def _class(self, state: bytes) -> tuple[str, Feature, Feature]:
        """The folder before the key, and the features that all pictures of a class share."""
        found = self._classes.get(state)
        if found is None:
            place = Place.unpack(state)
            label, text = int64_feature(place.label), bytes_feature(place.text)
            found = self._classes[state] = place.folder, label, text
        return found

    def _list(self) -> Listing:
        if self._listing is None:
            flat = self._options.layout == "flat" or self._options.label_file is not None
            self._listing = (list_flat if flat else list_folders)(self._raw, self._options)
        return self._listing


def _counted(left: LeftOut) -> str:
    names = "name," if left.times == 1 else "names, the first of them"
    return f"{left.times} {left.kind} {names} `{safe(left.first)}`"
