"""What a shard contributes to the statistics of its split, small enough to cross processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tfrecreg.builtin.statistics.accumulate import Accumulator, ExampleColumns
from tfrecreg.builtin.statistics.options import StatisticsOptions
from tfrecreg.builtin.statistics.sketches import MAX_BYTES
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.values.errors import RefusedError
from tfrecreg.core.values.text import safe

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
