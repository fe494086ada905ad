"""The source `webdataset`: every sample of the tar files becomes one example.

The last part of a member's suffix determines its features: ``left.jpg`` is an image, with features
below ``image/left/``.
"""

from __future__ import annotations

import io
import json
import re
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from tfrecreg.api import (
    Example,
    Feature,
    ImageError,
    Item,
    Kind,
    RawDataError,
    RawFile,
    Reader,
    Remark,
    Skipped,
    Source,
    Storage,
    Written,
    bytes_feature,
    feature_from_json,
    feature_schema,
    float_feature,
    image_schema,
    int64_feature,
    no_duplicates,
    read_header,
    read_text,
    safe,
    serialize_tensor,
    truncation_text,
)
from tfrecreg_webdataset.samples import SamplePlace, Samples, WebDatasetOptions

_IMAGES = ("bmp", "gif", "jpeg", "jpg", "png", "webp")
_TEXTS = ("json", "text", "txt")
_TEXT = "natural_language_domain {}"
_NUMBER = re.compile(rb"\s*-?[0-9]{1,19}\s*")
_OPEN = 32
"""Number of tar files that a worker keeps open."""
_PLACE = msgspec.msgpack.Decoder(SamplePlace)


_FIELD_TYPES: dict[str, tuple[Any, Callable[[Any], Feature], Kind]] = {
    "int": (list[int | bool] | int | bool | None, int64_feature, Kind.INT64),
    "float": (list[float] | float | None, float_feature, Kind.FLOAT),
    "text": (list[str] | str | None, bytes_feature, Kind.BYTES),
}
"""For each type of fields, the accepted values and the feature that they become."""


class _Context(NamedTuple):
    """What a worker has to know about a dataset, so that it can turn samples into features."""

    options: WebDatasetOptions
    paths: Sequence[str]
    classes: Sequence[str]
    """The names of the classes; empty if they have none."""
    has_images: bool
    """Whether any sample has an image. If so, labels describe the image."""
    is_exported: bool

    def image_prefix(self, suffix: str) -> str:
        """The prefix that the names of an image's features share."""
        return "/".join(("image", *suffix.split(".")[:-1]))

    def class_prefix(self, suffix: str) -> str:
        """The prefix that the names of a label's features share."""
        return "/".join((*self.has_images * ("image",), *suffix.split(".")[:-1], "class"))

    def member(self, suffix: str, data: bytes) -> tuple[Example, str]:
        """The features of a member, and a remark if it is an image that is cut short."""
        form = _last(suffix)
        features: dict[str, Feature] = {}
        if form in _IMAGES:
            prefix, header = self.image_prefix(suffix), read_header(data)
            features[f"{prefix}/encoded"] = bytes_feature(data)
            features[f"{prefix}/format"] = bytes_feature(header.format)
            features[f"{prefix}/height"] = int64_feature(header.height)
            features[f"{prefix}/width"] = int64_feature(header.width)
            return features, truncation_text(data, header)
        if form == "cls":
            if not _NUMBER.fullmatch(data):
                raise ValueError("expected a number in digits")
            label, prefix = int(data), self.class_prefix(suffix)
            features[f"{prefix}/label"] = int64_feature(label)
            if self.classes:
                if not 0 <= label < len(self.classes):
                    raise ValueError(f"{label}, but there are only {len(self.classes)} class names")
                features[f"{prefix}/text"] = bytes_feature(self.classes[label])
            return features, ""
        text = data.decode() if form in _TEXTS else ""
        if form == "json":
            found = json.loads(text, object_pairs_hook=no_duplicates)
            for name, type_name in self.options.fields.items():
                accepted, make, _ = _FIELD_TYPES[type_name]
                value = msgspec.convert(found, dict[str, Any]).get(name)
                if msgspec.convert(value, accepted) is not None:
                    features[_field_name(suffix, name)] = make(value)
            if self.options.fields:
                return features, ""
        elif form == "npy" and self.options.npy == "tensor":
            data = _tensor(data)
        return {suffix: bytes_feature(data)}, ""

    def schema(self, suffix: str, *, always: bool) -> str:
        """The schema of members with a suffix. `always`: every sample has such a member."""
        form = _last(suffix)
        count: Literal["one", "optional"] = "one" if always else "optional"
        if form in _IMAGES:
            return image_schema(self.image_prefix(suffix), count)
        if form == "cls":
            prefix = self.class_prefix(suffix)
            bounds = f"min: 0 max: {len(self.classes) - 1} " if self.classes else ""
            domain = f"int_domain {{ {bounds}is_categorical: true }}"
            text = feature_schema(f"{prefix}/text", "BYTES", count, _TEXT) if self.classes else ""
            return feature_schema(f"{prefix}/label", "INT", count, domain) + text
        if form == "json" and self.options.fields:
            return "".join(
                feature_schema(
                    _field_name(suffix, name),
                    _FIELD_TYPES[kind][2],
                    "list",
                    _TEXT if kind == "text" else "",
                )
                for name, kind in self.options.fields.items()
            )
        return feature_schema(suffix, "BYTES", count, _TEXT if form in _TEXTS else "")


