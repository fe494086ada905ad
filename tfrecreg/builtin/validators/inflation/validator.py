"""Finds causes and cures from the measured sizes, and compares the size with the limit.

Sizes are bytes of records with their framing, before compression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tfrecreg.builtin.validators.inflation.feature_sample import FeatureSample
from tfrecreg.builtin.validators.inflation.shard_sizes import Repeats, ShardSizes, SizesVisitor
from tfrecreg.core.check.scan.interface import Shard, Target, Validator
from tfrecreg.core.check.scan.tally import JsonCodec, Tally, add_up
from tfrecreg.core.registry.manifest import RawTotals
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
from tfrecreg.core.values.findings import Code, Finding, Measure
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
