"""The base classes of validators, which share one pass over the bytes.

For each shard, in a worker process, the scanner reads the bytes once and passes the same batches
and faults to every validator's :class:`Visitor`. The result of a visitor for its shard is its
**part**: small, picklable. In the parent :meth:`Validator.finish` gets the parts in shard order and
yields findings and measures. Only parts cross processes, so an engine can run shards anywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.index import Index
from tfrecreg.core.registry.foreign.labels import LabelsBeside
from tfrecreg.core.registry.manifest import Manifest, ShardEntry
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.findings import Code, Finding, Location, Measure
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import ExtensionPoint
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

Part = Any
"""The result of a visitor: picklable, small, used only by its own validator."""


class Need(Flag):
    """The data that a validator needs from the scan besides records.

    Batches decode their records when a visitor asks for them, so a validator that looks at Examples
    needs to declare nothing.
    """

    DIGESTS = auto()
    """`StreamEnd` has the blake3 digests of the file and of the decompressed stream."""
    SHA256 = auto()
    """`StreamEnd` also has the SHA-256 of the file. Useful with :attr:`DIGESTS` only."""
    MEMBERS = auto()
    """`StreamEnd` has where the gzip members begin."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard as a scan task sees it. Picklable."""

    split: str
    number: int
    """Position in its split, from 0."""
    name: str
    """The file name, as in locations; for bare files the path as it was given. Not escaped: the
    code that shows it escapes it.
    """
    storage: Readable
    path: str
    """In `storage`."""
    declared: Literal["none", "gzip"] | None = None
    """The compression that the manifest declares; None for bare files, which may have any."""
    entry: ShardEntry | None = None
    """The manifest's entry; None for bare files."""
    index: str | None = None
    """Path of the index in `storage`; None without one."""

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
    """Size of the raw data in bytes, on both bases."""

    stored: int
    decoded: int


@dataclass(frozen=True, slots=True)
class Baseline:
    """The dataset that a target is compared with, and the means to read it.

    A validator that wants more of it than its manifest reads it in `begin`, before the records of
    the target are read.
    """

    target: Target
    """Its shards, manifest, schema and registry."""
    engine: Engine = field(default_factory=lambda: LocalEngine(1))
    """Storage to read from."""
    progress: Progress = SILENT
    """Updated while it is read."""

    def __reduce__(self) -> tuple[object, ...]:
        return Baseline, (self.target,)  # for a visitor that has it: workers read by themselves


class BaselineError(Exception):
    """The baseline cannot be read as a validator of ours needs it, which ends the check."""

    def __init__(self, reason: TfrecregError) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Expected:
    """The records that the user expects in a target."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of records by split; splits that are not named may have any."""
    content: str | None = None
    """Hex content digest of all splits; None for any."""
    name: str = ""
    """Name of the version with this content; empty if only the digest is known."""
    manifest: Manifest | None = None
    """Manifest of that version; None if only the digest is known."""
    index: Callable[[ShardEntry], Index | None] = lambda entry: None  # noqa: ARG005 - a default
    """Reads the index of one of its shards; None if it is not on this machine."""


class RawItem(NamedTuple):
    """An item of raw data, and the record that its source makes of it."""

    split: str
    key: str
    payload: bytes | None
    """None if the source makes none."""
    code: str = ""
    """Why it makes none."""


class RawItems(NamedTuple):
    """The items of raw data that the records of a target should hold."""

    source: str
    """Name of the source that lists them."""
    items: Callable[[], Iterator[RawItem]]
    """Lists them, in the same order each time."""