class WebDatasetSource(Source):
    """Samples of tar files. An item's key is the key of the sample.

    The headers are read once, in the parent. An item carries the offsets and lengths of its
    members, and a worker reads only these members.
    """

    Options: ClassVar[type[Any]] = WebDatasetOptions

    def __init__(self, raw: Storage, options: WebDatasetOptions) -> None:
        super().__init__(raw, options)
        self._classes = options.classes.removeprefix("./") or options.classes
        self._readers: dict[str, Reader] = {}
        weakref.finalize(self, _close_all, self._readers)

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent, and so do open files.
        return type(self), (self.raw, self.options), {"_context": self._context}

    @cached_property
    def _samples(self) -> Samples:
        return Samples(self.raw, self.options)

    @cached_property
    def _context(self) -> _Context:
        samples = self._samples
        is_exported = samples.exported is not None
        path = "" if is_exported else self._classes
        classes = _read_class_names(self.raw, path) if path else []
        has_images = any(_last(suffix) in _IMAGES for suffix in samples.suffixes)
        return _Context(self.options, samples.paths, classes, has_images, is_exported)

    def raw_files(self) -> Iterator[RawFile]:
        yield from self._samples.files
        if self._context.classes:
            entry = self.raw.stat(self._classes, follow="all")
            size = entry.size if entry is not None else 0
            yield RawFile(self._classes, size, size)

    def labels(self) -> Mapping[str, Sequence[str]]:
        samples, context = self._samples, self._context
        if samples.exported is not None:
            return {name: names for name, names in samples.exported.labels.items() if names}
        labels = [suffix for suffix in samples.suffixes if _last(suffix) == "cls"]
        names = {f"{context.class_prefix(suffix)}/label": context.classes for suffix in labels}
        return names if context.classes else {}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._samples.entries

    def schema(self) -> str:
        samples, context = self._samples, self._context
        if samples.exported is not None:
            return samples.exported.schema_text
        text = "# The contract of a dataset made by the source `webdataset`. Tighten your copy.\n\n"
        # `jpg` in some samples and `png` in others form one feature.
        counts: Counter[str] = Counter()
        first: dict[str, str] = {}
        for suffix, count in sorted(samples.suffixes.items()):
            name = context.image_prefix(suffix) + "/" if _last(suffix) in _IMAGES else suffix
            counts[name] += count
            first.setdefault(name, suffix)
        for name, suffix in first.items():
            text += context.schema(suffix, always=counts[name] >= samples.count)
        return text

    def describe(self) -> Mapping[str, str]:
        samples = self._samples
        found = {}
        for split in sorted({samples.splits[path] for path in samples.paths}):
            paths = [path for path in samples.paths if samples.splits[path] == split]
            number = f"{len(paths)} tar files, from " if len(paths) > 1 else ""
            found[f"split {split}"] = f"{number}{safe(paths[0])}"
        counts = samples.suffixes.items()
        found["suffixes"] = ", ".join(f"{safe(suffix)} ({count:,})" for suffix, count in counts)
        if samples.exported is not None:
            found["layout"] = "exported by tfrecreg: its records are restored"
        return found

    def example(self, item: Item) -> Example | Written | Skipped:
        context = self._context
        members = self._read(_PLACE.decode(item.state))
        features: dict[str, Feature] = {}
        remarks = []
        suffix = "json"
        try:
            if context.is_exported:
                return _restored(members)
            for suffix, data in members.items():
                made, remark = context.member(suffix, data)
                if twice := made.keys() & features.keys():
                    raise ValueError(f"another member has the same feature `{safe(min(twice))}`")
                features.update(made)
                if remark:
                    remarks.append(Remark(item.split, item.key, "SRC014", remark))
        except ImageError as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        except (ValueError, OverflowError, RecursionError) as error:
            why = safe(str(error).partition("\n")[0], limit=200)
            return Skipped(item.split, item.key, "SRC113", f"`{safe(suffix)}`: {why}")
        return Written(features, remarks) if remarks else features

    def _read(self, place: SamplePlace) -> dict[str, bytes]:
        """Read the members of a sample, by suffix. They are neighbors, so one read is enough."""
        path = self._context.paths[place.file]
        reader = self._readers.pop(path) if path in self._readers else self.raw.open(path)
        self._readers[path] = reader  # moved to the end, as most recently used
        if len(self._readers) > _OPEN:
            self._readers.pop(next(iter(self._readers))).close()
        first = min(each.offset for each in place.members)
        end = max(each.offset + each.size for each in place.members)
        data = reader.read_at(first, end - first)
        if len(data) < end - first:
            raise RawDataError(f"`{path}` became shorter while it was read")
        return {
            each.suffix: data[each.offset - first : each.offset - first + each.size]
            for each in place.members
        }


