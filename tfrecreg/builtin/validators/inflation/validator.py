"""Measures shards, finds causes and cures from the sizes, and compares the size with the limit.

Sizes of causes and cures are bytes of records with their framing, before compression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tfrecreg.builtin.validators.inflation.feature_sample import FeatureSample
from tfrecreg.builtin.validators.inflation.stored_numbers import declared_shapes
from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.tally import JsonCodec, Tally, add_up
from tfrecreg.core.example.columns import message_bytes
from tfrecreg.core.example.kinds import PayloadKind, decode_sequence, kind_of
from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.registry.manifest import RawTotals
from tfrecreg.core.schema.payload_kinds import Table, Tables, tables_of, value_digest
from tfrecreg.core.values.codes import (
    INF001,
    INF002,
    INF003,
    INF004,
    INF005,
    INF006,
    INF007,
    CodeList,
)
from tfrecreg.core.values.config import InflationLimit, read_limits
from tfrecreg.core.values.findings import Code, Finding, Location, Measure
from tfrecreg.core.values.text import safe, si_bytes

WORTH = 0.10
"""A cause is reported only if its cure saves at least this fraction of all bytes."""
LEAST = 1 << 16
"""A cause is reported only if its cure saves at least this many bytes."""
RATIO = 1.10
"""Default limit for the size of shards divided by the size of their raw data. Above the limit,
shards count as larger than their raw data."""
_LIST = 8
"""Minimum average length at which lists of numbers are reported."""
_FIELD = 4
"""Overhead in bytes of a feature's value."""
_BASES = {"stored": "raw files", "decoded": "unpacked data"}
_TOGETHER = 64
"""Number of examples to join into one record, as the cure for tiny records."""

_BITS = 3


def sampled(first: int, stop: int) -> Iterator[int]:
    """The numbers of the sampled records in ``range(first, stop)``, ascending.

    The first eight records are sampled, then four more each time the record number doubles. For
    example, 49 of 10,000 records are sampled. The sample is the same in every run, and does not
    depend on how many records follow.
    """
    number = first
    while number < stop:
        step = 1 << max(0, number.bit_length() - _BITS)
        number += -number % step
        if number < stop:
            yield number
        number += 1


MOST = 1024
"""This many distinct values are counted per feature."""


@dataclass(slots=True)
class Repeats:
    """Estimates the share of repeated values in a feature. Memory is bounded. Mergeable.

    The values with the smallest digests are counted exactly. Digests are uniformly distributed, so
    these values have the same share of repeats as all values. If a digest is among the smallest
    digests of all shards together, it is also among the smallest digests of each shard in which it
    occurs. So the counts of all shards can be added. The result is exact for up to :data:`MOST`
    distinct values.
    """

    seen: dict[bytes, list[int]] = field(default_factory=dict)
    """Number of occurrences and size of each value. The key is its digest."""
    last: bytes = b"\xff" * 17
    """The greatest counted digest. At first it is greater than every digest."""

    def add(self, digest: bytes, size: int, times: int = 1) -> None:
        """Count a value."""
        known = self.seen.get(digest)
        if known is not None:
            known[0] += times
        elif digest < self.last:
            self.seen[digest] = [times, size]
            if len(self.seen) > 2 * MOST:
                self._forget()

    def merge(self, other: Repeats) -> None:
        for digest, (times, size) in other.seen.items():
            self.add(digest, size, times)

    def measured(self) -> tuple[float, float]:
        """Two numbers: how often a value occurs on average, and the share of all bytes (0 to 1)
        that repeats an earlier value.
        """
        self._forget()
        if not self.seen:
            return 0.0, 0.0
        every = sum(times * size for times, size in self.seen.values())
        once = sum(size for _, size in self.seen.values())
        return sum(times for times, _ in self.seen.values()) / len(self.seen), 1 - once / every

    def _forget(self) -> None:
        """Keep only the smallest digests."""
        if len(self.seen) > MOST:
            kept = sorted(self.seen)[:MOST]
            self.seen = {digest: self.seen[digest] for digest in kept}
            self.last = kept[-1]


