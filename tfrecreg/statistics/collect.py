"""Statistics from a scan: one visitor for each shard, one part for each split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from typing import Any
from weakref import WeakValueDictionary

from tfrecreg.example.decode import decode
from tfrecreg.example.kinds import PayloadKind, payload_kind
from tfrecreg.example.model import Kind
from tfrecreg.findings import Code, Finding, Measure
from tfrecreg.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.statistics.columns import (
    Columns,
    Cutter,
    LayoutReader,
    Sizes,
    are_single_fields,
    has_empty_rows,
    merged,
    take_sizes,
)
from tfrecreg.statistics.numpy_visitor import NumpyVisitor
from tfrecreg.statistics.options import StatisticsOptions
from tfrecreg.statistics.part import Conflict, LeftOut, StatisticsPart
from tfrecreg.statistics.tfdv import load_tfdv, missing_tfdv
from tfrecreg.text import count

_CUT_FROM = 4096
"""Bytes of the mean record from which on cutting is quicker than decoding everything."""

_DECODED_AT_ONCE = 1 << 19
_DECODED_ROWS = 2_000
"""Bytes and records to decode at once: they fit the processor's cache."""

_ROWS = 10_000
_BYTES = 16 << 20
_IMAGE_BYTES = 64 << 20
"""Maximum bytes held before a batch goes to the generators, which cost per batch, not per row."""

_TYPES = {"large_binary": "bytes", "float": "float", "int64": "int64"}
"""Type names of `tf.train.Feature` by Arrow's names."""


class StatisticsVisitor(Visitor):
    """Makes the statistics of one shard by TFDV's generators.

    Raises:
        MissingExtraError: TFDV is not installed.
    """

    def __init__(self, options: StatisticsOptions) -> None:
        self._tfdv = load_tfdv()
        self._decode = self._tfdv.decoder().DecodeBatch
        self._images = options.images()
        self._cutter = Cutter(self._images)
        self._layouts = LayoutReader(self._tfdv, self._images)
        self._part = StatisticsPart(options)
        self.closed: StatisticsPart | None = None
        """The part, once there is one."""
        # Examples that wait to be decoded, and the sizes of the values cut out of each.
        self._payloads: list[bytes] = []
        self._cut: list[Sizes | None] = []
        self._payload_bytes = 0
        # What was decoded and waits for the generators.
        self._columns: list[Columns] = []
        self._rows = self._bytes = self._image_bytes = 0

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            self._part.left_out.large += len(batch)
            return
        if self._images and sum(batch.lengths) >= _CUT_FROM * len(batch):
            self._take_cut(batch)
        else:
            self._take_whole(batch)
        if self._payload_bytes >= _DECODED_AT_ONCE or len(self._payloads) >= _DECODED_ROWS:
            self._decode_all()

    def fault(self, fault: Fault) -> None:
        del fault  # `check` names it
        self._part.left_out.damaged += 1

    def close(self, end: StreamEnd) -> StatisticsPart:
        del end
        self._decode_all()
        self._flush()
        self.closed = self._part
        return self._part

    def _take_cut(self, batch: RecordBatch) -> None:
        """Take the Examples of a batch, without their images."""
        memory = batch.memory
        for position, (start, length) in enumerate(zip(batch.starts, batch.lengths, strict=True)):
            found = self._cutter.cut(memory, start, length)
            if found is None:
                example = batch.examples[position]
                if not self._is_example(batch.kinds[position]) or example is None:
                    continue
                found = self._cutter.cut_decoded(example)
            payload, cut = found
            self._payloads.append(payload)
            self._cut.append(cut)
            self._payload_bytes += len(payload)

    def _take_whole(self, batch: RecordBatch) -> None:
        """Take the Examples of a batch as they are."""
        columns = self._layouts.read(batch)
        if columns is not None:
            self._keep(columns)
            return
        payloads = list(batch.payloads())
        if not are_single_fields(batch):
            sure = [self._is_example(kind) for kind in batch.kinds]
            payloads = list(compress(payloads, sure))
        self._payloads += payloads
        self._cut += [None] * len(payloads)
        self._payload_bytes += sum(map(len, payloads))

    def _is_example(self, kind: PayloadKind | None) -> bool:
        """Whether it is; if not, it is counted."""
        if kind is PayloadKind.EXAMPLE:
            return True
        if kind is not None:
            self._part.left_out.count(kind)
        return False

    def _decode_all(self) -> None:
        payloads, self._payloads = self._payloads, []
        cut, self._cut = self._cut, []
        self._payload_bytes = 0
        if not payloads:
            return
        try:
            batch = self._decode(payloads)
        except RuntimeError:
            batch = None
        if batch is None or has_empty_rows(batch):
            # Some payload is not an Example, or a feature has values of different types.
            sure = [self._is_example(payload_kind(payload)) for payload in payloads]
            payloads = list(compress(payloads, sure))
            cut = list(compress(cut, sure))
            conflict = _conflict(payloads)
            if conflict is not None:
                self._part.examples += len(payloads)
                self._part.clash(conflict)
            if conflict is not None or not payloads:
                return
            batch = self._decode(payloads)
        self._keep(take_sizes(self._tfdv, batch, cut, self._images))

    def _keep(self, columns: Columns) -> None:
        """Buffer columns and flush the buffer when it is large."""
        self._columns.append(columns)
        self._rows += columns.batch.num_rows
        self._bytes += columns.batch.nbytes
        self._image_bytes += sum(int(sizes.sum()) for sizes in columns.sizes.values())
        full = self._rows >= _ROWS or self._bytes >= _BYTES
        if full or self._image_bytes >= _IMAGE_BYTES:
            self._flush()

    def _flush(self) -> None:
        pieces, self._columns = self._columns, []
        self._rows = self._bytes = self._image_bytes = 0
        types: dict[str, str] = {}
        for columns in pieces:
            for name, kind in _types(columns.batch).items():
                known = types.setdefault(name, kind)
                if known != kind:
                    self._part.clash(Conflict.of(name, known, kind))
        self._part.note_types(types)
        if self._part.conflict is not None:
            self._part.examples += sum(columns.batch.num_rows for columns in pieces)
        elif pieces:
            self._part.add(merged(self._tfdv, pieces))


