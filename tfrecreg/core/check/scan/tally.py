"""Counts problems shard by shard. Counts are exact, but only the first locations are kept."""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from typing import Any, NamedTuple

import msgspec
from blake3 import blake3

from tfrecreg.core.check.scan.interface import Part, Shard
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.values.findings import (
    MAX_LOCATIONS,
    Code,
    Finding,
    Location,
    Severity,
    fingerprint,
)


class Problem(NamedTuple):
    """One problem of a record."""

    code: Code
    feature: str
    message: str
    """The message, the same for all records with this problem."""
    detail: str | None
    """The facts of this record."""


class _Group(NamedTuple):
    code: str
    split: str
    feature: str
    subject: str
    message: str


class TallyRow(NamedTuple):
    """One group of a tally as plain data."""

    group: _Group
    severity: Severity
    times: int
    locations: list[Location]


class _Occurrences:
    """The number of occurrences, and their first locations, sorted by split, shard and record."""

    __slots__ = ("code", "count", "locations")

    def __init__(self, code: Code) -> None:
        self.code = code
        self.count = 0
        self.locations: list[Location] = []

    def place(self, location: Location) -> None:
        places = self.locations
        if not places or places[-1].order() <= location.order():
            if len(places) < MAX_LOCATIONS:  # nearly always: occurrences come in order
                places.append(location)
            return
        insort(places, location, key=Location.order)
        del places[MAX_LOCATIONS:]


class Tally:
    """Occurrences of problems, grouped into findings. Picklable and mergeable.

    A group is one finding: all occurrences with the same code, split, feature, subject and message.
    Memory is bounded by the number of groups, never by the number of occurrences, so a message says
    only what all occurrences share. The facts of one occurrence go into `Location.detail`.

    Counts and locations do not depend on the order in which occurrences are added and tallies are
    merged.
    """

    def __init__(self) -> None:
        self._groups: dict[_Group, _Occurrences] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(
        self,
        code: Code,
        message: str,
        location: Location | None,
        *,
        split: str = "",
        feature: str = "",
        subject: str = "",
        count: int = 1,
    ) -> None:
        """Count one occurrence.

        Args:
            code: the code of the problem.
            message: one line, the same for every occurrence of the group.
            location: where the problem is; None if the group has all the information.
            split: the split that the finding concerns, empty for none.
            feature: the feature, empty for none.
            subject: the key or the shard that the finding concerns, empty for none.
            count: the number of occurrences that this represents.
        """
        group = _Group(code.code, split, feature, subject, message)
        seen = self._groups.get(group)
        if seen is None:
            seen = self._groups[group] = _Occurrences(code)
        seen.count += count
        if location is not None:
            seen.place(location)

    def add_record(
        self,
        shard: Shard,
        batch: RecordBatch,
        position: int,
        code: Code,
        feature: str,
        message: str,
        detail: str | None,
    ) -> None:
        """Count one occurrence in a record. The finding is about the split of the shard.

        Args:
            shard: the shard of the batch.
            batch: the batch with the record.
            position: the record's position in the batch, from 0.
            code: the code of the problem.
            feature: the feature, empty for none.
            message: one line, the same for every occurrence of the group.
            detail: what was expected and what was found; escaped.
        """
        place = shard.locate(batch, position, feature=feature or None, detail=detail)
        self.add(code, message, place, split=shard.split, feature=feature)

    def add_places(
        self,
        code: Code,
        message: str,
        places: Sequence[Location],
        count: int,
        *,
        split: str = "",
        feature: str = "",
        subject: str = "",
    ) -> None:
        """Count `count` occurrences. `places` has the first locations, at least one."""
        for number, place in enumerate(places):
            times = count - len(places) + 1 if number == 0 else 1
            self.add(
                code, message, place, split=split, feature=feature, subject=subject, count=times
            )

    def merge(self, other: Tally) -> None:
        for group, theirs in other._groups.items():
            ours = self._groups.get(group)
            if ours is None:
                ours = self._groups[group] = _Occurrences(theirs.code)
            ours.count += theirs.count
            for location in theirs.locations:
                ours.place(location)

    def rows(self) -> list[TallyRow]:
        """The groups as plain data."""
        return [
            TallyRow(group, seen.code.severity, seen.count, seen.locations)
            for group, seen in self._groups.items()
        ]

    @classmethod
    def of_rows(cls, rows: Iterable[TallyRow], codes: Iterable[Code]) -> Tally:
        """The tally from the result of :meth:`rows`; ValueError for any other row."""
        known = {code.code: code for code in codes}
        tally = cls()
        for group, severity, times, locations in rows:
            if group.code not in known or times < 1 or not group.message.isprintable():
                raise ValueError(f"a tally cannot contain the row {group!r}")
            code = replace(known[group.code], severity=severity)
            seen = tally._groups[group] = _Occurrences(code)
            seen.count = times
            for location in locations:
                seen.place(location)
        return tally

    def findings(self, dataset: str) -> Iterator[Finding]:
        """The findings, in order of code, split, feature, subject and message."""
        for group in sorted(self._groups):
            seen = self._groups[group]
            yield Finding(
                code=group.code,
                rule=seen.code.rule,
                severity=seen.code.severity,
                message=group.message,
                hint=seen.code.hint,
                fingerprint=fingerprint(
                    group.code,
                    dataset=dataset,
                    split=group.split,
                    feature=group.feature,
                    subject=group.subject,
                ),
                count=seen.count,
                locations=tuple(seen.locations),
            )


class JsonCodec:
    """Parts of one type: a dataclass or a named tuple of plain data and tallies.

    A part is validated strictly against its type, so bytes from a version with other fields are
    rejected. Texts that are not UTF-8 (file names with surrogate escapes) cannot be packed: packing
    raises UnicodeEncodeError.

    Args:
        part: the type, with annotated fields.
        codes: the codes of findings in its tallies.
    """

    def __init__(self, part: Any, codes: Sequence[Code] = ()) -> None:
        self._part = part
        self._codes = tuple(codes)

    def pack(self, part: Part) -> bytes:
        return msgspec.json.encode(part, enc_hook=Tally.rows)

    def unpack(self, data: bytes) -> Part:
        return msgspec.json.decode(data, type=self._part, dec_hook=self._made)

    def _made(self, kind: Any, plain: Any) -> Tally:
        del kind  # Tally is the only type that is not plain
        return Tally.of_rows(msgspec.convert(plain, list[TallyRow]), self._codes)


def add_up(ours: Any, theirs: Any) -> None:
    """Add another shard's dataclass of counts to `ours`, field by field.

    Numbers are summed, sets are united, and objects with a method `merge` are merged. The values of
    dictionaries are added in the same way. Any other value stays as it is in `ours`.
    """
    for each in fields(ours):
        setattr(ours, each.name, _sum(getattr(ours, each.name), getattr(theirs, each.name)))


def _sum(mine: Any, more: Any) -> Any:
    if type(mine) is int:
        return mine + more
    if isinstance(mine, dict):
        for key, value in more.items():
            # A copy, because the shard's own part may be added to another sum as well.
            mine[key] = _sum(mine[key], value) if key in mine else deepcopy(value)
    elif isinstance(mine, set):
        mine |= more
    elif hasattr(mine, "merge"):
        mine.merge(more)
    return mine


def key_from(*texts: str | None, options: Mapping[str, Any] | None = None) -> str:
    """A `part_key`: a digest of texts and of a validator's options."""
    plain = json.dumps([*texts, dict(options or {})], sort_keys=True, default=repr)
    return blake3(plain.encode("ascii")).hexdigest()
