"""The source `webdataset`: every sample of the tar files becomes one example."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

import msgspec

from tfrecreg.api import (
    Example,
    ImageError,
    Item,
    RawDataError,
    RawFile,
    Reader,
    Remark,
    Skipped,
    Source,
    Storage,
    Written,
    did_you_mean,
    safe,
)
from tfrecreg_webdataset.class_names import read_class_names
from tfrecreg_webdataset.exported import Exported, read_exported, restored
from tfrecreg_webdataset.listing import SamplePlace, TarListing, is_image_suffix, list_samples
from tfrecreg_webdataset.member_values import MemberValues, UnusableMember, json_names
from tfrecreg_webdataset.webdataset_options import WebDatasetOptions

_OPEN = 32
"""Tar files that a worker keeps open."""
_GAP = 1 << 16
"""Bytes between members that are read along with them: a read costs more."""
_LOOKED_AT = 20
"""Members `json` that are read for the names of their fields."""
_PLACE = msgspec.msgpack.Decoder(SamplePlace)


class _Context(msgspec.Struct, frozen=True):
    """What a worker needs to know of the listing."""

    paths: tuple[str, ...]
    suffixes: tuple[str, ...]
    classes: tuple[str, ...]
    has_images: bool
    is_exported: bool


class WebDatasetSource(Source):
    """Samples of tar files. An item's key is that of the sample.

    The headers are read once, in the parent. An item carries the offsets and lengths of its
    members, and a worker reads nothing else.
    """

    Options: ClassVar[type[Any]] = WebDatasetOptions

    def __init__(self, raw: Storage, options: WebDatasetOptions) -> None:
        self._raw = raw
        self._options = options
        self._listing: TarListing | None = None
        self._exported: Exported | None = None
        self._context: _Context | None = None
        self._values: MemberValues | None = None
        self._readers: OrderedDict[int, Reader] = OrderedDict()
        weakref.finalize(self, _close_all, self._readers)

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent, and open files where they are. Workers need the context,
        # also in a part of a build, which lists nothing.
        return type(self), (self._raw, self._options), {"_context": self._known()}

    def raw_files(self) -> Iterator[RawFile]:
        yield from self._list().files

    def labels(self) -> Mapping[str, Sequence[str]]:
        self._list()
        if self._exported is not None:
            return {name: names for name, names in self._exported.labels.items() if names}
        context = self._known()
        if not context.classes:
            return {}
        values = self._made_values()
        return {
            f"{values.class_prefix(suffix)}/label": context.classes
            for suffix in context.suffixes
            if suffix.rpartition(".")[2] == "cls"
        }

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._list().entries
        if self._options.fields:
            yield from self._absent_fields()

    def schema(self) -> str:
        listing = self._list()
        if self._exported is not None:
            return self._exported.schema
        values = self._made_values()
        images = _plain_images(listing.suffixes)
        text = "# The contract of a dataset made by the source `webdataset`. Tighten your copy.\n\n"
        done = set()
        for suffix, count in sorted(zip(listing.suffixes, listing.with_suffix, strict=True)):
            # `jpg` in some samples and `png` in others are one feature.
            if is_image_suffix(suffix):
                prefix = values.image_prefix(suffix)
                if prefix in done:
                    continue
                done.add(prefix)
                count = sum(
                    listing.with_suffix[listing.suffixes[each]]
                    for each in images.get(prefix, (suffix,))
                )
            text += values.schema(suffix, always=count >= listing.samples)
        return text

    def describe(self) -> Mapping[str, str]:
        """Summary of the raw data, for `--dry-run`."""
        listing = self._list()
        found = {
            f"split {split}": _tar_files([p for p in listing.paths if listing.splits[p] == split])
            for split in sorted({listing.splits[path] for path in listing.paths})
        }
        counts = zip(listing.suffixes, listing.with_suffix, strict=True)
        found["suffixes"] = ", ".join(f"{safe(name)} ({count:,})" for name, count in counts)
        if self._exported is not None:
            found["layout"] = "exported by tfrecreg: its records are restored"
        return found

    def example(self, item: Item) -> Example | Written | Skipped:
        place = _PLACE.decode(item.state)
        context = self._known()
        members = self._read(context, place)
        try:
            if context.is_exported:
                return restored(members)
            values = self._made_values()
            features: Example = {}
            remarks = []
            for suffix, data in members.items():
                made, remark = values.features(suffix, data)
                twice = made.keys() & features.keys()
                if twice:
                    detail = f"two members make the feature `{safe(min(twice))}`"
                    return Skipped(item.split, item.key, "SRC073", detail)
                features = {**features, **made}
                if remark:
                    remarks.append(Remark(item.split, item.key, "SRC014", remark))
        except ImageError as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        except UnusableMember as error:
            return Skipped(item.split, item.key, "SRC073", str(error))
        return Written(features, remarks) if remarks else features

    def _absent_fields(self) -> Iterator[Remark]:
        """Fields of `json_fields` that no sample has, as a misspelt one, by the first samples."""
        documents = list(islice(self._documents(), _LOOKED_AT))
        names = {name for _, data in documents for name in json_names(data)}
        for field in self._options.fields if documents else ():
            if field.name not in names:
                count = len(documents)
                some = "the only member" if count == 1 else f"the first {count} members"
                detail = f"no `{safe(field.name)}` in {some} `json`"
                near = did_you_mean(field.name, names)
                yield Remark(documents[0][0], field.name, "SRC076", detail + near)

    def _documents(self) -> Iterator[tuple[str, bytes]]:
        """The members `json` of all samples, with their splits."""
        listing = self._list()
        if self._exported is not None:
            return
        suffixes = [name.rpartition(".")[2] for name in listing.suffixes]
        for entry in listing.entries:
            if isinstance(entry, Item):
                place = _PLACE.decode(entry.state)
                for each in place.members:
                    if suffixes[each.suffix] == "json":
                        reader = self._reader(listing.paths[place.file], place.file)
                        yield entry.split, reader.read_at(each.offset, each.size)

    def _read(self, context: _Context, place: SamplePlace) -> dict[str, bytes]:
        """The members of a sample by suffix. Neighbors are read at once."""
        reader = self._reader(context.paths[place.file], place.file)
        first = place.members[0].offset
        end = max(each.offset + each.size for each in place.members)
        size = sum(each.size for each in place.members)
        if end - first <= size + _GAP:
            span = reader.read_at(first, end - first)
            parts = [span[at - first : at - first + length] for _, at, length in place.members]
        else:
            parts = [reader.read_at(at, length) for _, at, length in place.members]
        if sum(map(len, parts)) < size:
            raise RawDataError(
                f"`{safe(context.paths[place.file])}` became shorter while it was read: expected "
                f"{size} bytes of a sample, found {sum(map(len, parts))}",
                hint="build again when no other process writes to the raw data",
            )
        names = [context.suffixes[each.suffix] for each in place.members]
        return dict(zip(names, parts, strict=True))

    def _reader(self, path: str, number: int) -> Reader:
        reader = self._readers.get(number)
        if reader is None:
            if len(self._readers) >= _OPEN:
                self._readers.popitem(last=False)[1].close()
            reader = self._readers[number] = self._raw.open(path)
        else:
            self._readers.move_to_end(number)
        return reader

    def _made_values(self) -> MemberValues:
        if self._values is None:
            context = self._known()
            self._values = MemberValues(self._options, context.classes, context.has_images)
        return self._values

    def _known(self) -> _Context:
        if self._context is None:
            self._list()
            assert self._context is not None
        return self._context

    def _list(self) -> TarListing:
        if self._listing is None:
            self._exported = read_exported(self._raw) if self._options.restore else None
            listing = list_samples(self._raw, self._options, self._exported)
            classes: tuple[str, ...] = ()
            if self._options.classes and self._exported is None:
                classes = read_class_names(self._raw, self._options.classes)
                entry = self._raw.stat(self._options.classes, follow="all")
                if entry is not None:
                    listing.files.append(RawFile(self._options.classes, entry.size, entry.size))
            self._context = _Context(
                paths=listing.paths,
                suffixes=tuple(listing.suffixes),
                classes=classes,
                has_images=listing.has_images,
                is_exported=self._exported is not None,
            )
            self._listing = listing
        return self._listing


def _close_all(readers: OrderedDict[int, Reader]) -> None:
    while readers:
        readers.popitem()[1].close()


def _plain_images(suffixes: Mapping[str, int]) -> dict[str, list[str]]:
    """Suffixes of images by the prefix of their features."""
    found: dict[str, list[str]] = {}
    for suffix in filter(is_image_suffix, suffixes):
        before = suffix.rpartition(".")[0].replace(".", "/")
        found.setdefault(f"image/{before}" if before else "image", []).append(suffix)
    return found


def _tar_files(paths: Sequence[str]) -> str:
    first = safe(paths[0])
    return first if len(paths) == 1 else f"{len(paths)} tar files, from {first}"
