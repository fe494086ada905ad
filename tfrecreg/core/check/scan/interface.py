"""The base classes of validators, which share one pass over the bytes.

For each shard, in a worker process, the scanner reads the bytes once and passes the same batches
and faults to every validator's :class:`Visitor`. A visitor returns a small, picklable **part** for
its shard. In the parent, :meth:`Validator.finish` gets the parts in shard order and yields findings
and measures. Workers return only parts, so an engine can run shards anywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.registry.foreign.labels import LabelsBeside
from tfrecreg.core.registry.manifest import Manifest, RawTotals, ShardEntry
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.findings import Code, Finding, Location, Measure
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import ExtensionPoint
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

if TYPE_CHECKING:
    from tfrecreg.core.registry.side import Side

Part = Any
"""The result of a visitor: picklable, small, used only by its own validator."""


class Need(Flag):
    """The data that a validator needs from the scan besides records.

    Batches decode their records on request, so no validator needs to ask for decoded Examples.
    """

    DIGESTS = auto()
    """`StreamEnd` has the blake3 digests of the file and of the decompressed stream."""
    SHA256 = auto()
    """`StreamEnd` also has the SHA-256 of the file. Useful with :attr:`DIGESTS` only."""
    MEMBERS = auto()
    """`StreamEnd` has the beginnings of the gzip members."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard as a scan task sees it. Picklable."""

    split: str
    number: int
    """Position in its split, from 0."""
    name: str
    """The file name, as in locations. For bare files, it is the path as the user gave it. The name
    is escaped only when it is displayed.
    """
    storage: Readable
    path: str
    """Path in `storage`."""
    declared: Literal["none", "gzip"] | None = None
    """The compression declared in the manifest; None for bare files, which may have any
    compression.
    """
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
            batch: a batch of this shard.
            position: the record's position in the batch, from 0.
            feature: the feature that the finding is about.
            detail: what was expected and what was found; escaped.
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


@dataclass(frozen=True, slots=True)
class Baseline:
    """The dataset that a target is compared with, and the means to read it.

    A validator that needs more than the baseline's manifest reads the baseline in `begin`, before
    the target's records are read.
    """

    target: Target
    """Its shards, its manifest, its schema and its registry."""
    engine: Engine = field(default_factory=lambda: LocalEngine(1))
    """The engine that reads the baseline."""
    progress: Progress = SILENT
    """Shows progress while the baseline is read."""

    def __reduce__(self) -> tuple[object, ...]:
        return Baseline, (self.target,)  # a worker that gets a baseline reads with its own engine


class BaselineError(Exception):
    """A bundled validator cannot read the baseline, so the check ends."""

    def __init__(self, reason: TfrecregError) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Expected:
    """The records that the user expects in a target."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of records by split; other splits may have any number."""
    content: str | None = None
    """Hex content digest of all splits; None if any digest is accepted."""
    side: Side | None = None
    """The version with this content; None if only the digest is known."""


class RawItem(NamedTuple):
    """An item of raw data, and the record that its source makes from it."""

    split: str
    key: str
    payload: bytes | None
    """The record; None if the source skips the item."""
    code: str = ""
    """The code that says why the source skips the item."""


class RawItems(NamedTuple):
    """The items of raw data that the records of a target should hold."""

    source: str
    """Name of the source that lists them."""
    items: Callable[[], Iterator[RawItem]]
    """Lists the items, in the same order each time."""


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
    """Its root is the folder with the bytes of the build or release; None for bare files."""
    manifest: Manifest | None
    schema: str | None
    """Text of the schema to check against; None if there is no schema."""
    schema_path: str | None
    """Origin of that text, for messages."""
    raw: RawTotals | None
    """The size that inflation is relative to. It is measured now if the raw data are available,
    else it comes from the manifest.
    """
    raw_folder: str | None = None
    """The folder of the raw data; None unless the user names it."""
    home: Storage | None = None
    """The storage of its registry, rooted at the registry's root; None for bare files."""
    baseline: Baseline | None = None
    """The dataset to compare the target with; None unless the user names one."""
    expected: Expected | None = None
    """The records that the target should hold; None unless the user names them."""
    raw_items: RawItems | None = None
    """The items of raw data to look for in the records; None unless the user names a source."""
    partial: bool = False
    """Whether the user named only some shards of a build. `shards` has only these. Some of them may
    not be in the manifest.
    """
    notes: Sequence[str] = ()
    """Which files next to the shards the check uses, or why it does not use them, a line each."""

    beside: LabelsBeside = field(default_factory=LabelsBeside)
    """The label maps next to bare files."""

    @property
    def reference(self) -> str:
        """The reference of the build or release to which the shards belong."""
        release = self.manifest.release if self.manifest is not None else None
        return f"{self.dataset}@{release.version}" if release is not None else self.dataset

    @property
    def labels(self) -> Mapping[str, Sequence[str]]:
        """For each feature, the class names in order of their numbers. The names come from
        the manifest or, for bare files, from label maps next to the files.
        """
        return self.manifest.labels if self.manifest is not None else self.beside.found[0]


