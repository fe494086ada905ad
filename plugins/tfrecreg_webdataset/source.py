"""The source `webdataset`: every sample of the tar files becomes one example.

The last part of a member's suffix decides what becomes of it: ``left.jpg`` is an image, with
features below ``image/left/``.
"""

from __future__ import annotations

import io
import json
import re
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from tfrecreg.api import (
    Example,
    Feature,
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
    bytes_feature,
    did_you_mean,
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
_MAX_CLASSES = 1_000_000
_OPEN = 32
"""Tar files that a worker keeps open."""
_LOOKED_AT = 20
"""Members `json` that are read for the names of their fields."""
_PLACE = msgspec.msgpack.Decoder(SamplePlace)


class _FieldType(NamedTuple):
    accepted: Any
    feature: Callable[[Any], Feature]
    schema: Literal["BYTES", "FLOAT", "INT"]
    domain: str = ""


_FIELD_TYPES = {
    "int": _FieldType(list[int | bool] | int | bool | None, int64_feature, "INT"),
    "float": _FieldType(list[float] | float | None, float_feature, "FLOAT"),
    "text": _FieldType(list[str] | str | None, bytes_feature, "BYTES", _TEXT),
}


class _Context(NamedTuple):
    """How the samples of one dataset become features. What a worker needs to know."""

    options: WebDatasetOptions
    paths: Sequence[str]
    classes: Sequence[str]
    """The names of the classes; empty if they have none."""
    has_images: bool
    """Whether any sample has an image, which the label is about then."""
    is_exported: bool

    def image_prefix(self, suffix: str) -> str:
        """What the features of an image begin with."""
        return "/".join(("image", *suffix.split(".")[:-1]))

    def class_prefix(self, suffix: str) -> str:
        """What the features of a label begin with."""
        return "/".join((*self.has_images * ("image",), *suffix.split(".")[:-1], "class"))

    def image(self, suffix: str, data: bytes) -> tuple[Example, str]:
        """The features of an image, and a remark if it is cut short, or nothing."""
        prefix, header = self.image_prefix(suffix), read_header(data)
        features = {
            f"{prefix}/encoded": bytes_feature(data),
            f"{prefix}/format": bytes_feature(header.format),
            f"{prefix}/height": int64_feature(header.height),
            f"{prefix}/width": int64_feature(header.width),
        }
        return features, truncation_text(data, header)

    def member(self, suffix: str, data: bytes) -> Example:
        """The features of another member."""
        form = _last(suffix)
        if form == "cls":
            return self._label(suffix, data)
        if form in _TEXTS:
            text = data.decode()
            if form == "json":
                found = json.loads(text, object_pairs_hook=no_duplicates)
                if self.options.fields:
                    return self._chosen(suffix, found)
        elif form == "npy" and self.options.npy == "tensor":
            data = _tensor(data)
        return {suffix: bytes_feature(data)}

    def _label(self, suffix: str, data: bytes) -> Example:
        if not _NUMBER.fullmatch(data):
            raise ValueError("expected a number in digits")
        label, prefix = int(data), self.class_prefix(suffix)
        features = {f"{prefix}/label": int64_feature(label)}
        if self.classes:
            if not 0 <= label < len(self.classes):
                raise ValueError(f"{label}, and there are {len(self.classes)} class names")
            features[f"{prefix}/text"] = bytes_feature(self.classes[label])
        return features

    def _chosen(self, suffix: str, found: Any) -> Example:
        features: dict[str, Feature] = {}
        for name, type_name in self.options.fields.items():
            kind = _FIELD_TYPES[type_name]
            value = msgspec.convert(found, dict[str, Any]).get(name)
            if msgspec.convert(value, kind.accepted) is not None:
                features[_field_name(suffix, name)] = kind.feature(value)
        return features

    def schema(self, suffix: str, *, always: bool) -> str:
        """The schema of the features of these members, which all samples have or some."""
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
                    _FIELD_TYPES[kind].schema,
                    "list",
                    _FIELD_TYPES[kind].domain,
                )
                for name, kind in self.options.fields.items()
            )
        return feature_schema(suffix, "BYTES", count, _TEXT if form in _TEXTS else "")