MOST_FEATURES = 200
"""Maximum number of sampled features. Their names come from the data, so they need a limit."""


@dataclass(slots=True)
class ShardSizes:
    """Sizes in bytes of one shard, or of all shards after merging."""

    file_bytes: int = 0
    stream_bytes: int = 0
    """Size without compression."""
    records: int = 0
    features: dict[str, int] = field(default_factory=dict)
    """Exact size of each feature in bytes."""
    examples_bytes: int = 0
    """Size in bytes of all Examples, with names, lengths and framing."""
    sampled: int = 0
    """Number of sampled records."""
    sampled_bytes: int = 0
    """Size of the sampled records in the stream, with framing."""
    samples: dict[str, FeatureSample] = field(default_factory=dict)
    """Samples by feature."""
    first: dict[str, Location] = field(default_factory=dict)
    """Location of the first sampled record that has a feature."""
    first_numbers: dict[str, Location] = field(default_factory=dict)
    """For each feature, the first record with numbers that could be stored in another form."""
    repeats: dict[str, Repeats] = field(default_factory=dict)
    """Repeats of the features with large values."""


_LARGE = 1024
"""Only values with at least this many bytes are checked for repeats."""
_MOST_REPEATED = 4
"""Repeats are counted for at most this many features."""
_FRAME = 16


class SizesVisitor(Visitor):
    """Measures one shard and each of its features."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._features: Counter[str] = Counter()
        self._part = ShardSizes()

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            return
        tables = tables_of(batch)
        lengths = batch.lengths
        for table in tables.tables:
            self._weigh(tables, table)
            self._part.examples_bytes += sum(
                lengths[position] + _FRAME for position in table.positions.tolist()
            )
        features = self._features
        for position, example in tables.examples():
            if example is not None and len(example):
                self._part.examples_bytes += lengths[position] + _FRAME
            for name, feature in example.items() if example is not None else ():
                size = feature.wire_bytes
                features[name] += size
                if size >= _LARGE and feature.kind is Kind.BYTES:
                    repeats = self._repeats(name)
                    if repeats is not None:
                        repeats.add(value_digest(batch, position, name, feature), size)
            kind = kind_of(batch.memory, batch.starts[position], lengths[position], example)
            if kind is PayloadKind.SEQUENCE_EXAMPLE:  # its context was counted as an Example
                if not example:
                    self._part.examples_bytes += lengths[position] + _FRAME
                sequence = decode_sequence(batch.payload(position))
                for name, steps in sequence.lists.items() if sequence is not None else ():
                    features[name] += sum(step.wire_bytes for step in steps)
        for number in sampled(batch.first, batch.first + len(batch)):
            position = number - batch.first
            example = batch.example(position)
            start, length = batch.starts[position], batch.lengths[position]
            # A SequenceExample can be read as an Example without features.
            kind = kind_of(batch.memory, start, length, example)
            if example is not None and kind is PayloadKind.EXAMPLE:
                self._look(batch, position, example)

    def _weigh(self, tables: Tables, table: Table) -> None:
        """Count the features of records of one layout."""
        for name, (slot, column) in table.columns.items():
            sizes = message_bytes(column.stop - column.start)
            self._features[name] += int(sizes.sum())
            if slot.kind is not Kind.BYTES or not (sizes >= _LARGE).any():
                continue
            repeats = self._repeats(name)
            if repeats is not None:
                digests = tables.digests(table, name)
                for digest, size in zip(digests, sizes.tolist(), strict=True):
                    if size >= _LARGE:
                        repeats.add(digest, size)

    def close(self, end: StreamEnd) -> ShardSizes:
        part = self._part
        part.file_bytes, part.stream_bytes = end.file_bytes, end.stream_bytes
        part.records = end.records
        part.features = dict(self._features)
        for name, sample in part.samples.items():
            sample.spread(part.features.get(name, 0))
        return part

    def _repeats(self, name: str) -> Repeats | None:
        """The counter of a feature's large values, if they are counted."""
        known = self._part.repeats
        if name not in known and len(known) < _MOST_REPEATED:
            known[name] = Repeats()
        return known.get(name)

    def _look(self, batch: RecordBatch, position: int, example: Example) -> None:
        part = self._part
        part.sampled += 1
        part.sampled_bytes += batch.lengths[position] + _FRAME
        declared = declared_shapes(example)
        for name, feature in example.items():
            sample = part.samples.get(name)
            if sample is None:
                if len(part.samples) >= MOST_FEATURES:
                    continue
                sample = part.samples[name] = FeatureSample()
                part.first[name] = self._shard.locate(batch, position, feature=name)
            sample.add(name, feature, declared)
            if sample.values and name not in part.first_numbers:
                part.first_numbers[name] = self._shard.locate(batch, position, feature=name)


