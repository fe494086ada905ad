"""A record as the members of a WebDataset sample, and back.

An image and a label become files of their own, which loaders decode by their suffixes; all other
features become JSON. Each is only done where it loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tfrecreg.api import (
    Example,
    Feature,
    Kind,
    bytes_feature,
    feature_from_json,
    feature_to_json,
    int64_feature,
    sniff,
)

_SUFFIXES = {"jpeg": "jpg", "png": "png", "gif": "gif", "webp": "webp", "bmp": "bmp"}
_OTHER_SUFFIX = "bin"
_LABEL_SUFFIX = "cls"
_JSON_SUFFIX = "json"


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
        """The files of a record; the JSON comes last."""
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
    """The features of the sample with these files, by suffix."""
    document = json.loads(members[_JSON_SUFFIX])
    features = {name: feature_from_json(value) for name, value in document["features"].items()}
    for suffix, name in document["files"].items():
        data = members[suffix]
        is_label = suffix == _LABEL_SUFFIX
        features[name] = int64_feature(int(data)) if is_label else bytes_feature(data)
    return features


def _is_one_integer(feature: Feature) -> bool:
    return feature.kind is Kind.INT64 and feature.count == 1
