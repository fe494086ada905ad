"""Reports how often the records of each member of a mixture were handed out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.certificate import Certificate, RecordName, digest_rows
from tfrecreg.builtin.training.data_source import DataSource
from tfrecreg.core.values.errors import UsageError

Counts = npt.NDArray[np.int64]

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberReport:
    """Compares how many elements of a member were handed out with how many were expected."""

    name: str
    """The name of the member, escaped."""
    records: int
    """Number of records of the member's source."""
    expected: int
    """Expected number of elements of this member in the epochs."""
    handed_out: int
    missed: int
    """Number of expected elements that were not handed out."""
    surplus: int
    """Number of elements that were handed out more often than expected."""
    times: Mapping[int, int]
    """How often records were handed out. With ``{0: 134, 1: 66}``, 134 records were never handed
    out, and 66 records were handed out once. If records are identical, their elements are divided
    among them."""
    missed_records: tuple[RecordName, ...] = ()
    """The first 20 missed records."""
    surplus_records: tuple[RecordName, ...] = ()
    """The first 20 surplus records."""

    def __str__(self) -> str:
        words = {0: "never", 1: "once", 2: "twice"}
        often = [
            f"{words.get(times, f'{times} times')} {count:,}" for times, count in self.times.items()
        ]
        records = "records" if self.records > 1 else "record"
        return f"{self.handed_out:,} of {self.name}, {self.records:,} {records}: {', '.join(often)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureReport:
    """For each member, compares handed-out elements with the elements that the mixture planned."""

    members: tuple[MemberReport, ...]
    foreign: int
    """Number of elements that were handed out but belong to no member."""

    @property
    def expected(self) -> int:
        """Total number of elements in all epochs of the report."""
        return sum(each.expected for each in self.members)

    @property
    def handed_out(self) -> int:
        """How many elements were handed out."""
        return sum(each.handed_out for each in self.members) + self.foreign

    @property
    def is_complete(self) -> bool:
        """Whether each record was handed out as often as planned, without any foreign record."""
        return not (self.foreign or any(each.missed or each.surplus for each in self.members))

    def __str__(self) -> str:
        head = f"all {self.expected:,} elements as planned"
        if not self.is_complete:
            missed = sum(each.missed for each in self.members)
            surplus = sum(each.surplus for each in self.members)
            head = (
                f"{self.handed_out:,} handed out of {self.expected:,}: {missed:,} missed, "
                f"{surplus:,} too many, {self.foreign:,} foreign"
            )
        lines = [head, *map(str, self.members)]
        for member in self.members:
            lines += [f"missed: {each}" for each in member.missed_records]
            lines += [f"too many: {each}" for each in member.surplus_records]
        return "\n".join(lines)


def report_of(
    certificate: Certificate,
    identity: str,
    members: Mapping[str, DataSource],
    times: Sequence[Counts],
) -> MixtureReport:
    """Compare the elements in a certificate with the planned number of elements of each record.

    If several members hold the same record, its elements count for the first of these members until
    it has its share. Further elements count for the next member. Any surplus counts for the first
    member.
    """
    if certificate.identity != identity:
        raise UsageError("the certificate is about another mixture")
    digests = [digest_rows(source.digests()) for source in members.values()]
    found = digest_rows(certificate.digests)
    kinds, inverse = np.unique(np.concatenate([*digests, found]), return_inverse=True)
    ends = np.cumsum([len(each) for each in digests])
    *places, given_places = np.split(inverse.reshape(-1), ends)
    left = np.bincount(given_places, minlength=len(kinds))
    held = [np.bincount(each, minlength=len(kinds)) for each in places]
    wanted = [_sums(at, often, len(kinds)) for at, often in zip(places, times, strict=True)]
    given: list[Counts] = []
    for each in wanted:
        taken = np.minimum(left, each)
        left = left - taken
        given.append(taken)
    for number, each in enumerate(held):
        given[number] = given[number] + np.where(each > 0, left, 0)
        left = np.where(each > 0, 0, left)
    reports = [
        _member(name, source, *numbers)
        for (name, source), *numbers in zip(
            members.items(), places, held, wanted, given, strict=True
        )
    ]
    return MixtureReport(members=tuple(reports), foreign=int(left.sum()))


def _member(
    name: str, source: DataSource, places: Counts, held: Counts, wanted: Counts, given: Counts
) -> MemberReport:
    missing, surplus = np.maximum(wanted - given, 0), np.maximum(given - wanted, 0)
    # Equal records share the elements: each gets as many, and `rest` records get one more.
    each, rest = np.divmod(given, np.maximum(held, 1))
    low, high = held - rest, rest
    often, at = np.unique(np.concatenate([each, each + 1]), return_inverse=True)
    counts = _sums(at.reshape(-1), np.concatenate([low, high]), len(often))
    return MemberReport(
        name=name,
        records=len(source),
        expected=int(wanted.sum()),
        handed_out=int(given.sum()),
        missed=int(missing.sum()),
        surplus=int(surplus.sum()),
        times={
            times: count
            for times, count in zip(often.tolist(), counts.tolist(), strict=True)
            if count
        },
        missed_records=_named(source, places, missing),
        surplus_records=_named(source, places, surplus),
    )


def _named(source: DataSource, places: Counts, counts: Counts) -> tuple[RecordName, ...]:
    return tuple(map(source.record_name, np.flatnonzero(counts[places])[:_SHOWN].tolist()))


def _sums(places: Counts, values: Counts, length: int) -> Counts:
    """For each place, the sum of its values, as an integer."""
    found = np.zeros(length, np.int64)
    np.add.at(found, places, values)
    return found
