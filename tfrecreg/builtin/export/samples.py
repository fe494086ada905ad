"""A record as the members of a WebDataset sample, and back.

An image and a label become files of their own, which loaders decode by their suffixes; all other
features become JSON. Each is only done where it loses nothing:

    12               INT64         a JSON integer
    0.5              FLOAT         a JSON number with a decimal point or an exponent
    "text"           BYTES         valid UTF-8
    {"base64": …}    BYTES         any other bytes
    [ … ]            several values of one of these kinds
    {"kind": …}      no values: ``bytes``, ``float``, ``int64``, or ``unset`` for no kind
    {"float32": …}   FLOAT with values that are not finite: base64 of the little-endian bits
"""

from __future__ import annotations

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfrecreg.api import (
    Example,
    Feature,
    Kind,
    bytes_feature,
    float_feature,
    int64_feature,
    sniff,
    unset_feature,
)

_SUFFIXES = {"jpeg": "jpg", "png": "png", "gif": "gif", "webp": "webp", "bmp": "bmp"}
_OTHER_SUFFIX = "bin"
_LABEL_SUFFIX = "cls"
_JSON_SUFFIX = "json"

_EMPTY: Mapping[str, Callable[[], Feature]] = {
    "bytes": lambda: bytes_feature([]),
    "float": lambda: float_feature([]),
    "int64": lambda: int64_feature([]),
    "unset": unset_feature,
}


class Member(NamedTuple):
    """One file of a sample."""

    suffix: str
    """What follows the key and a dot."""
    data: bytes


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """The features that become files of their own. Picklable."""

    images: tuple[tuple[str, str], ...]
    """Feature, and the start of its suffix: empty for the only image of the schema."""
    label: str | None
    """The feature of the label."""

    def members(self, key: str | None, features: Example) -> Iterator[Member]:
        """The files of a record; the JSON comes last.

        Args:
            key: of the record, kept in the JSON.
        """
        files: dict[str, str] = {}
        for name, prefix in self.images:
            feature = features.get(name)
            if feature is not None and feature.kind is Kind.BYTES and feature.count == 1:
                data = feature.values[0]
                suffix = prefix + _SUFFIXES.get(sniff(data) or "", _OTHER_SUFFIX)
                files[suffix] = name
                yield Member(suffix, data)
        label = features.get(self.label) if self.label is not None else None
        if self.label is not None and label is not None and _is_one_integer(label):
            files[_LABEL_SUFFIX] = self.label
            yield Member(_LABEL_SUFFIX, str(label.values[0]).encode())
        apart = set(files.values())
        document = {
            "key": key,
            "files": files,
            "features": {
                name: feature_to_json(feature)
                for name, feature in features.items()
                if name not in apart
            },
        }
        text = json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":"))
        yield Member(_JSON_SUFFIX, text.encode())


def sample_features(members: Mapping[str, bytes]) -> Example:
    """The features of the sample with these files, by suffix.

    Raises:
        ValueError: its JSON is not from :meth:`SampleLayout.members`.
        KeyError: a file is missing.
    """
    document = json.loads(members[_JSON_SUFFIX])
    features = {name: feature_from_json(value) for name, value in document["features"].items()}
    for suffix, name in document["files"].items():
        data = members[suffix]
        is_label = suffix == _LABEL_SUFFIX
        features[name] = int64_feature(int(data)) if is_label else bytes_feature(data)
    return features


def _is_one_integer(feature: Feature) -> bool:
    return feature.kind is Kind.INT64 and feature.count == 1


def feature_to_json(feature: Feature) -> Any:
    """A feature as JSON holds it, without loss; the module has the table."""
    if not feature.count:
        return {"kind": feature.kind.name.lower()}
    if feature.kind is Kind.FLOAT and not all(map(math.isfinite, feature.values)):
        return {"float32": b64encode(feature.packed_floats).decode()}
    values = list(feature.values)
    if feature.kind is Kind.BYTES:
        values = [_bytes_to_json(value) for value in values]
    return values[0] if len(values) == 1 else values


def _bytes_to_json(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def feature_from_json(value: Any) -> Feature:
    """The inverse of :func:`feature_to_json`.

    Raises:
        ValueError: it is not in that form.
        KeyError: neither.
    """
    if isinstance(value, dict) and "kind" in value:
        return _EMPTY[value["kind"]]()
    if isinstance(value, dict) and "float32" in value:
        return float_feature(b64decode(value["float32"], validate=True))
    values = value if isinstance(value, list) else [value]
    first = values[0]
    if isinstance(first, int):
        return int64_feature(values)
    if isinstance(first, float):
        return float_feature(values)
    return bytes_feature(list(map(_bytes_from_json, values)))


def _bytes_from_json(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return b64decode(value["base64"], validate=True)
