"""From what was seen to causes and cures, each with the size that the records would have then.

All sizes are of the stream: records with their framing, before compression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tfrecreg.codes import INF002, INF003, INF004, INF005, INF006, INF007
from tfrecreg.findings import Code
from tfrecreg.scan.interface import RawSize
from tfrecreg.text import safe, si_bytes
from tfrecreg.validators.inflation.looks import Look
from tfrecreg.validators.inflation.part import Sizes

__all__ = ["Cause", "find_causes"]

WORTH = 0.10
"""A cause is told where its cure saves that part of all bytes,"""
LEAST = 1 << 16
"""and at least so many of them."""
RATIO = 1.10
"""What the raw data hold may be larger by that in the records before it is called larger."""
_LIST = 8
"""Numbers of a record, on average, from which on they are a list that bytes could hold."""
_FIELD = 4
"""Bytes around the value of a feature."""
_TOGETHER = 64
"""Examples in one record, where records are too small for what stands around them."""


class Cause(NamedTuple):
    """What makes the records large."""

    code: Code
    feature: str
    """Empty where it is not one."""
    message: str
    after: int
    """Bytes of the stream after the cure."""


@dataclass(frozen=True, slots=True)
class _Feature:
    """One feature: all its bytes, and what was seen of some."""

    name: str
    bytes: int
    look: Look
    repeated: float
    """The part of its bytes that are values that were there before."""
    times: float

    @property
    def shown(self) -> str:
        return f"`{safe(self.name)}`"

    @property
    def pixels(self) -> int:
        """Its bytes in values that are pixels."""
        look = self.look
        return look.all_held * look.all_pixels // look.all_numbers if look.all_numbers else 0


def find_causes(
    total: Sizes, raw: RawSize | None, raw_formats: Mapping[str, int]
) -> Iterator[Cause]:
    """What makes the records large, and is worth a cure.

    Args:
        total: of all shards.
        raw: the size of the raw data, where it is known.
        raw_formats: how many of the raw files that were looked at are pictures of a format.
    """
    for name in sorted(total.looks):
        repeats = total.repeats.get(name)
        feature = _Feature(
            name,
            total.features.get(name, 0),
            total.looks[name],
            repeats.share if repeats is not None else 0.0,
            repeats.times if repeats is not None else 1.0,
        )
        found = (
            _pixels(feature, total, raw),
            _wide(feature, total),
            _text(feature, total),
            _repeated(feature, total),
            _reencoded(feature, total, raw, raw_formats),
        )
        for cause in found:
            if cause is not None and _is_worth_it(cause, total):
                yield cause
    overhead = _overhead(total)
    if overhead is not None and _is_worth_it(overhead, total):
        yield overhead


def _is_worth_it(cause: Cause, total: Sizes) -> bool:
    saved = total.stream_bytes - cause.after
    least = LEAST // 4 if cause.code is INF007 else LEAST  # which is certain, no estimate
    return saved >= least and saved >= WORTH * total.stream_bytes


def _pixels(feature: _Feature, total: Sizes, raw: RawSize | None) -> Cause | None:
    """INF002: pixels, where the source had them compressed or a PNG would."""
    look = feature.look
    if not look.pixels or not look.tried or not look.wide:
        return None
    held = feature.pixels
    form = f" as {look.form}" if look.form != "bytes" else ""
    of = f" of {si_bytes(feature.bytes)}" if look.formats else ""
    holds = f"{feature.shown} holds decoded pixels{form}, {si_bytes(held)}{of}"
    # What the raw data have for these: all that the encoded pictures beside them do not need.
    there = raw.decoded - (feature.bytes - held if look.formats else 0) if raw is not None else 0
    if there > 0:
        if look.all_pixels <= RATIO * there:
            return None  # the source has them uncompressed, too
        times = f"{held / there:.1f} times the raw data{' of these' if look.formats else ''}"
        after = total.stream_bytes - held + there
        cure = f"as they lie there {si_bytes(there)}"
        return Cause(INF002, feature.name, _told(f"{holds}, {times}", cure, after, total), after)
    png = int(look.all_pixels * look.png / look.tried)
    after = total.stream_bytes - held + png
    cure = f"as PNG about {si_bytes(png)}"
    return Cause(INF002, feature.name, _told(holds, cure, after, total), after)


def _wide(feature: _Feature, total: Sizes) -> Cause | None:
    """INF003: numbers that would fit in fewer bytes each."""
    look = feature.look
    if not look.wide or look.numbers < _LIST * look.values:
        return None
    if look.whole.count + look.levels < look.numbers:
        return None  # they are bytes already
    dtype = look.whole.dtype if look.whole.count else "uint8"
    if look.levels and dtype != "uint8":
        return None
    narrow = look.all_numbers * np.dtype(dtype).itemsize + _FIELD * look.all_values
    after = total.stream_bytes - look.all_held + narrow
    what = f"numbers of at most 256 levels as {look.form}"
    if not look.levels:
        what = f"whole numbers from {look.whole.low} to {look.whole.high} as {look.form}"
    holds = f"{feature.shown} holds {what}, {si_bytes(look.all_held)}"
    cure = f"as bytes of {dtype} about {si_bytes(narrow)}"
    return Cause(INF003, feature.name, _told(holds, cure, after, total), after)


def _text(feature: _Feature, total: Sizes) -> Cause | None:
    """INF007: encoded pictures as base64."""
    look = feature.look
    if not look.texts:
        return None
    kind = max(sorted(look.texts), key=look.texts.__getitem__).upper()
    cured = look.all_text * 3 // 4
    after = total.stream_bytes - look.all_text + cured
    holds = f"{feature.shown} holds pictures as base64 of {kind}, {si_bytes(look.all_text)}"
    cure = f"as bytes about {si_bytes(cured)}"
    return Cause(INF007, feature.name, _told(holds, cure, after, total), after)


def _repeated(feature: _Feature, total: Sizes) -> Cause | None:
    """INF004: values that are stored again and again."""
    if feature.times <= 1:
        return None
    extra = int(feature.bytes * feature.repeated)
    after = total.stream_bytes - extra
    holds = (
        f"{feature.shown} holds each value {feature.times:.1f} times on average, "
        f"{si_bytes(feature.bytes)}"
    )
    cure = f"once each about {si_bytes(feature.bytes - extra)}"
    return Cause(INF004, feature.name, _told(holds, cure, after, total), after)


def _reencoded(
    feature: _Feature, total: Sizes, raw: RawSize | None, raw_formats: Mapping[str, int]
) -> Cause | None:
    """INF005: encoded pictures that are larger than the raw data are."""
    formats = feature.look.formats
    if raw is None or not formats or sum(formats.values()) < feature.look.content:
        return None
    once = int(feature.bytes * (1 - feature.repeated))
    if once <= RATIO * raw.decoded:
        return None
    after = total.stream_bytes - once + raw.decoded
    kind = max(sorted(formats), key=formats.__getitem__).upper()
    source = max(sorted(raw_formats), key=raw_formats.__getitem__).upper() if raw_formats else ""
    of = f" of {source}" if source and source != kind else ""
    holds = (
        f"{feature.shown} holds pictures as {kind}, {si_bytes(once)}, "
        f"{once / raw.decoded:.1f} times the raw data{of}"
    )
    cure = f"as they lie there {si_bytes(raw.decoded)}"
    return Cause(INF005, feature.name, _told(holds, cure, after, total), after)


def _overhead(total: Sizes) -> Cause | None:
    """INF006: names, lengths and framing are more than what they are around."""
    content = sum(look.content for look in total.looks.values())
    around = total.sampled_bytes - content
    if not total.sampled or 2 * around <= total.sampled_bytes:
        return None
    if total.file_bytes < (1 - WORTH) * total.stream_bytes:
        return None  # gzip takes care of what repeats from record to record
    part = around / total.sampled_bytes
    after = int(total.stream_bytes * (1 - part + part / _TOGETHER))
    holds = (
        f"names, lengths and framing are {100 * part:.0f} % of records of "
        f"{total.sampled_bytes // total.sampled} bytes on average"
    )
    cure = f"with {_TOGETHER} examples in a record they hardly count"
    return Cause(INF006, "", _told(holds, cure, after, total), after)


def _told(holds: str, cure: str, after: int, total: Sizes) -> str:
    zipped = " before gzip" if total.stream_bytes > total.file_bytes else ""
    sizes = f"{si_bytes(after)} instead of {si_bytes(total.stream_bytes)}{zipped}"
    return f"{holds}; {cure}, and all records {sizes}"
