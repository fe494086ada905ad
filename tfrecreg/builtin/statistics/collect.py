"""Collects statistics in a scan, with a visitor per shard and a part per split.

A cache file consists of a line of JSON and the serialized proto. Invalid files are replaced.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
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
from tfrecreg.builtin.statistics.sketches import MAX_BYTES, value_key
from tfrecreg.builtin.statistics.summary import parse_proto
from tfrecreg.core.check.scan.interface import Need, Shard, Target, Validator, Visitor
from tfrecreg.core.example.columns import Column, Slot
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.batch_columns import divide_batch
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import ShardEntry
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.schema.payload_kinds import target_schema
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.documents import strict_json
from tfrecreg.core.values.errors import RefusedError, StorageError
from tfrecreg.core.values.findings import Code, Finding, Measure
from tfrecreg.core.values.text import count

MAX_FEATURES = 10_000
"""Maximum number of features per split. TFDV needs 3 to 4 ms and 25 kB for each."""


@dataclass(slots=True)
class LeftOut:
    """Records that the statistics exclude."""

    damaged: int = 0
    """Number of damaged places. A place may contain more than one record."""
    large: int = 0
    """Number of records that are too large for memory."""
    kinds: Counter[PayloadKind] = field(default_factory=Counter)
    """Number of records that are not Examples, by kind."""

    def __bool__(self) -> bool:
        return bool(self.damaged or self.large or self.kinds)

    def merge(self, other: LeftOut) -> None:
        self.damaged += other.damaged
        self.large += other.large
        self.kinds.update(other.kinds)

    def __str__(self) -> str:
        """A text such as ``2 damaged, 1 too large for memory, 3 events``; may be empty."""
        told = [f"{self.damaged:,} damaged"] if self.damaged else []
        told += [f"{self.large:,} too large for memory"] if self.large else []
        told += [kind.counted(number) for kind, number in sorted(self.kinds.items())]
        return ", ".join(told)


@dataclass(frozen=True, slots=True)
class Conflict:
    """The reason for missing statistics. Either one feature has values of two types, which makes
    TFDV fail, or the records have more than :data:`MAX_FEATURES` features.
    """

    feature: str = ""
    """The feature with two types; empty if there are too many features."""
    types: tuple[str, ...] = ()
    """Two of ``bytes``, ``float`` and ``int64``, in alphabetical order."""

    def __str__(self) -> str:
        if self.types:
            one, other = self.types
            return f"{one} values in some examples and {other} values in others"
        return f"more than {MAX_FEATURES:,} features, which statistics do not support"

    def error(self) -> RefusedError:
        """The error for a caller that needs statistics."""
        if not self.types:
            return RefusedError(f"the records have {self}")
        return RefusedError(
            f"`{self.feature}` has {self}, which statistics do not support: "
            "`tfrecreg check` names the records (SCH003)"
        )


class StatisticsPart:
    """Statistics of some records of a split, to merge with other parts. Picklable."""

    def __init__(self, schema: Schema, max_value_bytes: int = MAX_BYTES) -> None:
        self.examples = 0
        self.left_out = LeftOut()
        self.conflict: Conflict | None = None
        """Why there are no statistics; None if there are some."""
        self.is_sound = True
        """Whether the bytes of all shards match the manifest. Known only if digests are computed.
        """
        self._accumulator: Accumulator | None = Accumulator(schema, max_value_bytes)
        """Accumulates the statistics. None after a conflict: then only examples are counted."""

    def add(self, rows: ExampleColumns) -> None:
        self.examples += rows.num_rows
        self._expect({name: values.kind for name, values in rows.columns.items()})
        if self._accumulator is not None:
            self._accumulator.add(rows)

    def clash(self, conflict: Conflict) -> None:
        """Record a conflict, and stop the statistics."""
        self.conflict = self.conflict or conflict
        self._accumulator = None

    def merge(self, other: StatisticsPart) -> None:
        """Add the part of the next shard. Sketches depend on the order, and so does the result."""
        self.examples += other.examples
        self.left_out.merge(other.left_out)
        self.is_sound &= other.is_sound
        if other.conflict is not None:
            self.clash(other.conflict)
        if other._accumulator is not None:
            self._expect(other._accumulator.kinds())
            if self._accumulator is not None:
                self._accumulator.merge(other._accumulator)

    def proto(self) -> Any:
        """TFDV's `DatasetFeatureStatisticsList`, with one dataset."""
        if self.conflict is not None:
            raise self.conflict.error()
        assert self._accumulator is not None
        return self._accumulator.extract()

    @property
    def sketched(self) -> tuple[str, ...]:
        """Features with too many distinct values to count exactly."""
        return self._accumulator.sketched if self._accumulator is not None else ()

    def _expect(self, more: Mapping[str, Kind]) -> None:
        """Record a conflict if a feature of further examples has another kind than before."""
        known = self._accumulator.kinds() if self._accumulator is not None else {}
        if len(known.keys() | more.keys()) > MAX_FEATURES:
            self.clash(Conflict())
        for name, kind in more.items():
            kinds = {kind, known.get(name, kind)} - {Kind.UNSET}
            if len(kinds) > 1:
                self.clash(Conflict(name, tuple(sorted(kind.name.lower() for kind in kinds))))


