"""The features of a member by its suffix, and their part of the schema.

============================  ======================================================================
suffix                        features
============================  ======================================================================
``jpg``, ``png``, ``webp`` …  ``image/encoded``, ``image/format``, ``image/height``, ``image/width``
``cls``                       ``image/class/label``, and with class names ``image/class/text``
``txt``, ``text``             a text in UTF-8, under the suffix
``json``                      a text, under the suffix; or fields, as ``json/NAME``
``npy``                       a serialized tensor, or the file, under the suffix
any other                     the bytes of the file, under the suffix
============================  ======================================================================

What follows the last dot of a suffix decides: ``left.jpg`` is an image, with features below
``image/left/``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tfrecreg.api import (
    Example,
    Feature,
    bytes_feature,
    feature_schema,
    float_feature,
    image_schema,
    int64_feature,
    no_duplicates,
    read_header,
    safe,
    serialize_tensor,
    truncation_text,
)
from tfrecreg_webdataset.webdataset_options import FieldType, JsonField, WebDatasetOptions

IMAGE_SUFFIXES = frozenset(("bmp", "gif", "jpeg", "jpg", "png", "webp"))
_TEXTS = frozenset(("text", "txt"))
_TEXT_DOMAIN = "natural_language_domain {}"
_SCHEMA_TYPES: Mapping[FieldType, Literal["BYTES", "FLOAT", "INT"]] = {
    "int": "INT",
    "float": "FLOAT",
    "text": "BYTES",
}
_MAX_DIGITS = 20


class UnusableMember(Exception):
    """A member whose bytes are not what its suffix says; the message says why."""


@dataclass(frozen=True, slots=True)
class MemberValues:
    """How the members of one dataset become features. Picklable."""

    options: WebDatasetOptions
    classes: tuple[str, ...]
    """The names of the classes; empty if they have none."""
    has_images: bool
    """Whether any sample has an image, which the label is about then."""

    def features(self, suffix: str, data: bytes) -> tuple[Example, str]:
        """The features of a member, and a remark on an image that is cut short, or nothing."""
        form = suffix.rpartition(".")[2]
        if form in IMAGE_SUFFIXES:
            prefix = self.image_prefix(suffix)
            header = read_header(data)
            return {
                f"{prefix}/encoded": bytes_feature(data),
                f"{prefix}/format": bytes_feature(header.format),
                f"{prefix}/height": int64_feature(header.height),
                f"{prefix}/width": int64_feature(header.width),
            }, truncation_text(data, header)
        try:
            return self._others(suffix, form, data), ""
        except UnusableMember as error:
            raise UnusableMember(f"`{safe(suffix)}` {error}") from None

    def image_prefix(self, suffix: str) -> str:
        """What the features of an image begin with."""
        before = suffix.rpartition(".")[0]
        return f"image/{before.replace('.', '/')}" if before else "image"

    def class_prefix(self, suffix: str) -> str:
        """What the features of a label begin with."""
        before = suffix.rpartition(".")[0]
        prefix = f"{before.replace('.', '/')}/class" if before else "class"
        return f"image/{prefix}" if self.has_images else prefix

    def schema(self, suffix: str, always: bool) -> str:
        """The schema of the features of these members."""
        form = suffix.rpartition(".")[2]
        count: Literal["one", "optional"] = "one" if always else "optional"
        if form in IMAGE_SUFFIXES:
            return image_schema(self.image_prefix(suffix), count)
        if form == "cls":
            prefix = self.class_prefix(suffix)
            bounds = f"min: 0 max: {len(self.classes) - 1} " if self.classes else ""
            domain = f"int_domain {{ {bounds}is_categorical: true }}"
            text = feature_schema(f"{prefix}/label", "INT", count, domain)
            if self.classes:
                text += feature_schema(f"{prefix}/text", "BYTES", count, _TEXT_DOMAIN)
            return text
        if form == "json" and self.options.fields:
            return "".join(
                feature_schema(
                    _field_name(suffix, each),
                    _SCHEMA_TYPES[each.type],
                    "list",
                    _TEXT_DOMAIN if each.type == "text" else "",
                )
                for each in self.options.fields
            )
        is_text = form in _TEXTS or form == "json"
        return feature_schema(suffix, "BYTES", count, _TEXT_DOMAIN if is_text else "")

    def _others(self, suffix: str, form: str, data: bytes) -> Example:
        if form == "cls":
            return self._label(suffix, data)
        if form in _TEXTS:
            _decoded(data)
        elif form == "json":
            found = _json(data)
            if self.options.fields:
                return _fields(suffix, found, self.options.fields)
        elif form == "npy" and self.options.npy == "tensor":
            return {suffix: bytes_feature(_tensor(data))}
        return {suffix: bytes_feature(data)}

    def _label(self, suffix: str, data: bytes) -> Example:
        text = data.strip()
        digits = text.removeprefix(b"-")
        if not (digits.isdigit() and len(digits) < _MAX_DIGITS):
            found = safe(text[:40].decode("utf-8", "replace"))
            raise UnusableMember(f"should be a number in digits, found `{found}`")
        label = int(text)
        prefix = self.class_prefix(suffix)
        if not self.classes:
            if not -(2**63) <= label < 2**63:
                raise UnusableMember(f"is {label}, which no int64 holds")
            return {f"{prefix}/label": int64_feature(label)}
        if not 0 <= label < len(self.classes):
            raise UnusableMember(f"is {label}, and there are {len(self.classes)} class names")
        name = self.classes[label]
        return {f"{prefix}/label": int64_feature(label), f"{prefix}/text": bytes_feature(name)}


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UnusableMember(f"is not UTF-8 at byte {error.start}") from None


def _json(data: bytes) -> Any:
    text = _decoded(data)
    try:
        return json.loads(text, object_pairs_hook=no_duplicates)
    except (ValueError, RecursionError) as error:
        raise UnusableMember(f"is not JSON: {safe(str(error), limit=100)}") from None


def json_names(data: bytes) -> set[str]:
    """The names of the fields in a member `json`; empty if it is no object."""
    try:
        found = _json(data)
    except UnusableMember:
        return set()
    return set(found) if isinstance(found, dict) else set()


def _fields(suffix: str, found: Any, fields: Sequence[JsonField]) -> Example:
    if not isinstance(found, Mapping):
        raise UnusableMember(f"should be a JSON object, found {_kind(found)}")
    features: dict[str, Feature] = {}
    for field in fields:
        value = found.get(field.name)
        if value is None:  # a field that is absent or null
            continue
        values = value if isinstance(value, list) else [value]
        wanted, make = _FIELD_TYPES[field.type]
        wrong = next((each for each in values if type(each) not in wanted), None)
        if wrong is not None or None in values:
            what = "null" if wrong is None else _kind(wrong)
            raise UnusableMember(f"has {what} in `{safe(field.name)}`, expected {field.type}")
        try:
            features[_field_name(suffix, field)] = make(values)
        except (ValueError, OverflowError) as error:
            raise UnusableMember(f"has in `{safe(field.name)}`: {error}") from None
    return features


def _field_name(suffix: str, field: JsonField) -> str:
    return f"{suffix.replace('.', '/')}/{field.name}"


_FIELD_TYPES: Mapping[str, tuple[tuple[type, ...], Callable[[Any], Feature]]] = {
    "int": ((int, bool), int64_feature),
    "float": ((float, int), float_feature),
    "text": ((str,), bytes_feature),
}


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean"}
    return names.get(type(value), "null" if value is None else "a number")


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
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        first = str(error).partition("\n")[0]
        raise UnusableMember(f"is not an array for a tensor: {safe(first, limit=100)}") from None
