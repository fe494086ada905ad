"""Measures, the limit, and the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tfrecreg.codes import INF001, INF002, INF003, CodeList
from tfrecreg.errors import TfrecregError
from tfrecreg.findings import Code, Finding, Measure
from tfrecreg.pictures import sniff
from tfrecreg.scan.interface import Need, RawSize, Shard, Target
from tfrecreg.scan.tally import JsonCodec, Tally
from tfrecreg.storage import LocalStorage, list_through_links
from tfrecreg.text import si_bytes
from tfrecreg.validators.inflation.causes import find_causes
from tfrecreg.validators.inflation.part import Sizes
from tfrecreg.validators.inflation.visitor import Scale

__all__ = ["InflationValidator"]

RATIO = 1.10
"""Default limit: so many bytes of shards per raw byte …"""
ALLOWANCE = 512
"""… and so many bytes a record on top, for keys and labels of tiny records."""
BASE = "decoded"
"""Default base of the limit: raw bytes with whole-file compression taken off."""
_OF_NUMBERS = (INF002, INF003)
_RAW_FILES = 64
"""So many raw files are looked at for their format."""


class InflationValidator:
    """Says where the bytes are and what would save some, and holds them against a limit where the
    size of the raw data is known.

    Options: `ratio` (float), `allowance` (bytes a record), `base` (``decoded`` or ``stored``).
    """

    name = "inflation"
    codes: Sequence[Code] = CodeList("INF*")
    needs = Need.FRAMES | Need.EXAMPLES
    part_codec = JsonCodec(Sizes)

    def __init__(self) -> None:
        self._options: Mapping[str, Any] = {}

    def applies(self, target: Target) -> str | None:
        if target.raw is not None and (target.raw.decoded == 0 or target.raw.stored == 0):
            return "there is no raw data"
        return None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Scale]:  # noqa: ARG002 - visitors only weigh
        self._options = options
        return Scale

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:  # noqa: ARG002 - visitors only weigh
        return ""

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, Sizes]]
    ) -> Iterator[Finding | Measure]:
        total, tally = Sizes(), Tally()
        for _, part in parts:
            total.merge(part)
        yield from _measures(total, target.raw)
        if target.raw is not None:
            self._judge(tally, target.raw, total)
        cures: dict[str, int] = {}
        for cause in find_causes(total, target.raw, _raw_formats(target)):
            places = total.first_numbers if cause.code in _OF_NUMBERS else total.first
            place = places.get(cause.feature)
            tally.add(
                cause.code,
                cause.message,
                place,
                split="",
                feature=cause.feature,
            )
            cures[f"{cause.code.code} {cause.feature}".strip()] = cause.after
        if cures:
            text = ", ".join(f"{cause} {si_bytes(after)}" for cause, after in cures.items())
            yield Measure("inflation.cures", cures, text)
        yield from tally.findings(target.dataset)

    def _judge(self, tally: Tally, raw: RawSize, total: Sizes) -> None:
        ratio = float(self._options.get("ratio", RATIO))
        allowance = int(self._options.get("allowance", ALLOWANCE))
        base = str(self._options.get("base", BASE))
        against = raw.stored if base == "stored" else raw.decoded
        limit = int(ratio * against) + allowance * total.records
        size = total.file_bytes
        if size > limit:
            message = (
                f"expected at most {limit} bytes ({ratio:g} × {against} bytes {base} raw + "
                f"{allowance} × {total.records} records), found {size}: {size / against:.2f} of raw"
            )
            tally.add(INF001, message, None)


def _measures(total: Sizes, raw: RawSize | None) -> Iterator[Measure]:
    size = total.file_bytes
    yield Measure("inflation.bytes", size, f"{si_bytes(size)} in shards")
    if total.stream_bytes != size:
        text = f"{si_bytes(total.stream_bytes)} without compression"
        yield Measure("inflation.stream_bytes", total.stream_bytes, text)
    if raw is not None:
        for base, against in (("stored", raw.stored), ("decoded", raw.decoded)):
            text = f"{size / against:.3f} of the raw data {base} ({si_bytes(against)})"
            yield Measure(f"inflation.raw_{base}", against, f"{si_bytes(against)} raw, {base}")
            yield Measure(f"inflation.ratio_{base}", round(size / against, 4), text)
    ordered = dict(sorted(total.features.items(), key=lambda item: (-item[1], item[0])))
    text = ", ".join(f"{name} {si_bytes(count)}" for name, count in ordered.items())
    yield Measure("inflation.features", ordered, text)
    held = sum(ordered.values())
    beside = {
        "around": total.examples_bytes - held,
        "other": total.stream_bytes - total.examples_bytes,
    }
    told = {"around": "names, lengths and framing", "other": "what is no Example, or damaged"}
    for name, count in beside.items():
        if count:
            yield Measure(f"inflation.{name}", count, f"{si_bytes(count)} of {told[name]}")


def _raw_formats(target: Target) -> dict[str, int]:
    """How many of the first raw files are pictures of a format; empty where none is at hand."""
    formats: dict[str, int] = {}
    if target.raw_folder is None:
        return formats
    storage, looked = LocalStorage(target.raw_folder), 0
    for entry in list_through_links(storage):
        looked += 1
        if looked > _RAW_FILES:
            break
        try:
            with storage.open(entry.path) as file:
                kind = sniff(file.read_at(0, 64))
        except TfrecregError:
            continue  # a file that cannot be read has no say in how the cause is told
        if kind is not None:
            formats[kind] = formats.get(kind, 0) + 1
    return formats
