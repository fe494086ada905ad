"""The results of validators: codes, findings and locations. This module has only data and prints
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum

from tfrecreg.core.values.text import json_data

MAX_LOCATIONS = 20
"""Maximum number of locations in a finding. The finding's `count` is always complete."""


class Severity(str, Enum):
    """The severity of a finding. The gate decides which severities fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """2 for an error, 1 for a warning, 0 for information."""
        return {"error": 2, "warning": 1, "info": 0}[self.value]


class TensorflowOutcome(str, Enum):
    """What TensorFlow does at a fault. It reads the file with the compression that the manifest
    states. If there is no manifest, TensorFlow uses the file's own compression. See
    https://github.com/tfrecreg/tfrecreg/tree/main/docs/integrity.md
    """

    READS = "reads without an error"
    """It mistakes the fault for valid data or for the end of the file, and reports no error."""
    STOPS = "stops here"
    """It raises an error that names neither file nor record, and does not read the rest of the
    file.
    """
    CRASHES = "crashes"
    """The process crashes without a Python exception."""


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding. Codes are part of the interface: a code never changes its meaning."""

    code: str
    """Three capitals and three digits: ``CRC002``."""
    rule: str
    """The code's name in words, for people and for SARIF: ``data-checksum``."""
    severity: Severity
    """The default severity, which a gate may override."""
    summary: str
    """One line that states the finding."""
    hint: str
    """One line: what to do next."""
    page: str
    """The text that `tfrecreg explain` prints below the summary: why the finding matters, how it is
    found, and how to resolve it.
    """
    tensorflow: tuple[TensorflowOutcome, ...] = ()
    """What TensorFlow may do at such a fault, with the most frequent outcome first. Each location
    of a finding has its own outcome. Empty if the code does not concern reading the file.
    """
    counted: tuple[str, str] | None = None
    """The texts that follow the number of items, if a source gives this code to items. The first
    text is for one item, the second for several:
    ``("item is incomplete", "items are incomplete")``.
    """

    def count_text(self, number: int) -> str:
        """The number and its text: ``80 items are incomplete``. If `counted` is not set, the text
        is ``×`` and the summary.
        """
        if self.counted is None:
            return f"{number:,} × {self.summary}"
        return f"{number:,} {self.counted[number != 1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """One place of a finding. Fields that do not apply are None."""

    split: str | None = None
    shard: str | None = None
    """The shard's file name."""
    record: int | None = None
    """Number of the record in its shard, from 0."""
    offset: int | None = None
    """The byte of the shard's decompressed stream at which the record starts."""
    length: int | None = None
    """Size in bytes of the record's payload, or of the damaged range."""
    feature: str | None = None
    key: str | None = None
    """The key of the record's item, if an index has the key."""
    detail: str | None = None
    """The expected and the found value at this place."""
    tensorflow: TensorflowOutcome | None = None
    """What TensorFlow does at this place; None if the finding does not concern reading."""

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
        """The fields that are not None, as the report's JSON has them."""
        pairs = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: json_data(value) for name, value in pairs if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem that a validator found, at one or many places.

    Example:
        >>> from pathlib import Path
        >>> shard = Path("registry/data/mnist/mnist-test.tfrecord-00000-of-00002")
        >>> _ = shard.write_bytes(shard.read_bytes()[:-1])
        >>> report = reg["mnist"].built.check(only=["crc"])
        >>> [(found.code, found.severity.value, found.count) for found in report.findings]
        [('CRC003', 'error', 1)]
    """

    code: str
    rule: str
    severity: Severity
    message: str
    """One line with the expected and the found value. It is the same for all places."""
    hint: str
    fingerprint: str
    """The identity of the finding, which stays the same in other builds. Waivers match it with
    globs. See :func:`fingerprint`.
    """
    count: int
    """Total number of places."""
    locations: tuple[Location, ...] = ()
    """The first :data:`MAX_LOCATIONS` locations, in order of split, shard and record."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A value that a validator measured. It is in the report, but does not affect the verdict."""

    name: str
    """The name of the value, after the validator's name and a dot: ``inflation.ratio_decoded``."""
    value: int | float | str | Mapping[str, int] | None
    text: str
    """The value in words, for people."""


def fingerprint(
    code: str, *, dataset: str, split: str = "", feature: str = "", subject: str = ""
) -> str:
    """The fingerprint of a finding: ``CODE:dataset:split:feature:subject``."""
    return ":".join((code, dataset, split, feature, subject))