def _last(suffix: str) -> str:
    return suffix.rpartition(".")[2]


def _field_name(suffix: str, name: str) -> str:
    return f"{suffix.replace('.', '/')}/{name}"


def _read_class_names(raw: Storage, path: str) -> list[str]:
    """The class names in order of their numbers: one per line, or a list in a file `*.json`."""
    text = read_text(raw, path, limit=1 << 24)
    names = [line.strip() for line in text.rstrip().split("\n")]
    try:
        if path.lower().endswith(".json"):
            names = msgspec.json.decode(text, type=list[str])
        if not any(names):
            raise ValueError("it has no names")
    except ValueError as error:
        raise RawDataError(f"`{path}` cannot be read as class names: {error}") from None
    return names


def _tensor(data: bytes) -> bytes:
    """The array of a NumPy file, serialized with its shape and type."""
    from numpy.lib import format as numpy_format

    npy: Any = numpy_format  # its functions have no types
    file = io.BytesIO(data)
    try:
        array = npy.read_array(file, allow_pickle=False)
        if file.tell() != len(data):
            raise ValueError(f"{len(data) - file.tell()} bytes follow the array")
        return serialize_tensor(array)
    except (SyntaxError, TypeError, MemoryError) as error:  # beside ValueError
        raise ValueError(f"not an array: {error}") from None


def _restored(members: Mapping[str, bytes]) -> Example:
    """The record that a sample was exported from."""
    try:
        document: Any = json.loads(members["json"])
        features = {name: feature_from_json(value) for name, value in document["features"].items()}
        for suffix, name in document["files"].items():
            data = members[suffix]
            features[name] = int64_feature(int(data)) if suffix == "cls" else bytes_feature(data)
    except (TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"not an exported sample: {type(error).__name__}, {error}") from None
    return features


def _close_all(readers: dict[str, Reader]) -> None:
    while readers:
        readers.popitem()[1].close()
