"""What the payloads of a shard are, and the places of those that are no Examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tfrecreg.errors import StorageError
from tfrecreg.example.kinds import PayloadKind, payload_kind
from tfrecreg.findings import MAX_LOCATIONS, Location
from tfrecreg.manifest.adopted import adopted_kind
from tfrecreg.records.batch import RecordBatch
from tfrecreg.records.reader import scan
from tfrecreg.scan.interface import Shard, Target

__all__ = [
    "NOT_AN_EXAMPLE",
    "TOO_LARGE",
    "PayloadCounter",
    "PayloadCounts",
    "described",
    "mostly_examples",
    "no_schema_fits",
    "stranger",
]


NOT_AN_EXAMPLE = "the payload should be a tf.train.Example"
"""What `SCH001` says, wherever it is found."""

TOO_LARGE = "too_large"
"""Stands among the kinds for records that are not held, so that nobody knows what they are."""

_SHARDS = 4
"""In so many shards the first record is looked for: some may be empty."""
_PROBE = 1 << 20
"""The first record is looked at if it has no more bytes than this."""
_SHOWN = 8
"""So many bytes of a payload are shown."""


@dataclass(frozen=True, slots=True)
class PayloadCounts:
    """What the payloads of a shard are. Plain data, small."""

    kinds: dict[str, int] = field(default_factory=dict)
    """By the value of a :class:`PayloadKind`, or :data:`TOO_LARGE`: how many."""
    strangers: list[Location] = field(default_factory=list)
    """The first records that are no Examples."""


class PayloadCounter:
    """Counts the kinds of a shard's payloads.

    Args:
        shard: the shard.
    """

    def __init__(self, shard: Shard) -> None:
        self._kinds: Counter[str] = Counter()
        self._strangers: list[Location] = []
        self._shard = shard

    def add(self, batch: RecordBatch) -> None:
        """Count a batch."""
        if not batch.whole:
            self._kinds[TOO_LARGE] += len(batch)
            return
        for position, kind in enumerate(batch.kinds):
            if kind is not None:
                self.count(batch, position, kind)

    def count(self, batch: RecordBatch, position: int, kind: PayloadKind) -> None:
        """Count one record of a batch, whose kind is known."""
        self._kinds[kind.value] += 1
        if kind is not PayloadKind.EXAMPLE and len(self._strangers) < MAX_LOCATIONS:
            self._strangers.append(stranger(self._shard, batch, position, kind))

    def seen(self) -> PayloadCounts:
        """What was counted so far."""
        return PayloadCounts(dict(self._kinds), list(self._strangers))


def stranger(shard: Shard, batch: RecordBatch, position: int, kind: PayloadKind) -> Location:
    """The place of a record that is no Example, and what it is instead."""
    start, length = batch.starts[position], batch.lengths[position]
    what = {PayloadKind.SEQUENCE_EXAMPLE: "a SequenceExample, ", PayloadKind.EVENT: "an event, "}
    head = batch.memory[start : start + min(length, _SHOWN)].hex(" ")
    more = " …" if length > _SHOWN else ""
    found = f"found {what.get(kind, '')}{length} byte{'' if length == 1 else 's'}: {head}{more}"
    return shard.locate(batch, position, detail=found if length else "found no bytes")


def mostly_examples(kinds: Mapping[str, int]) -> bool:
    """Whether more than half of the records whose kind is known are Examples.

    Then they are a set of Examples, and the others do not belong there. The other way round
    nothing follows: a SequenceExample without lists has the bytes of an Example, and so may a
    short text.
    """
    known = sum(kinds.values()) - kinds.get(TOO_LARGE, 0)
    return 2 * kinds.get(PayloadKind.EXAMPLE.value, 0) > known


def no_schema_fits(target: Target) -> str:
    """Why no schema of Examples applies to `target`; empty where one may.

    A manifest says what its payloads are. Of bare files without a schema the first record does: it
    is looked at so that nobody is told to name a schema where none would help.
    """
    kind = adopted_kind(target.manifest)
    if target.manifest is None and target.schema is None:
        kind = _first_kind(target) or kind
    if kind is PayloadKind.EXAMPLE or (kind is PayloadKind.OTHER and target.manifest is None):
        return ""
    return f"not applicable to {kind.plural}: a schema describes Examples"


def _first_kind(target: Target) -> PayloadKind | None:
    for shard in target.shards[:_SHARDS]:
        try:
            for event in scan(shard.storage, shard.path, batch_bytes=_PROBE, hold_limit=_PROBE):
                if not isinstance(event, RecordBatch):
                    break  # damaged, or empty
                return payload_kind(event.payload(0)) if event.whole else None
        except StorageError:
            continue  # the scan will tell
    return None


def described(kinds: Mapping[str, int]) -> str:
    """For people: ``10 Examples, 3 SequenceExamples``."""
    return ", ".join(_pieces(kinds))


def _pieces(kinds: Mapping[str, int]) -> Iterable[str]:
    for kind in PayloadKind:
        if number := kinds.get(kind.value):
            yield kind.counted(number)
    if number := kinds.get(TOO_LARGE):
        yield f"{number:,} too large to tell"