class StatisticsVisitor(Visitor):
    def __init__(self, schema: Schema, entry: ShardEntry | None = None) -> None:
        self._entry = entry
        self._images = frozenset(schema.images())
        self._derives = bool(schema.sparse or schema.weighted)
        self._part = StatisticsPart(schema)
        self.closed: StatisticsPart | None = None
        """The finished part; None before :meth:`close`."""

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
            self._part.add(ExampleColumns(len(positions), found, shared))
        decoded: list[Example] = []
        for position in rest:
            example = batch.example(position)
            kind = kind_of(batch.memory, batch.starts[position], batch.lengths[position], example)
            if kind is not PayloadKind.EXAMPLE or example is None:
                self._part.left_out.kinds[kind] += 1
                continue
            decoded.append(example)
        if decoded:
            self._add_decoded(decoded)

    def fault(self, fault: Fault) -> None:
        del fault  # `check` reports it
        self._part.left_out.damaged += 1

    def close(self, end: StreamEnd) -> StatisticsPart:
        self._part.is_sound = self._entry is not None and self._entry.blake3 == end.blake3
        self.closed = self._part
        return self._part

    def _add_decoded(self, examples: Sequence[Example]) -> None:
        found = _columns(examples, self._images)
        if isinstance(found, Conflict):
            self._part.clash(found)
            found = ExampleColumns(len(examples), {})
        elif self._derives:
            lengths = (
                {name: feature.count for name, feature in each.items() if feature.kind}
                for each in examples
            )
            found = found._replace(lengths=[(each, 1) for each in lengths])
        self._part.add(found)

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


def _columns(examples: Sequence[Example], images: frozenset[str]) -> ExampleColumns | Conflict:
    """Turn decoded examples into columns. If a feature has values of two types, return this
    conflict.
    """
    features: defaultdict[str, list[Feature]] = defaultdict(list)
    for example in examples:
        for name, feature in example.items():
            features[name].append(feature)
    columns = {}
    for name, found in features.items():
        found = [feature for feature in found if feature.kind]
        kinds = {feature.kind for feature in found}
        if len(kinds) > 1:
            return Conflict(name, tuple(sorted(kind.name.lower() for kind in kinds)[:2]))
        columns[name] = _column(max(kinds, default=Kind.UNSET), found, name in images)
    return ExampleColumns(len(examples), columns)


def _column(kind: Kind, features: Sequence[Feature], is_image: bool) -> Values:
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


_open: WeakValueDictionary[tuple[str, str, str], StatisticsVisitor] = WeakValueDictionary()
"""The visitors of the shards that this process is scanning."""


def make_visitor(schema: Schema, shard: Shard) -> Visitor:
    """A visitor for a shard. Validators with equal schemas share a visitor."""
    key = (shard.storage.root, shard.path, schema.text)
    leader = _open.get(key)
    if leader is not None:
        return _Follower(leader)
    visitor = _open[key] = StatisticsVisitor(schema, shard.entry)
    return visitor


class _Follower(Visitor):
    """Returns the result of another visitor, which the same scan calls before this visitor."""

    def __init__(self, leader: StatisticsVisitor) -> None:
        self._leader = leader

    def close(self, end: StreamEnd) -> StatisticsPart:
        del end
        if self._leader.closed is None:
            raise RuntimeError("another validator did not finish the statistics")
        return self._leader.closed


