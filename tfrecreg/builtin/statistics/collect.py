"""Statistics from a scan: one visitor for each shard, one part for each split.

A file is a line of JSON and the serialized proto. What does not hold is made again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from blake3 import blake3

from tfrecreg.builtin.statistics.accumulate import Accumulator, ExampleColumns, Values
from tfrecreg.builtin.statistics.options import StatisticsOptions
from tfrecreg.builtin.statistics.sketches import MAX_BYTES, value_key
from tfrecreg.builtin.statistics.summary import parse_proto
from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.example.columns import Column, Slot
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.batch_columns import divide_batch
from tfrecreg.core.registry import layout
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.documents import strict_json
from tfrecreg.core.values.errors import RefusedError, StorageError
from tfrecreg.core.values.findings import Code, Finding, Measure
from tfrecreg.core.values.text import count, safe

_WAITING_BYTES = 64 << 20
"""Bytes from other processes that may wait to be merged."""


MAX_FEATURES = 10_000
"""Features of a split. TFDV takes 3 to 4 ms and 25 kB for each: 40 s and 350 MB for so many."""


@dataclass(slots=True)
class LeftOut:
    """Records that the statistics exclude."""

    damaged: int = 0
    """Places where the scanner found damage; some are more than one record."""
    large: int = 0
    """Records that are too large to be held in memory."""
    kinds: dict[PayloadKind, int] = field(default_factory=dict)
    """Numbers of records that are not Examples, by kind."""

    def __bool__(self) -> bool:
        return bool(self.damaged or self.large or self.kinds)

    def count(self, kind: PayloadKind, number: int = 1) -> None:
        """Count records that are not Examples."""
        self.kinds[kind] = self.kinds.get(kind, 0) + number

    def merge(self, other: LeftOut) -> None:
        """Add the omissions of another part."""
        self.damaged += other.damaged
        self.large += other.large
        for kind, number in other.kinds.items():
            self.count(kind, number)

    def __str__(self) -> str:
        """For people: ``2 damaged, 1 too large to be held, 3 events``; empty for nothing."""
        told = [f"{self.damaged:,} damaged"] if self.damaged else []
        told += [f"{self.large:,} too large to be held"] if self.large else []
        told += [kind.counted(number) for kind, number in sorted(self.kinds.items())]
        return ", ".join(told)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A feature with values of two types, for which TFDV fails."""

    feature: str
    types: tuple[str, str]
    """``bytes``, ``float`` or ``int64``, in alphabetical order."""

    @classmethod
    def of(cls, feature: str, one: str, other: str) -> Conflict:
        """A conflict of two types, in any order."""
        return cls(feature, (min(one, other), max(one, other)))

    def error(self) -> RefusedError:
        """The error of whoever asks for statistics."""
        one, other = self.types
        return RefusedError(
            f"`{safe(self.feature)}` has {one} values in some records and {other} values in "
            "others, which statistics do not support",
            hint="`tfrecreg check` with a schema names the records (SCH003)",
        )


@dataclass(frozen=True, slots=True)
class TooManyFeatures:
    """More features than :data:`MAX_FEATURES`."""

    count: int
    """Those that were met before the statistics were given up."""

    def __str__(self) -> str:
        return (
            f"{self.count:,} features or more: statistics are made of {MAX_FEATURES:,} features "
            "at most"
        )

    def error(self) -> RefusedError:
        """The error of whoever asks for statistics."""
        return RefusedError(
            f"the records have {self}",
            hint="`tfrecreg schema infer` lists the features; values that belong together fit "
            "into one feature, as a list",
        )