class WebDatasetSource(Source):
    """Samples of tar files. An item's key is that of the sample.

    The headers are read once, in the parent. An item carries the offsets and lengths of its
    members, and a worker reads nothing else.
    """

    Options: ClassVar[type[Any]] = WebDatasetOptions

    def __init__(self, raw: Storage, options: WebDatasetOptions) -> None:
        self._raw = raw
        self._options = options
        self._samples: Samples | None = None
        self._context: _Context | None = None
        self._readers: dict[str, Reader] = {}
        weakref.finalize(self, _close_all, self._readers)

    def __reduce__(self) -> tuple[object, ...]:
        # The listing stays in the parent, and open files where they are. Workers need the context,
        # also in a part of a build, which lists nothing.
        return type(self), (self._raw, self._options), {"_context": self._known()}

    def raw_files(self) -> Iterator[RawFile]:
        yield from self._list().files
        if self._known().classes:
            entry = self._raw.stat(self._options.classes, follow="all")
            size = entry.size if entry is not None else 0
            yield RawFile(self._options.classes, size, size)

    def labels(self) -> Mapping[str, Sequence[str]]:
        samples, context = self._list(), self._known()
        if samples.exported is not None:
            return {name: names for name, names in samples.exported.labels.items() if names}
        labels = [suffix for suffix in samples.suffixes if _last(suffix) == "cls"]
        names = {f"{context.class_prefix(suffix)}/label": context.classes for suffix in labels}
        return names if context.classes else {}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._list().entries
        if self._options.fields and not self._known().is_exported:
            yield from self._absent_fields()

    def schema(self) -> str:
        samples, context = self._list(), self._known()
        if samples.exported is not None:
            return samples.exported.schema_text
        text = "# The contract of a dataset made by the source `webdataset`. Tighten your copy.\n\n"
        # `jpg` in some samples and `png` in others are one feature.
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
        """Summary of the raw data, for `--dry-run`."""
        samples = self._list()
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
        context = self._known()
        members = self._read(_PLACE.decode(item.state))
        features: dict[str, Feature] = {}
        remarks = []
        suffix = "json"
        try:
            if context.is_exported:
                return _restored(members)
            for suffix, data in members.items():
                remark = ""
                if _last(suffix) in _IMAGES:
                    made, remark = context.image(suffix, data)
                else:
                    made = context.member(suffix, data)
                if twice := made.keys() & features.keys():
                    raise ValueError(f"another member makes the feature `{safe(min(twice))}`")
                features.update(made)
                if remark:
                    remarks.append(Remark(item.split, item.key, "SRC014", remark))
        except ImageError as error:
            return Skipped(item.split, item.key, error.code, error.detail)
        except (ValueError, OverflowError, RecursionError) as error:
            why = safe(str(error).partition("\n")[0], limit=200)
            return Skipped(item.split, item.key, "SRC073", f"`{safe(suffix)}`: {why}")
        return Written(features, remarks) if remarks else features

    def _absent_fields(self) -> Iterator[Remark]:
        """Fields of `json_fields` that the first samples lack: they may be misspelt."""
        names: set[str] = set()
        splits = []
        for split, data in islice(self._documents(), _LOOKED_AT):
            splits.append(split)
            with suppress(ValueError, RecursionError):  # its sample is skipped
                found = json.loads(data)
                names.update(found if isinstance(found, dict) else ())
        for field in self._options.fields if splits else ():
            if field not in names:
                detail = f"no `{safe(field)}` in the first members `json`, {len(splits)} of them"
                near = did_you_mean(field, names)
                yield Remark(splits[0], field, "SRC076", detail + near)

    def _documents(self) -> Iterator[tuple[str, bytes]]:
        """The members `json` of all samples, with their splits."""
        for item in self._list().entries:
            if isinstance(item, Item):
                file, members = _PLACE.decode(item.state)
                for each in members:
                    if _last(each.suffix) == "json":
                        yield item.split, self._read(SamplePlace(file, [each]))[each.suffix]

    def _read(self, place: SamplePlace) -> dict[str, bytes]:
        """The members of a sample by suffix, in one read: they are neighbors."""
        path = self._known().paths[place.file]
        reader = self._readers.pop(path) if path in self._readers else self._raw.open(path)
        self._readers[path] = reader  # behind those that were not needed for longer
        if len(self._readers) > _OPEN:
            self._readers.pop(next(iter(self._readers))).close()
        first = min(each.offset for each in place.members)
        end = max(each.offset + each.size for each in place.members)
        data = reader.read_at(first, end - first)
        if len(data) < end - first:
            raise RawDataError(
                f"`{safe(path)}` became shorter while it was read",
                hint="build again when no other process writes to the raw data",
            )
        return {
            each.suffix: data[each.offset - first : each.offset - first + each.size]
            for each in place.members
        }

    def _known(self) -> _Context:
        if self._context is None:
            samples = self._list()
            is_exported = samples.exported is not None
            path = "" if is_exported else self._options.classes
            classes = _read_class_names(self._raw, path) if path else []
            has_images = any(_last(suffix) in _IMAGES for suffix in samples.suffixes)
            self._context = _Context(self._options, samples.paths, classes, has_images, is_exported)
        return self._context

    def _list(self) -> Samples:
        if self._samples is None:
            self._samples = Samples(self._raw, self._options)
        return self._samples


def _last(suffix: str) -> str:
    return suffix.rpartition(".")[2]


def _field_name(suffix: str, name: str) -> str:
    return f"{suffix.replace('.', '/')}/{name}"


def _read_class_names(raw: Storage, path: str) -> list[str]:
    """The names in order of their numbers; a number without a name has the empty one.

    A file `*.json` holds a list of names, or an object from names to numbers or from numbers to
    names. Any other has a name in each line.
    """
    text = read_text(raw, path, limit=1 << 24)
    names = [line.strip() for line in text.rstrip().split("\n")]
    try:
        if path.lower().endswith(".json"):
            found = msgspec.json.decode(text, type=list[str] | dict[str, str | int])
            names = _by_numbers(found) if isinstance(found, dict) else found
        if not any(names):
            raise ValueError("it has no names")
    except ValueError as error:
        raise RawDataError(
            f"`{safe(path)}` cannot be read as class names: {safe(str(error), limit=200)}",
            hint="a name in each line, or JSON: a list of names, or an object of names and numbers",
        ) from None
    return names


def _by_numbers(found: Mapping[str, str | int]) -> list[str]:
    numbers = {each: key for key, each in found.items() if isinstance(each, int)}
    numbers |= {int(key): each for key, each in found.items() if isinstance(each, str)}
    if len(numbers) < len(found) or not {*numbers} <= {*range(_MAX_CLASSES)}:
        raise ValueError("expected a name for each number, from 0")
    return [numbers.get(number, "") for number in range(max(numbers, default=-1) + 1)]


def _tensor(data: bytes) -> bytes:
    """The array of a file of NumPy, serialized: its shape and its type are kept."""
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
        raise ValueError(f"not as an export wrote it: {type(error).__name__}, {error}") from None
    return features


def _close_all(readers: dict[str, Reader]) -> None:
    while readers:
        readers.popitem()[1].close()