class Cause(NamedTuple):
    """A reason why the records are large, with its cure."""

    code: Code
    feature: str
    """Name of the feature; empty if the cause does not concern one feature."""
    message: str
    """What is large, and the size after the cure."""
    saved: int
    """The bytes that the cure saves."""


@dataclass(frozen=True, slots=True)
class _Feature:
    """One feature: its size, and its sample."""

    name: str
    bytes: int
    sample: FeatureSample
    repeats: Repeats
    raw: RawTotals | None

    @property
    def shown(self) -> str:
        return f"`{safe(self.name)}`"

    def causes(self) -> Iterator[Cause | None]:
        yield from (self.pixels(), self.wide(), self.text(), self.repeated(), self.reencoded())

    def pixels(self) -> Cause | None:
        """Find INF002: decoded pixels take more bytes than the raw data, or than the same pixels as
        PNG.
        """
        sample = self.sample
        if not sample.pixels or not sample.tried or not sample.wide:
            return None
        numbers = sample.all_numbers
        held = sample.all_held * sample.all_pixels // numbers if numbers else 0
        form = f" as {sample.form}" if sample.form != "bytes" else ""
        of = f" of {si_bytes(self.bytes)}" if sample.formats else ""
        holds = f"{self.shown} holds decoded pixels{form}, {si_bytes(held)}{of}"
        # The raw data of these pixels are the raw data without the feature's encoded images.
        encoded = self.bytes - held if sample.formats else 0
        there = self.raw.decoded - encoded if self.raw is not None else 0
        if there <= 0:
            png = int(sample.all_pixels * sample.png / sample.tried)
            message = f"{holds}; as PNG they take about {si_bytes(png)}"
            return Cause(INF002, self.name, message, held - png)
        if sample.all_pixels <= RATIO * there:
            return None  # the raw data are also uncompressed
        times = f"{held / there:.1f} times {'their' if sample.formats else 'the'} raw data"
        message = f"{holds}, {times}; their raw data take {si_bytes(there)}"
        return Cause(INF002, self.name, message, held - there)

    def wide(self) -> Cause | None:
        """Find INF003: numbers that would fit in fewer bytes each."""
        sample = self.sample
        if not sample.wide or sample.numbers < _LIST * sample.values:
            return None
        if sample.whole.count + sample.levels < sample.numbers:
            return None  # they are bytes already
        dtype = sample.whole.dtype if sample.whole.count else "uint8"
        if sample.levels and dtype != "uint8":
            return None
        narrow = sample.all_numbers * np.dtype(dtype).itemsize + _FIELD * sample.all_values
        what = f"numbers with at most 256 levels as {sample.form}"
        if not sample.levels:
            what = f"whole numbers from {sample.whole.low} to {sample.whole.high} as {sample.form}"
        holds = f"{self.shown} holds {what}, {si_bytes(sample.all_held)}"
        message = f"{holds}; as bytes of {dtype} they take about {si_bytes(narrow)}"
        return Cause(INF003, self.name, message, sample.all_held - narrow)

    def text(self) -> Cause | None:
        """Find INF007: encoded images (such as JPEG) that are stored as base64."""
        texts, size = self.sample.texts, self.sample.all_text
        if not texts:
            return None
        holds = f"{self.shown} holds images as base64 of {_commonest(texts)}, {si_bytes(size)}"
        cured = size * 3 // 4
        message = f"{holds}; as bytes they take about {si_bytes(cured)}"
        return Cause(INF007, self.name, message, size - cured)

    def repeated(self) -> Cause | None:
        """Find INF004: values that are stored repeatedly."""
        times, share = self.repeats.measured()
        if times <= 1:
            return None
        extra = int(self.bytes * share)
        message = (
            f"{self.shown} holds each value {times:.1f} times on average, {si_bytes(self.bytes)}; "
            f"stored once each, they take about {si_bytes(self.bytes - extra)}"
        )
        return Cause(INF004, self.name, message, extra)

    def reencoded(self) -> Cause | None:
        """Find INF005: encoded images that take more bytes than their raw data."""
        formats = self.sample.formats
        if self.raw is None or not formats or sum(formats.values()) < self.sample.content:
            return None
        _, share = self.repeats.measured()
        once, raw = int(self.bytes * (1 - share)), self.raw.decoded
        if once <= RATIO * raw:
            return None
        message = (
            f"{self.shown} holds images as {_commonest(formats)}, {si_bytes(once)}, "
            f"{once / raw:.1f} times the raw data; the raw data take {si_bytes(raw)}"
        )
        return Cause(INF005, self.name, message, once - raw)