class StatisticsPart:
    """Statistics of some records, to be merged with others of the same split. Picklable."""

    def __init__(self, options: StatisticsOptions, max_value_bytes: int = MAX_BYTES) -> None:
        self.options = options
        self.examples = 0
        """Number of Examples read."""
        self.left_out = LeftOut()
        self.conflict: Conflict | TooManyFeatures | None = None
        """Why there are no statistics."""
        self.types: dict[str, str] = {}
        """Type of the values, by feature."""
        self._max_value_bytes = max_value_bytes
        self._accumulator: Accumulator | None = None
        self._waiting: list[bytes] = []
        """Dumps of other accumulators, in order, after this one's own values."""

    def add(self, batch: ExampleColumns) -> None:
        """Pass examples to the accumulator, after their features were noted.

        After a conflict nothing is taken in but the number of examples.
        """
        self.examples += batch.num_rows
        if self.conflict is None:
            self._own().add(batch)

    def clash(self, conflict: Conflict | TooManyFeatures) -> None:
        """Note a conflict that was found outside: statistics are off."""
        self.conflict = self.conflict or conflict
        self._accumulator = None
        self._waiting.clear()

    def merge(self, other: StatisticsPart) -> None:
        """Take in the part of the next shard. The result depends on the order, as sketches do."""
        self.examples += other.examples
        self.left_out.merge(other.left_out)
        if other.conflict is not None:
            self.clash(other.conflict)
        self.note_types(other.types)
        if self.conflict is None:
            self._waiting += other._dumped()
            if sum(map(len, self._waiting)) > _WAITING_BYTES:
                self._own()

    def proto(self) -> Any:
        """The `DatasetFeatureStatisticsList` of TFDV, with one dataset."""
        if self.conflict is not None:
            raise self.conflict.error()
        return self._own().extract()

    @property
    def sketched(self) -> tuple[str, ...]:
        """Features with too many different values for their number to be exact."""
        return self._own().sketched if self.conflict is None else ()

    def note_types(self, types: dict[str, str]) -> None:
        """Note the types of features of further examples, and reasons against statistics."""
        count = len(self.types.keys() | types.keys())
        if count > MAX_FEATURES:
            self.clash(TooManyFeatures(count))
            return
        for name, kind in types.items():
            known = self.types.setdefault(name, kind)
            if known != kind:
                self.clash(Conflict.of(name, known, kind))

    def _own(self) -> Accumulator:
        """The accumulator, with everything that waited in it."""
        if self._accumulator is None:
            self._accumulator = Accumulator(self.options, self._max_value_bytes)
        waiting, self._waiting = self._waiting, []
        for dumped in waiting:
            self._accumulator.merge(dumped)
        return self._accumulator

    def _dumped(self) -> list[bytes]:
        return ([self._accumulator.dump()] if self._accumulator else []) + self._waiting

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_waiting"] = self._dumped()
        # It is made again where the part arrives, and only if it is needed there.
        state["_accumulator"] = None
        return state


_ROWS = 2_000
_BYTES = 8 << 20
"""Decoded examples, and bytes of their payloads, that become columns together."""


class StatisticsVisitor(Visitor):
    """Makes the statistics of one shard. A :class:`tfrecreg.core.check.scan.interface.Visitor`."""

    def __init__(self, options: StatisticsOptions) -> None:
        self._images = frozenset(options.images())
        self._derives = bool(options.derived())
        self._part = StatisticsPart(options)
        self._decoded: list[Example] = []
        self._held = 0
        """Bytes of the payloads that decoded examples reference."""
        self.closed: StatisticsPart | None = None
        """The part, once there is one."""

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            self._part.left_out.large += len(batch)
            return
        groups, rest = divide_batch(batch)
        for positions, _, columns in groups:
            found = {
                name: self._values(slot, column, batch.memory)
                for name, (slot, column) in columns.items()
            }
            lengths = {name: slot.values for name, (slot, _) in columns.items()}
            shared = [(lengths, len(positions))] if self._derives else []
            self._add(ExampleColumns(len(positions), found, shared))
        for position in rest:
            example = batch.example(position)
            kind = kind_of(batch.memory, batch.starts[position], batch.lengths[position], example)
            if kind is not PayloadKind.EXAMPLE or example is None:
                self._part.left_out.count(kind)
                continue
            self._decoded.append(example)
            self._held += batch.lengths[position]
            if len(self._decoded) >= _ROWS or self._held >= _BYTES:
                self._flush()

    def fault(self, fault: Fault) -> None:
        del fault  # `check` names it
        self._part.left_out.damaged += 1

    def close(self, end: StreamEnd) -> StatisticsPart:
        del end
        self._flush()
        self.closed = self._part
        return self._part

    def _flush(self) -> None:
        examples, self._decoded, self._held = self._decoded, [], 0
        found = _columns(examples, self._images)
        if isinstance(found, Conflict):
            self._part.clash(found)
            found = ExampleColumns(len(examples), {})
        elif self._derives:
            found = found._replace(lengths=[(_lengths(each), 1) for each in examples])
        self._add(found)

    def _add(self, rows: ExampleColumns) -> None:
        kinds = {name: values.kind for name, values in rows.columns.items()}
        self._part.note_types({name: kind.name.lower() for name, kind in kinds.items() if kind})
        self._part.add(rows)

    def _values(self, slot: Slot, column: Column, memory: bytes) -> Values:
        counts = np.full(len(column.start), slot.values, np.int64)
        if slot.kind is Kind.INT64:
            return Values(slot.kind, counts, column.integers)
        if slot.kind is Kind.FLOAT:
            places = column.start[:, None] + np.arange(4 * slot.values)
            floats = np.frombuffer(memory, np.uint8)[places].view("<f4").reshape(-1)
            return Values(slot.kind, counts, floats)
        sizes = column.stop - column.start
        if slot.name in self._images:
            return Values(slot.kind, counts, sizes)
        spans = zip(column.start.tolist(), column.stop.tolist(), strict=True)
        keys = [value_key(memory[start:stop]) for start, stop in spans]
        return Values(slot.kind, counts, sizes, keys)


def _lengths(example: Example) -> dict[str, int]:
    """The number of values of each feature with a kind."""
    return {name: feature.count for name, feature in example.items() if feature.kind}


