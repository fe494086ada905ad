"""What a validator says: codes, findings and where they are. Data only; nothing here prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

MAX_LOCATIONS = 20
"""Maximum number of locations in a finding; its count is always the full one."""


class Severity(str, Enum):
    """How bad a finding is. The gate decides which of them fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """2 for an error, 1 for a warning, 0 for information."""
        return {"error": 2, "warning": 1, "info": 0}[self.value]


class TensorflowOutcome(str, Enum):
    """What TensorFlow does when it gets to a fault, told the compression that there is (or that
    the manifest declares). `docs/integrity.md` has how this is known.
    """

    READS = "reads without an error"
    """It takes the fault for the end of the file, or for good data: nobody is told."""
    STOPS = "stops here"
    """It raises an error, which names neither file nor record; what follows is not read."""
    CRASHES = "crashes"
    """The process dies, without a Python exception."""


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding. Codes are an interface: they never change meaning."""

    code: str
    """Three capitals and three digits: ``CRC002``."""
    rule: str
    """The same in words, for people and for SARIF: ``data-checksum``."""
    severity: Severity
    """Unless the gate says otherwise."""
    summary: str
    """One line that states the finding."""
    hint: str
    """One line: what to do next."""
    page: str
    """What `tfrecreg explain` prints below the summary: why it matters, how it is found, cures."""
    tensorflow: tuple[TensorflowOutcome, ...] = ()
    """What TensorFlow may do with it, the most frequent first; which of them, each location says.
    Empty where it is not about whether the file can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """One place a finding was seen at. What does not apply is None."""

    split: str | None = None
    shard: str | None = None
    """The shard's file name."""
    record: int | None = None
    """Number of the record in its shard, from 0."""
    offset: int | None = None
    """The byte where the record starts, in the decompressed stream of the shard."""
    length: int | None = None
    """Bytes of the record's payload, or of the damaged stretch."""
    feature: str | None = None
    key: str | None = None
    """The item's key, where an index knows it."""
    detail: str | None = None
    """Expected against found, at this place."""
    tensorflow: TensorflowOutcome | None = None
    """What TensorFlow does when it gets here; None where that is not the question."""

    def order(self) -> tuple[str, str, int, int, str]:
        """The sort key of locations: split, shard, record, offset, feature."""
        return (
            self.split or "",
            self.shard or "",
            -1 if self.record is None else self.record,
            -1 if self.offset is None else self.offset,
            self.feature or "",
        )

    def to_json(self) -> dict[str, str | int]:
        """The fields that are known, as the report's JSON has them."""
        names = ("split", "shard", "record", "offset", "length", "feature", "key", "detail")
        pairs = ((name, getattr(self, name)) for name in names)
        known = {name: value for name, value in pairs if value is not None}
        if self.tensorflow is not None:
            known["tensorflow"] = self.tensorflow.value
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a validator found, at one or many places."""

    code: str
    rule: str
    severity: Severity
    message: str
    """One line: expected against found, the same however many places there are."""
    hint: str
    fingerprint: str
    """Survives a rebuild; waivers match globs over it. See :func:`fingerprint`."""
    count: int
    """At how many places in all."""
    locations: tuple[Location, ...] = ()
    """The first :data:`MAX_LOCATIONS` of them, in order of split, shard and record."""

    def to_json(self) -> dict[str, object]:
        """The finding as the report's JSON has it."""
        return {
            "code": self.code,
            "rule": self.rule,
            "severity": self.severity.value,
            "message": self.message,
            "hint": self.hint,
            "fingerprint": self.fingerprint,
            "count": self.count,
            "locations": [location.to_json() for location in self.locations],
        }


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure that a validator measured, good or bad: part of the report, never a verdict."""

    name: str
    """Dotted, the validator first: ``inflation.ratio_decoded``."""
    value: int | float | str | Mapping[str, int] | None
    text: str
    """The same as a short phrase for people."""


def fingerprint(
    code: str, *, dataset: str, split: str = "", feature: str = "", subject: str = ""
) -> str:
    """The identity of a finding: ``CODE:dataset:split:feature:subject``.

    Args:
        code: the finding's code.
        dataset: the dataset's name, or empty for bare files.
        split: the split, or empty where the finding is not about one.
        feature: the feature, or empty.
        subject: the key or the shard, or empty.
    """
    return ":".join((code, dataset, split, feature, subject))