def _commonest(formats: Mapping[str, int]) -> str:
    return max(sorted(formats), key=formats.__getitem__).upper()


def find_causes(total: ShardSizes, raw: RawTotals | None) -> Iterator[Cause]:
    """The causes to report. The cure of each of these causes saves enough bytes."""
    found: list[Cause | None] = []
    for name, sample in sorted(total.samples.items()):
        size, repeats = total.features.get(name, 0), total.repeats.get(name, Repeats())
        found += _Feature(name, size, sample, repeats, raw).causes()
    zipped = " before gzip" if total.stream_bytes > total.file_bytes else ""
    for cause in (*found, _overhead(total)):
        if cause is None or cause.saved < WORTH * total.stream_bytes:
            continue
        least = LEAST // 4 if cause.code is INF007 else LEAST  # the savings are exact
        if cause.saved >= least:
            after = si_bytes(total.stream_bytes - cause.saved)
            sizes = f"{after} instead of {si_bytes(total.stream_bytes)}{zipped}"
            yield cause._replace(message=f"{cause.message}, so all records take {sizes}")


def _overhead(total: ShardSizes) -> Cause | None:
    """Find INF006: names, lengths and framing that take more bytes than the content."""
    content = sum(sample.content for sample in total.samples.values())
    around = total.sampled_bytes - content
    if not total.sampled or 2 * around <= total.sampled_bytes:
        return None
    if total.file_bytes < (1 - WORTH) * total.stream_bytes:
        return None  # gzip compresses the repetitions between records
    part = around / total.sampled_bytes
    after = int(total.stream_bytes * (1 - part + part / _TOGETHER))
    message = (
        f"names, lengths and framing take {100 * part:.0f} % of records, which have "
        f"{total.sampled_bytes // total.sampled} bytes on average; with {_TOGETHER} examples per "
        "record, they hardly count"
    )
    return Cause(INF006, "", message, total.stream_bytes - after)


_OF_NUMBERS = (INF002, INF003)


