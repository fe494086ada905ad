"""The `dataset_info.json` of TensorFlow Datasets: splits, shards, counts, and where data are from.

The JSON is that of TFDS's proto ``dataset_info.proto``: names of fields in either spelling, 64-bit
integers as strings. RLDS writes the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.documents import strict_json
from tfrecreg.core.values.errors import MissingFileError, StorageError
from tfrecreg.core.values.text import safe

INFO_NAME = "dataset_info.json"

_MOST_BYTES = 1 << 26
_MOST_SHARDS = 1 << 20
_MOST_TEXT = 1 << 20
_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
"""TFDS's own, where a split names none: before version 4.5 none did."""
_HOLES = frozenset({"DATASET", "SPLIT", "FILEFORMAT", "SHARD_INDEX", "NUM_SHARDS", "SHARD_X_OF_Y"})
_DOI = re.compile(r"\b(10\.\d{4,9}/[^\s\"'{}<>,;]+)")
_UNFINISHED = re.compile(r"^incomplete\.[0-9A-Za-z]{6,32}[._]|\.incomplete[0-9A-Za-z]*", re.ASCII)


class NotTfdsError(ValueError):
    """A file of that name is not one of TensorFlow Datasets. The text is the reason, escaped."""


@dataclass(frozen=True, slots=True)
class InfoSplit:
    """A split, as the file describes it."""

    name: str
    lengths: tuple[int, ...]
    """Number of records of each shard: `shardLengths`. Empty if the file does not say."""
    shards: int
    """Number of shards: that of `lengths`, or `numShards` of TFDS before 4.0."""
    records: int | None
    """Number of records in all: the sum of `lengths`, or `statistics.numExamples` of TFDS before
    4.0. None if the file does not say.
    """
    bytes: int | None
    """Size of all payloads, without framing: `numBytes`. None if the file does not say."""
    template: str


@dataclass(frozen=True, slots=True)
class TfdsInfo:
    """A dataset of TFDS, as its folder describes it."""

    path: str
    """Place of the file, for messages. Not escaped."""
    name: str
    version: str
    file_format: str
    splits: tuple[InfoSplit, ...]
    description: str
    citation: str
    license: str
    urls: tuple[str, ...]

    def files(self, split: InfoSplit) -> tuple[str, ...]:
        """The names of the shards of a split, in order."""
        of = split.shards
        return tuple(self._file(split, number, of) for number in range(of))

    def _file(self, split: InfoSplit, number: int, of: int) -> str:
        values = {
            "DATASET": self.name,
            "SPLIT": split.name,
            "FILEFORMAT": self.file_format,
            "SHARD_INDEX": f"{number:05d}",
            "NUM_SHARDS": f"{of:05d}",
            "SHARD_X_OF_Y": f"{number:05d}-of-{of:05d}",
        }
        return re.sub(r"\{(\w+)\}", lambda hole: values[hole[1]], split.template)

    @property
    def doi(self) -> str:
        """The DOI that its citation or its homepage has; empty without one."""
        texts = (self.citation, *self.urls)
        found = next((hit for text in texts if (hit := _DOI.search(text))), None)
        return found[1].rstrip(".)") if found else ""


def is_unfinished(name: str) -> bool:
    """Whether a file or folder of this name is one that TFDS was writing when it ended."""
    return _UNFINISHED.search(name) is not None


def read_info(storage: Readable, folder: str) -> TfdsInfo | None:
    """The description in a folder; None if there is none."""
    path = f"{folder}/{INFO_NAME}" if folder else INFO_NAME
    try:
        data = storage.read(path, limit=_MOST_BYTES)
    except MissingFileError:
        return None
    except StorageError as error:
        raise NotTfdsError(error.message) from None
    try:
        plain = strict_json(data)
        return _info(plain, f"{storage.root.rstrip('/')}/{path}")
    except NotTfdsError:
        raise
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise NotTfdsError(f"it does not parse: {safe(reason, limit=200)}") from None