@dataclass(frozen=True, slots=True)
class SplitStatistics:
    """The statistics of one split."""

    split: str
    """Name of the split; empty if the file names state no split."""
    examples: int
    """Number of examples."""
    left_out: LeftOut
    """Records of the split that are missing from the statistics."""
    sketched: tuple[str, ...]
    """Features with more distinct values than fit in memory. Their frequent values and their number
    of distinct values are estimates."""
    proto: Any = field(repr=False)
    """TensorFlow Metadata's `DatasetFeatureStatisticsList`, with one unnamed dataset."""


class StatisticsScan(Validator):
    """The common part of validators that need statistics."""

    def merge(self, part: StatisticsPart, more: StatisticsPart) -> StatisticsPart:
        part.merge(more)
        return part


def by_split(parts: Iterable[tuple[Shard, StatisticsPart]]) -> dict[str, StatisticsPart]:
    """One part per split, sorted by the names of the splits."""
    found: dict[str, StatisticsPart] = {}
    for shard, part in parts:
        if shard.split in found:
            found[shard.split].merge(part)
        else:
            found[shard.split] = part
    return dict(sorted(found.items()))


class StatisticsCollector(StatisticsScan):
    """Reads every record like a validator, but makes statistics instead of findings.

    Pass it to :func:`tfrecreg.core.check.scan.run.run_scan`, then call :meth:`statistics`.
    """

    name = "statistics"
    codes: Sequence[Code] = ()

    def __init__(self, *, digests: bool = False) -> None:
        self.needs = Need.DIGESTS if digests else Need(0)
        self.parts: dict[str, StatisticsPart] = {}
        """The part of each split, after the scan."""

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        del options
        return partial(make_visitor, target_schema(target))

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, StatisticsPart]]
    ) -> Iterator[Finding | Measure]:
        del target
        self.parts = by_split(parts)
        examples = sum(part.examples for part in self.parts.values())
        yield Measure("statistics.examples", examples, count(examples, "example"))

    def statistics(self) -> list[SplitStatistics]:
        """The statistics of every split that was scanned, sorted by name."""
        return [
            SplitStatistics(split, part.examples, part.left_out, part.sketched, part.proto())
            for split, part in self.parts.items()
        ]


_FORMAT = 6
"""Version of the file format and of the computation. Files with another version are not used."""


class StatisticsCache:
    """The cached statistics of a registry. Without a registry, nothing is cached."""

    def __init__(self, storage: Storage | None) -> None:
        self._storage = storage

    def recall(self, split: str, content: str, schema: str | None) -> SplitStatistics | None:
        """The statistics of a split with the text of a schema; None if they are not cached."""
        if self._storage is None:
            return None
        try:
            head, _, body = self._storage.read(_path(content, schema)).partition(b"\n")
            told = strict_json(head)
            if told["blake3"] != blake3(body).hexdigest():
                return None
            kinds = Counter({PayloadKind(kind): int(n) for kind, n in told["kinds"].items()})
            return SplitStatistics(
                split=split,
                examples=int(told["examples"]),
                left_out=LeftOut(large=int(told["large"]), kinds=kinds),
                sketched=tuple(map(str, told["sketched"])),
                proto=parse_proto(body),
            )
        except (StorageError, ValueError, KeyError, TypeError, AttributeError):
            return None  # a missing, incomplete or foreign file

    def remember(self, statistics: SplitStatistics, content: str, schema: str | None) -> None:
        """Cache the statistics of a split, unless they exclude damaged records."""
        left_out = statistics.left_out
        if self._storage is None or left_out.damaged:
            return
        body = statistics.proto.SerializeToString(deterministic=True)
        head = {
            "blake3": blake3(body).hexdigest(),
            "examples": statistics.examples,
            "kinds": {kind.value: count for kind, count in left_out.kinds.items()},
            "large": left_out.large,
            "sketched": list(statistics.sketched),
        }
        # In a read-only registry, statistics are computed again each time.
        with (
            suppress(StorageError),
            self._storage.create(_path(content, schema), durable=False) as writer,
        ):
            writer.write(json.dumps(head).encode() + b"\n" + body)


def _path(content: str, schema: str | None) -> str:
    made_by = f"{_FORMAT} {blake3((schema or '').encode()).hexdigest()}"
    return layout.cached_statistics(content, blake3(made_by.encode()).hexdigest()[:16])