def _columns(examples: Sequence[Example], images: frozenset[str]) -> ExampleColumns | Conflict:
    """Decoded examples as columns, or the first feature that has values of two types."""
    features: defaultdict[str, list[Feature]] = defaultdict(list)
    for example in examples:
        for name, feature in example.items():
            features[name].append(feature)
    columns = {}
    for name, found in features.items():
        kinds = {feature.kind for feature in found}
        if Kind.UNSET in kinds:
            found = [feature for feature in found if feature.kind]
            kinds.discard(Kind.UNSET)
        if len(kinds) > 1:
            one, other = sorted(kinds)[:2]
            return Conflict.of(name, one.name.lower(), other.name.lower())
        columns[name] = _column(max(kinds, default=Kind.UNSET), found, name in images)
    return ExampleColumns(len(examples), columns)


def _column(kind: Kind, features: Sequence[Feature], is_image: bool) -> Values:
    """The values of features of one kind."""
    counts = np.fromiter((feature.count for feature in features), np.int64, len(features))
    total = int(counts.sum())
    if kind is Kind.FLOAT:
        packed = b"".join([feature.packed_floats for feature in features])
        return Values(kind, counts, np.frombuffer(packed, "<f4"))
    if kind is Kind.BYTES and not is_image:
        values = [value for feature in features for value in feature.values]
        sizes = np.fromiter(map(len, values), np.int64, total)
        return Values(kind, counts, sizes, [value_key(value) for value in values])
    lists = (feature.sizes if is_image else feature.values for feature in features)
    return Values(kind, counts, np.fromiter(chain.from_iterable(lists), np.int64, total))


_open: WeakValueDictionary[tuple[str, str, StatisticsOptions], StatisticsVisitor] = (
    WeakValueDictionary()
)
"""Visitors whose shard is being scanned by this process."""


def make_visitor(options: StatisticsOptions, shard: Shard) -> Visitor:
    """A visitor for a shard. If two validators of a scan need the same, one does the work."""
    key = (shard.storage.root, shard.path, options)
    leader = _open.get(key)
    if leader is not None:
        return _Follower(leader)
    visitor = _open[key] = StatisticsVisitor(options)
    return visitor


class _Follower(Visitor):
    """Hands back the part of another visitor of the same scan, which comes before it."""

    def __init__(self, leader: StatisticsVisitor) -> None:
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

    Hand it to :func:`tfrecreg.core.check.scan.run.run_scan`, then ask for :meth:`statistics`.
    """

    name = "statistics"
    codes: Sequence[Code] = ()

    def __init__(self, options: StatisticsOptions) -> None:
        self.options = options
        self.parts: dict[str, StatisticsPart] = {}
        """Parts by split, once the scan is over."""

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        """A maker of visitors."""
        del target, options
        self.options.schema_proto()  # report errors here once, and not for every shard
        return partial(make_visitor, self.options)

    def merge(self, part: StatisticsPart, more: StatisticsPart) -> StatisticsPart:
        """Merge the parts of two adjacent shards: see
        :meth:`tfrecreg.core.check.scan.Validator.merge`."""
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
        """The statistics of every split that was scanned, in order of their names."""
        return [
            SplitStatistics(split, part.examples, part.left_out, part.sketched, part.proto())
            for split, part in sorted(self.parts.items())
        ]


_FORMAT = 4
"""Version of the file format and of the computation: a new number discards old files."""


class StatisticsCache:
    """The cache of a registry."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def recall(
        self, split: str, content: str, options: StatisticsOptions
    ) -> SplitStatistics | None:
        """The statistics of a split; None where they are not known."""
        path = _path(content, options)
        if self._storage.stat(path) is None:
            return None
        try:
            data = self._storage.read(path)
        except StorageError:
            return None
        head, _, body = data.partition(b"\n")
        try:
            told = strict_json(head)
            if told["blake3"] != blake3(body).hexdigest():
                return None
            kinds = {PayloadKind(kind): int(count) for kind, count in told["kinds"].items()}
            return SplitStatistics(
                split=split,
                examples=int(told["examples"]),
                left_out=LeftOut(large=int(told["large"]), kinds=kinds),
                sketched=tuple(map(str, told["sketched"])),
                proto=parse_proto(body),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None  # an incomplete or foreign file

    def remember(
        self, statistics: SplitStatistics, content: str, options: StatisticsOptions
    ) -> None:
        """Keep the statistics of a split, unless damage left some of it out."""
        left_out = statistics.left_out
        if left_out.damaged:
            return
        body = statistics.proto.SerializeToString(deterministic=True)
        head = {
            "blake3": blake3(body).hexdigest(),
            "examples": statistics.examples,
            "kinds": {kind.value: count for kind, count in left_out.kinds.items()},
            "large": left_out.large,
            "sketched": list(statistics.sketched),
        }
        # They are made again where a registry cannot be written.
        with (
            suppress(StorageError),
            self._storage.create(_path(content, options), durable=False) as writer,
        ):
            writer.write(json.dumps(head).encode() + b"\n" + body)


def _path(content: str, options: StatisticsOptions) -> str:
    made_by = f"{_FORMAT} {options.digest}"
    return layout.cached_statistics(content, blake3(made_by.encode()).hexdigest()[:16])