_open: WeakValueDictionary[tuple[str, str, StatisticsOptions], StatisticsVisitor | NumpyVisitor] = (
    WeakValueDictionary()
)
"""Visitors whose shard is being scanned by this process."""


def make_visitor(options: StatisticsOptions, shard: Shard) -> Visitor:
    """A visitor for a shard. If two validators of a scan need the same, one does the work."""
    key = (shard.storage.root, shard.path, options)
    leader = _open.get(key)
    if leader is not None:
        return _Follower(leader)
    made = StatisticsVisitor(options) if options.tfdv else NumpyVisitor(options)
    visitor = _open[key] = made
    return visitor


class _Follower(Visitor):
    """Hands back the part of another visitor of the same scan, which comes before it."""

    def __init__(self, leader: StatisticsVisitor | NumpyVisitor) -> None:
        self._leader = leader

    def batch(self, batch: RecordBatch) -> None:
        """The other one processes it."""

    def fault(self, fault: Fault) -> None:
        """The other one hears of it."""

    def close(self, end: StreamEnd) -> StatisticsPart:
        del end
        if self._leader.closed is None:
            raise RuntimeError("the statistics that another validator makes were not finished")
        return self._leader.closed


def _types(batch: Any) -> dict[str, str]:
    """The type of each feature of a `RecordBatch` that has any values."""
    found = {}
    for column in batch.schema:
        name = str(getattr(column.type, "value_type", ""))
        if name:
            found[column.name] = _TYPES[name]
    return found


def _conflict(payloads: Sequence[bytes]) -> Conflict | None:
    """The first feature that has values of two types in these Examples."""
    kinds: dict[str, Kind] = {}
    for payload in payloads:
        for name, feature in decode(payload).items():
            if feature.kind is Kind.UNSET:
                continue
            known = kinds.setdefault(name, feature.kind)
            if known is not feature.kind:
                return Conflict.of(name, known.name.lower(), feature.kind.name.lower())
    return None


@dataclass(frozen=True, slots=True)
class SplitStatistics:
    """The statistics of one split."""

    split: str
    """Empty for files without a split in their names."""
    examples: int
    """Number of examples."""
    left_out: LeftOut
    """Records of the split that they are not of."""
    sketched: tuple[str, ...]
    """Features with more different values than fit in memory: what is frequent, and how many
    different values there are, is an estimate."""
    proto: Any = field(repr=False)
    """TensorFlow Metadata's `DatasetFeatureStatisticsList`, with one dataset, which has no name."""


class StatisticsCollector(Validator):
    """Looks at every record the way validators do, and sums up instead of judging.

    Hand it to :func:`tfrecreg.scan.run.run_scan`, then ask for :meth:`statistics`.

    Args:
        options: which statistics. Their schema is used, not the target's.
    """

    name = "statistics"
    codes: Sequence[Code] = ()

    def __init__(self, options: StatisticsOptions) -> None:
        self.options = options
        self.parts: dict[str, StatisticsPart] = {}
        """Parts by split, once the scan is over."""

    def applies(self, target: Target) -> str | None:
        del target
        missing = missing_tfdv() if self.options.tfdv else None
        return missing.message if missing is not None else None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        """A maker of visitors.

        Raises:
            SchemaError: the schema does not parse, or contradicts itself.
        """
        del target, options
        self.options.schema_proto()  # report errors here once, and not for every shard
        return partial(make_visitor, self.options)

    def merge(self, part: StatisticsPart, more: StatisticsPart) -> StatisticsPart:
        """Merge the parts of two adjacent shards: see :meth:`tfrecreg.scan.Validator.merge`."""
        part.merge(more)
        return part

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, StatisticsPart]]
    ) -> Iterator[Finding | Measure]:
        del target
        for shard, part in parts:
            if shard.split in self.parts:
                self.parts[shard.split].merge(part)
            else:
                self.parts[shard.split] = part
        examples = sum(part.examples for part in self.parts.values())
        yield Measure("statistics.examples", examples, count(examples, "example"))

    def statistics(self) -> list[SplitStatistics]:
        """The statistics of every split that was scanned, in order of their names.

        Raises:
            RefusedError: a feature has values of two types.
            MissingExtraError: TFDV is not installed.
        """
        return [
            SplitStatistics(split, part.examples, part.left_out, part.sketched, part.proto())
            for split, part in sorted(self.parts.items())
        ]
