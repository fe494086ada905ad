"""The source `folder`: each file, or each group of files with one stem, becomes one example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from tfrecreg.api import (
    Feature,
    ImageError,
    Item,
    MediaError,
    RawFile,
    Remark,
    Skipped,
    Source,
    Storage,
    Written,
    bytes_feature,
    int64_feature,
    listed,
    media_codecs,
    media_features,
    media_kind,
    media_schema,
    read_media_file,
    safe,
)
from tfrecreg_folder.listing import (
    FilePart,
    FolderOptions,
    Listing,
    paired_parts,
    suffix_of,
    unpack,
)

_LABEL, _TEXT = "class/label", "class/text"


class FolderSource(Source):
    """Files of any kind. An item's key is its path below the folder of its split. With `pair`, the
    key has no suffix.

    The folder is listed once, in the parent. A worker opens only the files of its items.
    """

    Options: ClassVar[type[Any]] = FolderOptions

    def __init__(self, raw: Storage, options: FolderOptions) -> None:
        self._raw = raw
        self._options = options
        self._pair = paired_parts(options)

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent: an item contains everything that a worker needs.
        return type(self), (self._raw, self._options)

    @cached_property
    def _listing(self) -> Listing:
        return Listing(self._raw, self._options)

    def raw_files(self) -> Iterator[RawFile]:
        for entry in self._listing.entries:
            if isinstance(entry, Item):
                for path in unpack(entry.state).paths:
                    size = self._listing.sizes[path]
                    yield RawFile(path, size, size)

    def labels(self) -> Mapping[str, Sequence[str]]:
        return {_LABEL: self._listing.classes} if self._options.labels == "folder" else {}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._listing.entries
        yield from self._listing.remarks

    def class_of(self, item: Item) -> str | None:
        return unpack(item.state).name or None

    def schema(self) -> str:
        parts = self._listing.parts
        required = bool(self._pair) or len(parts) == 1
        text = "".join(media_schema(part.kind, part.base, required=required) for part in parts)
        if self._options.labels == "folder":
            most = max(len(self._listing.classes) - 1, 0)
            domain = f"int_domain {{ min: 0 max: {most} is_categorical: true }}"
            for name, rest in ((_LABEL, f"type: INT {domain}"), (_TEXT, "type: BYTES")):
                presence = "presence { min_fraction: 1 min_count: 1 } shape {}"
                text += f'feature {{\n  name: "{name}"\n  {presence} {rest}\n}}\n'
        return text

    def codecs(self) -> Mapping[str, str]:
        return media_codecs(part.kind for part in self._listing.parts)

    def describe(self) -> Mapping[str, str]:
        listing = self._listing
        counts = sorted(Counter(map(suffix_of, listing.sizes)).items())
        found = {
            "layout": "splits by folder" if listing.splits else "no splits",
            "files": listed([f"{count} .{suffix}" for suffix, count in counts], most=8),
            "features": ", ".join(f"{part.base}/…" for part in listing.parts),
        }
        if listing.classes:
            found["classes"] = f"{len(listing.classes)} ({listed(listing.classes, most=3)})"
        if listing.remarks:
            found["left out"] = ", ".join(remark.detail for remark in listing.remarks)
        return found

    def raw_path(self, split: str, key: str) -> str | None:
        """The raw file of a record. With `pair`, it is the first file of the pair."""
        folders = {name: folder for folder, name in self._listing.splits.items()}
        path = f"{folders[split]}/{key}" if split in folders else key
        if not self._options.pair:
            return path
        path = f"{path}.{self._options.paired[0]}"
        return path if self._raw.stat(path, follow="all") is not None else None

    def example(self, item: Item) -> Written | Skipped:
        state = unpack(item.state)
        example: dict[str, Feature] = {}
        remarks = []
        kind = media_kind(state.paths[0])
        for path, part in zip(state.paths, self._pair or [FilePart(kind, kind)], strict=True):
            name = path.rpartition("/")[2]
            try:
                made = media_features(part.kind, part.base, name, read_media_file(self._raw, path))
            except (ImageError, MediaError) as error:
                detail = f"`{safe(path)}`: {error.detail}" if self._options.pair else error.detail
                return Skipped(item.split, item.key, error.code, detail)
            example.update(made.features)
            if made.code:
                remarks.append(Remark(item.split, item.key, made.code, made.detail))
        if state.label >= 0:
            example[_LABEL] = int64_feature(state.label)
            example[_TEXT] = bytes_feature(state.name)
        return Written(example, remarks)
