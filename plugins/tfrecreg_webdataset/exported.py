"""Folders that `tfrecreg export --to webdataset` wrote: their records are restored.

`tfrecreg.json` in such a folder names the files with their splits and numbers of records, and has
the class names; the JSON of a sample has all that its other members do not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tfrecreg.api import (
    Example,
    RawDataError,
    Storage,
    bytes_feature,
    feature_from_json,
    int64_feature,
    safe,
)
from tfrecreg_webdataset.member_values import UnusableMember

DESCRIPTION = "tfrecreg.json"
SCHEMA = "schema.pbtxt"
JSON_SUFFIX = "json"
_LABEL_SUFFIX = "cls"
_WRONG = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""What JSON raises that is not from an export."""


class _File(msgspec.Struct):
    path: str
    split: str
    records: int


class _Document(msgspec.Struct):
    to: str
    files: list[_File]
    labels: dict[str, list[str]]


class _Sample(msgspec.Struct):
    key: str | None


@dataclass(frozen=True, slots=True)
class Exported:
    """What an exported folder says of itself."""

    splits: Mapping[str, str]
    """Split by tar file."""
    records: Mapping[str, int]
    """Number of records by tar file."""
    labels: Mapping[str, Sequence[str]]
    schema: str


def read_exported(raw: Storage) -> Exported | None:
    """The description of an exported folder; None if there is none of this format."""
    found = raw.stat(DESCRIPTION)
    if found is None or found.kind != "file":
        return None
    try:
        document = msgspec.json.decode(raw.read(DESCRIPTION), type=_Document)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unusable(DESCRIPTION, safe(str(error), limit=200)) from None
    if document.to != "webdataset":
        return None
    for each in document.files:
        entry = raw.stat(each.path, follow="all")
        if entry is None or entry.kind != "file":
            raise _unusable(DESCRIPTION, f"it names `{safe(each.path)}`, which is missing")
    schema = raw.stat(SCHEMA)
    if schema is None or schema.kind != "file":
        raise _unusable(DESCRIPTION, f"`{SCHEMA}` is missing beside it")
    try:
        text = raw.read(SCHEMA).decode()
    except UnicodeDecodeError:
        raise _unusable(SCHEMA, "it is not UTF-8") from None
    return Exported(
        splits={each.path: each.split for each in document.files},
        records={each.path: each.records for each in document.files},
        labels=document.labels,
        schema=text,
    )


def key_of_sample(data: bytes) -> str | None:
    """The key of the record in a sample's JSON; None if it has none."""
    try:
        return msgspec.json.decode(data, type=_Sample).key
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def restored(members: Mapping[str, bytes]) -> Example:
    """The record of a sample."""
    try:
        document: Any = json.loads(members[JSON_SUFFIX])
        features = {name: feature_from_json(value) for name, value in document["features"].items()}
        for suffix, name in document["files"].items():
            data = members[suffix]
            is_label = suffix == _LABEL_SUFFIX
            features[name] = int64_feature(int(data)) if is_label else bytes_feature(data)
    except _WRONG as error:
        raise UnusableMember(
            f"the sample is not as an export wrote it: {type(error).__name__}, "
            f"{safe(str(error), limit=100)}"
        ) from None
    return features


def _unusable(path: str, why: str) -> RawDataError:
    return RawDataError(
        f"the folder was exported by tfrecreg, but `{path}` cannot be used: {why}",
        hint="export it again, or read the samples as any others: --option restore=no",
    )