class Visitor(ExtensionPoint, ABC):
    """One validator's view of one shard, in a worker process."""

    def batch(self, batch: RecordBatch) -> None:
        """Process records whose checksums hold. The batch is invalid after this method returns.

        By default records are ignored.
        """

    def fault(self, fault: Fault) -> None:
        """Process damage. Called between batches, in stream order.

        By default damage is ignored: the validator `crc` reports it.
        """

    @abstractmethod
    def close(self, end: StreamEnd) -> Part:
        """Return the part. The shard has been read to its end."""


class PartCodec(Protocol):
    """Converts parts to bytes and back, without pickle because the bytes may come from anywhere."""

    def pack(self, part: Part) -> bytes | None:
        """A part as bytes. None if the part is too large for the cache; each check then reads the
        shard."""

    def unpack(self, data: bytes) -> Part:
        """The part. If this raises any exception, `data` is ignored and the shard is read."""


class Validator(ExtensionPoint, ABC):
    """A check. Each run creates one validator in the parent process, and the validator's visitors
    in the workers.

    A subclass defines `name`, `codes`, :meth:`begin` and :meth:`finish`. The rest is optional.
    """

    name: str
    """The name in its :class:`~tfrecreg.api.ValidatorRecord`."""
    codes: Sequence[Code]
    """The codes of its findings."""
    needs: Need = Need(0)
    """The data that the validator needs from the scan, in addition to the records."""
    part_codec: PartCodec | None = None
    """How `check --cached` stores its parts. Usually a
    :class:`tfrecreg.core.check.scan.tally.JsonCodec`.

    Without one, `check --cached` reads every shard. See :meth:`part_key`.
    """

    Options: ClassVar[type[Any] | None] = None
    """A frozen dataclass of its options, which ``tfrecreg plugins show`` lists."""
    feature_option: ClassVar[str | None] = None
    """The option that names the feature to check. A validator always runs on a build or release
    that has this feature, whatever :meth:`applies` returns.
    """

    def applies(self, target: Target) -> str | None:  # noqa: ARG002 - a default
        """Why this validator cannot check `target`, as a short phrase for the report; None if it
        can.

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
        """Findings and measures from all parts, in shard order."""

    def explains(self, own: Sequence[Finding], others: Sequence[Finding]) -> Iterable[Finding]:  # noqa: ARG002 - a default
        """The findings in `others` to drop from the report, because findings in `own` explain them
        better.

        Empty by default.

        Args:
            own: its own findings; not empty.
            others: the findings of other validators.
        """
        return ()

    def merge(self, part: Part, more: Part) -> Part:
        """Merge `more`, the part of a shard, into `part`, the merged part of the split's earlier
        shards.

        Define this method if keeping one part per shard takes too much memory. For each split,
        `finish` then gets one pair: the split's first shard and the merged part.
        """
        raise NotImplementedError  # the scan calls it only on validators that define it

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - a default
        """A text that covers everything on which the parts depend, except the shard: for example
        an option, a version, or the digest of a schema.

        A part is reused until this key, the shard's bytes or the :class:`Shard` changes. Return
        None (the default) if parts depend on other data, such as other files. Every shard is then
        read.
        """
        return None


class Running(NamedTuple):
    """A validator to run, and what its plugin announces."""

    validator: Validator
    plugin_id: PluginId
    codes: frozenset[str] | None
    """The codes that it may use; None for any code."""


@runtime_checkable
class Cacheable(Protocol):
    """A validator whose parts `check --cached` can reuse; see :class:`Validator`."""

    part_codec: PartCodec

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str | None:
        """A text that covers everything on which the parts depend, except the shard: for example
        an option, a version, or the digest of a schema.
        """