def _info(plain: object, path: str) -> TfdsInfo:
    if not isinstance(plain, dict):
        raise NotTfdsError("it is not an object")
    name = _text(plain, "name")
    listed = _field(plain, "splits", [])
    if not name or not isinstance(listed, list):
        raise NotTfdsError("it is not of TensorFlow Datasets: expected `name` and a list `splits`")
    splits = tuple(map(_split, listed))
    twice = [name for name, times in Counter(each.name for each in splits).items() if times > 1]
    if twice:
        raise NotTfdsError(f"it lists the split `{safe(twice[0])}` twice")
    if sum(split.shards for split in splits) > _MOST_SHARDS:
        raise NotTfdsError(f"it lists more than {_MOST_SHARDS} shards")
    place = _field(plain, "location", {})
    terms = _field(plain, "redistributionInfo", {})
    urls = _field(place, "urls", []) if isinstance(place, dict) else []
    return TfdsInfo(
        path=path,
        name=name,
        version=_text(plain, "version"),
        file_format=_text(plain, "fileFormat") or "tfrecord",
        splits=splits,
        description=_text(plain, "description"),
        citation=_text(plain, "citation"),
        license=_text(terms, "license") if isinstance(terms, dict) else "",
        urls=tuple(each for each in urls if isinstance(each, str)),
    )


def _split(plain: object) -> InfoSplit:
    if not isinstance(plain, dict) or not _text(plain, "name"):
        raise NotTfdsError("it has a split without a name")
    name = _text(plain, "name")
    where = f"of the split `{safe(name)}`"
    lengths = _field(plain, "shardLengths", [])
    if not isinstance(lengths, list):
        raise NotTfdsError(f"`shardLengths` {where} is not a list")
    numbers = tuple(_number(each, f"`shardLengths` {where}") for each in lengths)
    shards = len(numbers)
    records: int | None = sum(numbers)
    if not numbers:
        statistics = _field(plain, "statistics", {})
        declared = _field(statistics, "numExamples", None) if isinstance(statistics, dict) else None
        shards = _number(_field(plain, "numShards", 0), f"`numShards` {where}")
        said = declared is not None and shards > 0
        records = _number(declared, f"`numExamples` {where}") if said else None
    size = _field(plain, "numBytes", None)
    template = _text(plain, "filepathTemplate") or _TEMPLATE
    strange = sorted(set(re.findall(r"\{(\w+)\}", template)) - _HOLES)
    if strange or "/" in template or "\\" in template:
        shown = safe(template, limit=200)
        raise NotTfdsError(f"`filepathTemplate` {where} is not that of files here: `{shown}`")
    return InfoSplit(
        name=name,
        lengths=numbers,
        shards=shards,
        records=records,
        bytes=None if size is None else _number(size, f"`numBytes` {where}"),
        template=template,
    )


def _field(plain: Mapping[str, Any], name: str, default: Any) -> Any:
    """A field in the spelling of JSON, or in that of the proto."""
    if name in plain:
        return plain[name]
    return plain.get(re.sub(r"[A-Z]", lambda each: f"_{each[0].lower()}", name), default)


def _text(plain: Mapping[str, Any], name: str) -> str:
    value = _field(plain, name, "")
    return value[:_MOST_TEXT] if isinstance(value, str) else ""


def _number(value: object, where: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 53:
        raise NotTfdsError(f"{where} should be a number, found `{safe(str(value), limit=60)}`")
    return value


def described_by(infos: Iterable[TfdsInfo]) -> Iterator[str]:
    """One line for each: what the folder is judged by."""
    for info in infos:
        counts = [split.records for split in info.splits]
        known = sum(each for each in counts if each is not None)
        records = f"{known:,} records" if None not in counts else "not all counts"
        version = f" {safe(info.version)}" if info.version else ""
        splits = "1 split" if len(info.splits) == 1 else f"{len(info.splits)} splits"
        yield (
            f"judged by the `{INFO_NAME}` beside the shards: `{safe(info.name)}`{version} of "
            f"TensorFlow Datasets, {splits}, {records}"
        )
