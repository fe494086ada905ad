"""The base classes of validators: how one pass over the bytes feeds all of them.

For each shard, in a worker process, the scanner reads the bytes once and hands every validator's
:class:`Visitor` the same batches and faults. What a visitor found in its shard is its **part**:
small, picklable. In the parent :meth:`Validator.finish` gets the parts in shard order and yields
findings and measures. Nothing else crosses processes, so an engine is free to run shards where
it likes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from tfrecreg.findings import Code, Finding, Location, Measure
from tfrecreg.index import Index
from tfrecreg.manifest import Manifest, ShardEntry
from tfrecreg.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.storage import Storage
from tfrecreg.suggest import ExtensionPoint

Part = Any
"""What a visitor hands back: picklable, small, meaningful to its own validator only."""


class Need(Flag):
    """What a validator needs of the scan beyond its records.

    Only :attr:`DIGESTS` has an effect. Batches decode their records when a visitor asks for them,
    so a validator that looks at Examples needs to declare nothing.
    """

    FRAMES = auto()
    """No effect; kept for plugins that name it."""
    EXAMPLES = auto()
    """No effect; kept for plugins that name it."""
    COLUMNS = auto()
    """No effect; kept for plugins that name it."""
    DIGESTS = auto()
    """`StreamEnd` has the blake3 digests of the file and of the decompressed stream."""


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

    def locate(
        self,
        batch: RecordBatch,
        position: int,
        *,
        feature: str | None = None,
        detail: str | None = None,
    ) -> Location:
        """The location of a record, for a finding.

        Args:
            batch: of this shard.
            position: of the record in the batch, from 0.
            feature: the feature that the finding is about.
            detail: expected against found; escaped.
        """
        return Location(
            split=self.split or None,
            shard=self.name,
            record=batch.first + position,
            offset=batch.offsets[position],
            length=batch.lengths[position],
            feature=feature,
            detail=detail,
        )


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
class Expected:
    """What the user says that a target holds."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of records by split; splits that are not named may have any."""
    content: str | None = None
    """Hex content digest of all splits; None for any."""
    name: str = ""
    """Of the version that has this content, as the user would write it; empty where only the
    digest is known."""
    manifest: Manifest | None = None
    """Of that version."""
    index: Callable[[ShardEntry], Index | None] = lambda entry: None  # noqa: ARG005 - a default
    """The index of one of its shards, where it is on this machine."""


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
    expected: Expected | None = None
    """What it should hold, where the user says it."""


class Visitor(ExtensionPoint, ABC):
    """One validator's view of one shard, in a worker process."""

    def batch(self, batch: RecordBatch) -> None:
        """Look at records whose checksums hold. The batch is gone when this returns.

        By default records are ignored.
        """

    def fault(self, fault: Fault) -> None:
        """Take note of damage; called between batches, in stream order.

        By default damage is ignored: the validator `crc` reports it.
        """

    @abstractmethod
    def close(self, end: StreamEnd) -> Part:
        """Return what was found. The shard has been read to its end."""


class PartCodec(Protocol):
    """How parts become bytes and parts again, without pickle: the bytes may be anybody's."""

    def pack(self, part: Part) -> bytes | None:
        """A part as bytes; None if it is too large to be kept: its shard is read again."""

    def unpack(self, data: bytes) -> Part:
        """The part again. Any exception means that `data` are not a part: the shard is read."""


class Validator(ExtensionPoint, ABC):
    """A check. One object lives for one run in the parent; its visitors live in workers.

    A subclass defines `name`, `codes`, :meth:`begin` and :meth:`finish`. All else is optional.
    """

    name: str
    """The name that its :class:`ValidatorRecord` announces."""
    codes: Sequence[Code]
    """The codes of its findings."""
    needs: Need = Need(0)
    """What it needs of the scan beyond the records."""
    part_codec: PartCodec | None = None
    """How `check --cached` keeps its parts; mostly a :class:`tfrecreg.scan.tally.JsonCodec`.

    Without one, `check --cached` reads every shard. See :meth:`part_key`.
    """

    Options: ClassVar[type[Any] | None] = None
    """A frozen dataclass of its options, which ``tfrecreg plugins show`` lists."""

    def applies(self, target: Target) -> str | None:  # noqa: ARG002 - a default
        """None if it can look at `target`, else why not, as a short phrase for the report.

        By default it applies to every target.
        """
        return None

    @abstractmethod
    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        """A picklable function that makes the visitor of a shard.

        Args:
            target: what is checked.
            options: the table `limits.<name>` of the gate.
        """

    @abstractmethod
    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, Part]]
    ) -> Iterator[Finding | Measure]:
        """Findings and measures from all parts, which come in shard order."""

    def merge(self, part: Part, more: Part) -> Part:
        """The part of one or more shards and that of the next one of the same split, as one.

        For validators whose parts are too large to be kept for every shard: if a subclass defines
        it, `finish` gets one part for each split, with the first of its shards.
        """
        raise NotImplementedError  # the scan calls it on validators that define it, and on no other

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - a default
        """All that parts depend on besides the shard: a digest of a schema, an option, a version.

        A part is reused while this, the shard's bytes and the :class:`Shard` are the same. None
        (the default) if parts depend on something that no key covers, such as other files: then
        every shard is read.
        """
        return None


@runtime_checkable
class Cacheable(Protocol):
    """A validator whose parts `check --cached` can reuse; :class:`Validator` explains both."""

    part_codec: PartCodec

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str | None:
        """All that parts depend on besides the shard."""


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
