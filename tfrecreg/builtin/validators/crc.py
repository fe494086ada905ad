"""The `crc` validator: reports the scanner's faults in framing, checksums and compression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.tally import JsonCodec, Tally
from tfrecreg.core.records.batch import Fault, StreamEnd
from tfrecreg.core.registry.foreign.folders import shard_sets
from tfrecreg.core.values.codes import CORE_CODES, SHD002, CodeList
from tfrecreg.core.values.findings import Code, Finding, Location, Measure

CODES = CodeList("CRC*")


class CheckedShard(NamedTuple):
    """The result for one shard."""

    faults: Tally
    compression: str | None
    """The compression of the file; None if it has no sound record."""


class CrcValidator(Validator):
    """Turns the scanner's faults into one finding per shard and code.

    Bare files declare no compression. But readers read the files of a set together, so all of them
    should have the compression that most of them have.
    """

    name = "crc"
    codes: Sequence[Code] = CODES
    part_codec = JsonCodec(CheckedShard, CODES)

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], CrcVisitor]:  # noqa: ARG002 - it has no options
        return CrcVisitor

    def part_key(self, target: Target, options: Mapping[str, Any]) -> str:  # noqa: ARG002 - bytes are all it sees
        return ""

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, CheckedShard]]
    ) -> Iterator[Finding | Measure]:
        total = Tally()
        compressed: list[tuple[Shard, str]] = []
        for shard, part in parts:
            total.merge(part.faults)
            if part.compression is not None:
                compressed.append((shard, part.compression))
        if target.manifest is None:
            _compare(total, compressed)
        yield from total.findings(target.dataset)

    def explains(self, own: Sequence[Finding], others: Sequence[Finding]) -> Iterator[Finding]:
        """Findings about the digests of shards in which this validator reports damage."""
        damaged = {location.shard for each in own for location in each.locations}
        for other in others:
            shards = {location.shard for location in other.locations}
            if other.code == SHD002.code and shards and shards <= damaged:
                yield other


class CrcVisitor(Visitor):
    """Collects the faults of one shard."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._tally = Tally()

    def fault(self, fault: Fault) -> None:
        _add(self._tally, self._shard, fault)

    def close(self, end: StreamEnd) -> CheckedShard:
        return CheckedShard(self._tally, end.compression if end.records else None)


def _compare(tally: Tally, compressed: Sequence[tuple[Shard, str]]) -> None:
    """Find CRC006: files whose compression differs from that of most files in their set."""
    compressions = {shard.name: found for shard, found in compressed}
    for _, members in shard_sets(shard for shard, _ in compressed):
        files = [(shard, compressions[shard.name]) for shard, _ in members]
        ((most, count), *_) = Counter(found for _, found in files).most_common()
        for shard, found in files:
            if found != most:
                detail = (
                    f"compression should be `{most}`, as in {count} of the {len(files)} shards of "
                    f"its set, found `{found}`"
                )
                _add(tally, shard, Fault("CRC006", 0, None, None, detail))


def _add(tally: Tally, shard: Shard, fault: Fault) -> None:
    code = CORE_CODES[fault.code]
    location = Location(
        split=shard.split or None,
        shard=shard.name,
        record=fault.record,
        offset=fault.offset,
        length=fault.length,
        detail=fault.detail,
        tensorflow=fault.tensorflow,
    )
    tally.add(code, code.summary, location, split=shard.split, subject=shard.name)
