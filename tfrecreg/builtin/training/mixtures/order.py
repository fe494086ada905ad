"""The share of one host in an epoch of a mixture, and its state.

What of each member of a mixture was handed out how often.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.certificate import Certificate, RecordName
from tfrecreg.builtin.training.data_source import DataSource
from tfrecreg.builtin.training.order import Order
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

MIXTURE = "mixture"
"""The key of a state that describes the mixture."""
_MEMBER = {
    "source": "the identity of the records",
    "records": "the number of records",
    "count": "the number of places of an epoch",
}


class MixtureOrder(Order):
    """The places of a mixture that one host reads in an epoch.

    :meth:`tfrecreg.builtin.training.mixtures.source.Mixture.order` makes them.
    """

    mixture: Mapping[str, Any] = {}
    """What states say of the mixture."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.epoch < 0:
            raise UsageError(
                f"`epoch` should be a number from 0 on, found {self.epoch}",
                hint="the places of a mixture begin with its first epoch, the epoch 0",
            )

    def _draw(self) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
        return _Shift(self.epoch * self.records)

    def __repr__(self) -> str:
        return (
            f"<MixtureOrder of {len(self)} of {self.records} places, epoch {self.epoch}, "
            f"host {self.host} of {self.hosts}>"
        )

    def of_epoch(self, epoch: int) -> Order:
        """As :meth:`Order.of_epoch`."""
        found = super().of_epoch(epoch)
        assert isinstance(found, MixtureOrder)
        found.mixture = self.mixture
        return found

    def state(self, done: int | None = None) -> dict[str, Any]:
        """As :meth:`Order.state`, with what the mixture is of."""
        return {**super().state(done), MIXTURE: self.mixture}


class _Shift:
    """The places of an epoch, in the endless sequence."""

    def __init__(self, first: int) -> None:
        self._first = first

    def __call__(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return places + self._first


def expect_mixture(states: Sequence[Any], mixture: Mapping[str, Any]) -> None:
    """Refuse states of another mixture."""
    for state in states:
        if not isinstance(state, Mapping):
            continue  # `Order.from_states` says what it is
        found = state.get(MIXTURE)
        if not isinstance(found, Mapping) or not isinstance(found.get("members"), list):
            raise UsageError(
                "the state does not belong to a mixture",
                hint="pass what `order.state()` of a mixture returned",
            )
        there, here = found["members"], mixture["members"]
        _expect_same("the number of members", len(there), len(here))
        for number, (old, new) in enumerate(zip(there, here, strict=True), 1):
            old = old if isinstance(old, Mapping) else {}
            shown = safe(str(new["name"]), limit=200)
            if old.get("source") != new["source"]:
                _expect_same(f"member {number}", old.get("name"), new["name"])
            for key in ("records", "source", "count"):
                _expect_same(f"{_MEMBER[key]} of `{shown}`", old.get(key), new[key])
        _expect_same("the seed", found.get("seed"), mixture["seed"])


def _expect_same(what: str, there: object, here: object) -> None:
    if there != here:
        raise UsageError(
            f"the state belongs to another mixture: {what} was "
            f"`{safe(str(there), limit=200)}`, and is `{safe(str(here), limit=200)}`",
            hint="resume with the same members, versions, proportions and seed",
        )


Counts = npt.NDArray[np.int64]

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberReport:
    """What of a member was handed out, compared with its share."""

    name: str
    """Of the member, escaped."""
    records: int
    """Of its source."""
    expected: int
    """How many of its elements the epochs have."""
    handed_out: int
    missed: int
    """Elements that are expected and were not handed out."""
    surplus: int
    """Elements that were handed out and are not expected: more often, or at all."""
    times: Mapping[int, int]
    """How many of its records were handed out so often: ``{0: 134, 1: 66}``. Records that are
    equal share what was handed out of them."""
    missed_records: tuple[RecordName, ...] = ()
    """The first 20 of them."""
    surplus_records: tuple[RecordName, ...] = ()
    """The first 20 of them."""

    def __str__(self) -> str:
        often = [f"{_often(times)} {count:,}" for times, count in self.times.items()]
        records = "records" if self.records > 1 else "record"
        return f"{self.handed_out:,} of {self.name}, {self.records:,} {records}: {', '.join(often)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureReport:
    """What of each member epochs handed out, compared with what the mixture says."""

    members: tuple[MemberReport, ...]
    foreign: int
    """Elements that were handed out and are of no member."""

    @property
    def expected(self) -> int:
        """How many elements the epochs have."""
        return sum(each.expected for each in self.members)

    @property
    def handed_out(self) -> int:
        """How many elements were handed out."""
        return sum(each.handed_out for each in self.members) + self.foreign

    @property
    def is_complete(self) -> bool:
        """Whether each record was handed out as often as the mixture says, and nothing else."""
        return not (self.foreign or any(each.missed or each.surplus for each in self.members))

    def __str__(self) -> str:
        head = f"all {self.expected:,} as the mixture says"
        if not self.is_complete:
            missed = sum(each.missed for each in self.members)
            surplus = sum(each.surplus for each in self.members)
            head = (
                f"{self.handed_out:,} handed out of {self.expected:,}: {missed:,} missed, "
                f"{surplus:,} too many, {self.foreign:,} foreign"
            )
        lines = [head, *map(str, self.members)]
        for member in self.members:
            for word, records in (
                ("missed", member.missed_records),
                ("too many", member.surplus_records),
            ):
                for each in records:
                    key = "" if each.key is None else f", key `{each.key}`"
                    lines.append(f"{word}: record {each.record} of `{each.shard}`{key}")
        return "\n".join(lines)


def report_of(
    certificate: Certificate,
    identity: str,
    members: Mapping[str, DataSource],
    times: Sequence[Counts],
) -> MixtureReport:
    """Compare a certificate with how often each record should come.

    A record that is in several members is counted for the first one as often as it should come
    there, then for the next; what is left, for the first one that has it.
    """
    if certificate.identity != identity:
        raise UsageError(
            "the certificate is about another mixture",
            hint="`mixture.certificate()` makes one for these members and shares",
        )
    digests = [_numbers(source.digests()) for source in members.values()]
    found = _numbers(certificate.digests)
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
    # Equal records share what was handed out of them: each so many, and the rest one more.
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
    """The sum of the values at each place, in integers."""
    found = np.zeros(length, np.int64)
    np.add.at(found, places, values)
    return found


def _numbers(digests: npt.NDArray[np.uint8]) -> npt.NDArray[np.void]:
    # Two numbers rather than 16 characters: NumPy takes trailing NULs of strings off.
    pair = np.dtype([("high", ">u8"), ("low", ">u8")])
    return np.ascontiguousarray(digests).reshape(-1, 16).view(pair).reshape(-1)


def _often(times: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(times, f"{times} times")