@dataclass(frozen=True, slots=True)
class Target:
    """The data to check: a build, a release, or bare files."""

    name: str
    """As the user would write it: ``mnist@1.0.0``, or the paths."""
    kind: Literal["build", "release", "files"]
    dataset: str
    """Empty for bare files."""
    shards: Sequence[Shard]
    """The existing shards, in order of split and number."""
    storage: Readable | None
    """Rooted at the folder of the build or of the release's bytes; None for bare files."""
    manifest: Manifest | None
    schema: str | None
    """Text of the schema to check against; None without one."""
    schema_path: str | None
    """Origin of that text, for messages."""
    raw: RawSize | None
    """The base of inflation: measured now if the raw data are available, else taken from the
    manifest.
    """
    raw_folder: str | None = None
    """The folder of the raw data; None unless the user names it."""
    home: Storage | None = None
    """The storage of its registry, rooted at the registry's root; None for bare files."""
    baseline: Baseline | None = None
    """The dataset to compare it with; None unless the user names it."""
    expected: Expected | None = None
    """The records that it should hold; None unless the user names them."""
    raw_items: RawItems | None = None
    """The items to look for in the records; None unless the user names their source."""
    partial: bool = False
    """Whether the user named some shards of a build: `shards` are these, and may contain shards
    that the manifest does not list."""
    notes: Sequence[str] = ()
    """Lines for the report: what it is judged by, or why not by the files beside the shards."""

    beside: LabelsBeside = field(default_factory=LabelsBeside)
    """The label maps beside bare files."""

    @property
    def reference(self) -> str:
        """The reference of the build or release that it is, or has shards of."""
        release = self.manifest.release if self.manifest is not None else None
        return f"{self.dataset}@{release.version}" if release is not None else self.dataset

    @property
    def labels(self) -> Mapping[str, Sequence[str]]:
        """Class names in order of their numbers, by feature: those of the manifest, or of the files
        beside bare files.
        """
        return self.manifest.labels if self.manifest is not None else self.beside.found[0]


class Visitor(ExtensionPoint, ABC):
    """One validator's view of one shard, in a worker process."""

    def batch(self, batch: RecordBatch) -> None:
        """Process records whose checksums hold. The batch is invalid after this returns.

        By default records are ignored.
        """

    def fault(self, fault: Fault) -> None:
        """Process damage; called between batches, in stream order.

        By default damage is ignored: the validator `crc` reports it.
        """

    @abstractmethod
    def close(self, end: StreamEnd) -> Part:
        """Return the part. The shard has been read to its end."""


class PartCodec(Protocol):
    """Converts parts to bytes and back, without pickle: the bytes may come from anywhere."""

    def pack(self, part: Part) -> bytes | None:
        """A part as bytes; None if it is too large for the cache: its shard is read again."""

    def unpack(self, data: bytes) -> Part:
        """The part again. Any exception means that `data` are not a part: then the shard is
        read.
        """


class Validator(ExtensionPoint, ABC):
    """A check. One object lives for one run in the parent; its visitors live in workers.

    A subclass defines `name`, `codes`, :meth:`begin` and :meth:`finish`. All else is optional.
    """

    name: str
    """The name that its :class:`~tfrecreg.api.ValidatorRecord` announces."""
    codes: Sequence[Code]
    """The codes of its findings."""
    needs: Need = Need(0)
    """The data that it needs from the scan besides records."""
    part_codec: PartCodec | None = None
    """How `check --cached` keeps its parts; mostly a
    :class:`tfrecreg.core.check.scan.tally.JsonCodec`.

    Without one, `check --cached` reads every shard. See :meth:`part_key`.
    """

    Options: ClassVar[type[Any] | None] = None
    """A frozen dataclass of its options, which ``tfrecreg plugins show`` lists."""

    def applies(self, target: Target) -> str | None:  # noqa: ARG002 - a default
        """None if it can check `target`, else the reason, as a short phrase for the report.

        By default it applies to every target.
        """
        return None

    @abstractmethod
    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        """A picklable function that makes the visitor of a shard.

        Args:
            target: the data to check.
            options: the table `limits.<name>` of the gate.
        """

    @abstractmethod
    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, Part]]
    ) -> Iterator[Finding | Measure]:
        """Findings and measures from all parts, which come in shard order."""

    def explains(self, own: Sequence[Finding], others: Sequence[Finding]) -> Iterable[Finding]:  # noqa: ARG002 - a default
        """Those of `others` that its own findings explain better, which the report leaves out.

        By default there are none.

        Args:
            own: its own findings; not empty.
            others: the findings of other validators.
        """
        return ()

    def merge(self, part: Part, more: Part) -> Part:
        """Merge the part of one or more shards with that of the next one of the same split.

        For validators whose parts are too large to keep one per shard: if a subclass defines it,
        `finish` gets one part for each split, with the first of its shards.
        """
        raise NotImplementedError  # the scan calls it only on validators that define it

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - a default
        """Everything that parts depend on besides the shard: a digest of a schema, an option, a
        version.

        A part is reused while this, the shard's bytes and the :class:`Shard` are the same. None
        (the default) if parts depend on data that a key cannot cover, such as other files: then
        every shard is read.
        """
        return None


@runtime_checkable
class Cacheable(Protocol):
    """A validator whose parts `check --cached` can reuse; :class:`Validator` explains both."""

    part_codec: PartCodec

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str | None:
        """Everything that parts depend on besides the shard."""
