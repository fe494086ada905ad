"""The source `imagefolder`: every image file becomes one example, its bytes unchanged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from itertools import chain
from typing import Any, ClassVar

from tfrecreg.api import (
    MAX_IMAGE_BYTES,
    Example,
    ImageError,
    Item,
    RawFile,
    Remark,
    Skipped,
    Source,
    Storage,
    Undecodable,
    Written,
    bundled_schema,
    bytes_feature,
    class_summary,
    convert_image,
    int64_feature,
    read_header,
    require_pillow,
    truncation_text,
    verify_pixels,
)
from tfrecreg_imagefolder.label_file import list_flat_folder
from tfrecreg_imagefolder.listing import (
    ImageFolderOptions,
    Listing,
    Walk,
    decode_class,
    find_split_folders,
    list_class_folders,
)

_LABEL = "image/class/label"
_SHA256 = "image/key/sha256"


class ImageFolderSource(Source):
    """Images of class folders. An item's key is its path below the folder of its split.

    The folder is listed once, in the parent. A worker opens only the files of its items.
    """

    Options: ClassVar[type[Any]] = ImageFolderOptions

    def __init__(self, raw: Storage, options: ImageFolderOptions) -> None:
        super().__init__(raw, options)
        self._conversion = options.conversion
        if self._conversion is not None:
            require_pillow("`reencode`")
        elif options.verify == "decode":
            require_pillow("`verify=decode`")

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent: an item contains everything that a worker needs.
        return type(self), (self.raw, self.options)

    def raw_files(self) -> Iterator[RawFile]:
        yield from self._listing.raw_files()

    def labels(self) -> Mapping[str, Sequence[str]]:
        # Numbers below the first class get the empty name, which no folder can have.
        return {_LABEL: [""] * self.options.labels_from + self._listing.classes}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        return chain(self._listing.entries, self._listing.remarks)

    def class_of(self, item: Item) -> str:
        return decode_class(item.state).name

    def grouped(self, key: str) -> str:
        """The path below the class folder. The pattern `group` is searched for in this path."""
        return key if self.options.flat else key.partition("/")[2]

    def schema(self) -> str:
        text = bundled_schema("tfrecreg_imagefolder", "imagefolder")
        if not self.options.sha256:
            before, _, after = text.partition(f'feature {{\n  name: "{_SHA256}"')
            text = before + after.partition("\n}\n")[2]
        return text

    def describe(self) -> Mapping[str, str]:
        listing = self._listing
        found = {"layout": listing.layout, "classes": class_summary(listing.classes)}
        if listing.remarks:
            found["left out"] = "; ".join(remark.detail for remark in listing.remarks[:5])
        return found

    def codecs(self) -> Mapping[str, str]:
        """Pillow, if the options decode or convert images."""
        if self._conversion is None and self.options.verify == "header":
            return {}
        return {"pillow": version("pillow")}

    def raw_path(self, split: str, key: str) -> str | None:
        """The raw file whose bytes are the record's image; None if the image was encoded again."""
        if self._conversion is not None:
            return None
        if self.options.flat:
            return key
        return self._folders.get(split, "") + key

    def example(self, item: Item) -> Example | Written | Skipped:
        label, folder, name = decode_class(item.state)
        try:
            data = self.raw.read(folder + item.key, limit=MAX_IMAGE_BYTES)
            header = read_header(data)
            if self._conversion is not None:
                data = convert_image(data, header, self._conversion)
                header = read_header(data)
            elif self.options.verify == "decode":
                verify_pixels(data, header)
        except (ImageError, Undecodable) as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        example = {
            "image/encoded": bytes_feature(data),
            "image/format": bytes_feature(header.format),
            "image/height": int64_feature(header.height),
            "image/width": int64_feature(header.width),
            "image/filename": bytes_feature(item.key.rpartition("/")[2]),
            _LABEL: int64_feature(label),
            "image/class/text": bytes_feature(name),
        }
        if self.options.sha256:
            example[_SHA256] = bytes_feature(hashlib.sha256(data).hexdigest())
        if detail := truncation_text(data, header):
            return Written(example, [Remark(item.split, item.key, "SRC014", detail)])
        return example

    @cached_property
    def _listing(self) -> Listing:
        listing = list_flat_folder if self.options.flat else list_class_folders
        return listing(self.raw, self.options)

    @cached_property
    def _folders(self) -> Mapping[str, str]:
        """The path of each split's folder, with a slash, found without listing class folders."""
        folders = find_split_folders(Walk(self.raw, self.options), self.options.layout)
        return {split: f"{path}/" for path, split in folders.items() if path}