class InflationValidator(Validator):
    """Reports how many bytes each feature takes, and how to save bytes. Compares the size of the
    shards with a limit if the size of the raw data is known.

    Its options are :class:`InflationLimit`.
    """

    name = "inflation"
    Options = InflationLimit
    codes: Sequence[Code] = CodeList("INF*")
    part_codec = JsonCodec(ShardSizes)

    def __init__(self) -> None:
        self._limit = InflationLimit()

    def applies(self, target: Target) -> str | None:
        if target.raw is not None and (target.raw.decoded == 0 or target.raw.stored == 0):
            return "there are no raw data"
        return None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], SizesVisitor]:
        del target  # visitors only measure
        self._limit = read_limits(InflationLimit, options, self.name)
        return SizesVisitor

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:  # noqa: ARG002 - visitors only measure
        return ""

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, ShardSizes]]
    ) -> Iterator[Finding | Measure]:
        total, tally = ShardSizes(), Tally()
        for _, part in parts:
            add_up(total, part)
        yield from _measures(total, target.raw)
        if target.raw is not None:
            self._judge(tally, target.raw, total)
        cures: dict[str, int] = {}
        for cause in find_causes(total, target.raw):
            places = total.first_numbers if cause.code in _OF_NUMBERS else total.first
            place = places.get(cause.feature)
            tally.add(cause.code, cause.message, place, split="", feature=cause.feature)
            cures[f"{cause.code.code} {cause.feature}".strip()] = total.stream_bytes - cause.saved
        options = []
        for name, sample in sorted(total.samples.items()) if target.kind == "files" else ():
            shape = next(iter(sample.shapes), "")
            if len(sample.shapes) == 1 and sum(sample.shapes.values()) == sample.records:
                height, width, channels = map(int, shape.split("x"))
                options.append(f"--option image={safe(name)}:{height}x{width}x{channels or 1}")
        if options:
            text = " ".join(options)
            yield Measure("inflation.pixels", text, f"`adopt` declares them as images: {text}")
        if cures:
            text = ", ".join(f"{cause} {si_bytes(after)}" for cause, after in cures.items())
            yield Measure("inflation.cures", cures, text)
        yield from tally.findings(target.dataset)

    def _judge(self, tally: Tally, raw: RawTotals, total: ShardSizes) -> None:
        ratio, allowance, base = self._limit.ratio, self._limit.allowance, self._limit.base
        against = raw.stored if base == "stored" else raw.decoded
        limit = int(ratio * against) + allowance * total.records
        size = total.file_bytes
        if size > limit:
            message = (
                f"expected at most {limit} bytes ({ratio:g} × {against} bytes of {_BASES[base]} + "
                f"{allowance} × {total.records} records), found {size}: "
                f"{size / against:.2f} × the {_BASES[base]}"
            )
            tally.add(INF001, message, None)


def _measures(total: ShardSizes, raw: RawTotals | None) -> Iterator[Measure]:
    size = total.file_bytes
    yield Measure("inflation.bytes", size, f"{si_bytes(size)} in shards")
    if total.stream_bytes != size:
        text = f"{si_bytes(total.stream_bytes)} without compression"
        yield Measure("inflation.stream_bytes", total.stream_bytes, text)
    if raw is not None:
        for base, against in (("stored", raw.stored), ("decoded", raw.decoded)):
            text = f"{size / against:.2f} × the {_BASES[base]} ({si_bytes(against)})"
            yield Measure(
                f"inflation.raw_{base}", against, f"{si_bytes(against)} of {_BASES[base]}"
            )
            yield Measure(f"inflation.ratio_{base}", round(size / against, 4), text)
    ordered = dict(sorted(total.features.items(), key=lambda item: (-item[1], item[0])))
    text = ", ".join(f"{name} {si_bytes(count)}" for name, count in ordered.items())
    yield Measure("inflation.features", ordered, text)
    held = sum(ordered.values())
    beside = {
        "around": total.examples_bytes - held,
        "other": total.stream_bytes - total.examples_bytes,
    }
    told = {"around": "names, lengths and framing", "other": "other payloads"}
    for name, count in beside.items():
        if count:
            yield Measure(f"inflation.{name}", count, f"{si_bytes(count)} of {told[name]}")
