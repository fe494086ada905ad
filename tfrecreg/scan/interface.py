"""The interface of a validator: how one pass over the bytes feeds all of them.

For each shard, in a worker process, the scanner reads the bytes once and hands every validator's
:class:`Visitor` the same batches and faults. What a visitor found in its shard is its **part**:
small, picklable. In the parent :meth:`Validator.finish` gets the parts in shard order and yields
findings and measures. Nothing else crosses processes, so an engine is free to run shards where
it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from tfrecreg.findings import Code, Finding, Measure
from tfrecreg.manifest import Manifest, ShardEntry
from tfrecreg.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.storage import Storage

__all__ = [
    "Baseline",
    "Cacheable",
    "Merging",
    "Need",
    "Part",
    "PartCodec",
    "RawSize",
    "Shard",
    "Target",
    "Validator",
    "ValidatorRecord",
    "Visitor",
]

Part = Any
"""What a visitor hands back: picklable, small, meaningful to its own validator only."""


class Need(Flag):
    """What a validator wants of the scan. The scanner does only what somebody needs."""

    FRAMES = auto()
    """Offsets, lengths and faults."""
    EXAMPLES = auto()
    """Payloads decoded as Examples."""
    COLUMNS = auto()
    """Arrow columns."""
    DIGESTS = auto()
    """blake3 of the file and of the decompressed stream."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard as a scan task sees it. Picklable."""

    split: str
    number: int
    """Position in its split, from 0."""
    name: str
    """The file name, as locations have it; of bare files the path as it was given. Not escaped:
    that is for whoever shows it."""
    storage: Storage
    path: str
    """In `storage`."""
    declared: Literal["none", "gzip"] | None
    """The compression that the manifest declares; None for bare files, where any will do."""
    entry: ShardEntry | None
    """The manifest's entry; None for bare files."""
    index: str | None
    """Path of the index in `storage`, where there is one."""


class RawSize(NamedTuple):
    """The raw data's size, on both bases."""

    stored: int
    decoded: int


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a target is compared with."""

    name: str
    """As the user would write it: ``mnist@1.0.0``."""
    statistics: Mapping[str, bytes]
    """By split: TFDV's `DatasetFeatureStatisticsList`, serialized. Empty where none of the
    validators that were chosen asks for it."""
    shards: Sequence[Shard] = ()
    """Its shards, as those of a target."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is checked: a build, a release, or bare files."""

    name: str
    """As the user would write it: ``mnist@1.0.0``, or the paths."""
    kind: Literal["build", "release", "files"]
    dataset: str
    """Empty for bare files."""
    shards: Sequence[Shard]
    """Those that exist, in order of split and number."""
    storage: Storage | None
    """Rooted at the folder of the build or of the release's bytes; None for bare files."""
    manifest: Manifest | None
    schema: str | None
    """Text of the schema to check against."""
    schema_path: str | None
    """Where that text came from, for messages."""
    raw: RawSize | None
    """The base of inflation: measured now where the raw data are at hand, else the manifest's."""
    raw_folder: str | None = None
    """The folder of the raw data, where the user names it."""
    home: Storage | None = None
    """The registry that it is a build or release of, rooted at its root; None for bare files."""
    baseline: Baseline | None = None
    """What to compare it with, where the user names it."""


class Visitor(Protocol):
    """One validator's eyes on one shard, in a worker."""

    def batch(self, batch: RecordBatch) -> None:
        """Look at records whose checksums hold. The batch is gone when this returns."""

    def fault(self, fault: Fault) -> None:
        """Hear of damage, between batches, in stream order."""

    def close(self, end: StreamEnd) -> Part:
        """The shard is read to its end: hand back what was found."""


class Validator(Protocol):
    """A check. One object lives for one run in the parent; its visitors live in workers."""

    name: str
    codes: Sequence[Code]
    needs: Need

    def applies(self, target: Target) -> str | None:
        """None if it can look at `target`, else why not, as a short phrase for the report."""

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        """A picklable function that makes a visitor for a shard."""

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, Part]]
    ) -> Iterator[Finding | Measure]:
        """Findings and measures from all parts, which come in shard order."""


@runtime_checkable
class Merging(Protocol):
    """What a validator offers on top whose parts are too large to be kept for every shard.

    `finish` then gets one part for each split, with the first of its shards.
    """

    def merge(self, part: Part, more: Part) -> Part:
        """The part of one or more shards and that of the next one of the same split, as one."""


class PartCodec(Protocol):
    """How parts become bytes and parts again, without pickle: the bytes may be anybody's."""

    def pack(self, part: Part) -> bytes | None:
        """A part as bytes; None for one that is too large to be kept: its shard is read again."""

    def unpack(self, data: bytes) -> Part:
        """The part again. Whatever it raises means that `data` are none: the shard is read."""


@runtime_checkable
class Cacheable(Protocol):
    """What a validator may offer on top, so that `check --cached` can reuse its parts.

    A part may be reused while the shard's bytes, the :class:`Shard` and `part_key` are the same.
    """

    part_codec: PartCodec
    """Mostly a :class:`tfrecreg.scan.tally.JsonCodec`."""

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str | None:
        """All else that the visitors' parts depend on: a digest of a schema, an option, a version.

        None where they depend on what no key tells, such as other files.
        """


@dataclass(frozen=True, slots=True)
class ValidatorRecord:
    """How a plugin announces a validator."""

    name: str
    """What ``--only`` and ``--skip`` take."""
    summary: str
    codes: Sequence[Code]
    load: Callable[[], type[Validator]]
    """Imports and returns the class. Called when a check uses it."""
    on_request: bool = False
    """It runs where the user or the gate names it, and not by default: its imports take seconds."""
