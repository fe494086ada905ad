"""Joins several sources into one sequence. Each source gets its share of the places."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.builtin.training.batches import ReadsBatches
from tfrecreg.builtin.training.certificate import (
    Certificate,
    RecordName,
    digest_rows,
    expect_enough,
    record_names,
)
from tfrecreg.builtin.training.data_source import DataSource
from tfrecreg.builtin.training.mixtures.mixing import Mixing
from tfrecreg.builtin.training.order import Order
from tfrecreg.builtin.training.selection import SkippedRecord
from tfrecreg.core.values.errors import NoSuchRecordError, UsageError

_BLOCK = 64
"""Number of elements that an iteration reads at once."""


class MixturePlace(NamedTuple):
    """The origin of the element at a place of a mixture."""

    member: str
    """The name of the member."""
    record: int
    """The number of the record in the source of the member."""


class Mixture(ReadsBatches):
    """The elements of several sources, which take turns in proportion to their shares.
    :func:`tfrecreg.mixture` makes a mixture.

    It is an endless sequence of places. Every `len(mixture)` places form an epoch, and the first
    epoch begins at place 0. It can be pickled, used after a fork, and shared by threads.

    Args:
        members: a dictionary from names to sources. All sources have elements of the same form.
        counts: number of places that each source has in an epoch.
        seed: seed for the interleaving of members and for the permutation of each member.

    Example:
        >>> mixture = tr.mixture({"mnist@1.0.0": 3, "mnist": 1}, "train", registry=reg)
        >>> mixture
        <Mixture of 266 places an epoch: 200 of mnist@1.0.0, 66 of mnist>
        >>> mixture.place(0)
        MixturePlace(member='mnist@1.0.0', record=67)
    """

    def __init__(
        self, members: Mapping[str, DataSource], counts: Sequence[int], seed: int = 0
    ) -> None:
        self.members = dict(members)
        """The sources by name, escaped."""
        self.name = " + ".join(self.members)
        self.counts = dict(zip(self.members, counts, strict=True))
        """The number of places of each member in an epoch."""
        self.seed = operator.index(seed)
        self._sources = list(self.members.values())
        self.elements = self._sources[0].elements
        self._mixing = Mixing([len(each) for each in self._sources], counts, seed)

    def __len__(self) -> int:
        """The number of places in an epoch."""
        return self._mixing.places

    def __repr__(self) -> str:
        shown = ", ".join(f"{count} of {name}" for name, count in self.counts.items())
        return f"<Mixture of {len(self)} places an epoch: {shown}>"

    def __getitem__(self, place: SupportsIndex) -> Any:
        """The element at a place. A place of ``len(mixture)`` or more is in a later epoch.

        Raises:
            NoSuchRecordError: the place is before the first one. It is also an IndexError.
            DamagedRecordError, RefusedError, StorageError: for the same reasons as in
                :meth:`DataSource.__getitem__`.
        """
        member, number = self._mixing.member(self._number(place))
        return self._sources[member][number]

    def __getitems__(self, places: Iterable[SupportsIndex]) -> list[Any]:
        """Read the elements at several places, in the order of the given places. One call reads a
        batch.

        Raises:
            NoSuchRecordError, DamagedRecordError, RefusedError, StorageError: as for one place.
        """
        wanted = np.array([operator.index(place) for place in places], np.int64)
        wanted[wanted < 0] += len(self)
        if len(wanted) and wanted.min() < 0:
            self._number(int(wanted.min()) - len(self))
        numbers = self._mixing(wanted)
        members = np.searchsorted(self._mixing.starts, numbers, side="right") - 1
        found: list[Any | None] = [None] * len(wanted)
        for member in np.unique(members).tolist():
            rows = np.flatnonzero(members == member)
            inside = (numbers[rows] - self._mixing.starts[member]).tolist()
            elements = self._sources[member].elements_or_none(inside)
            for row, element in zip(rows.tolist(), elements, strict=True):
                found[row] = element
        return [each for each in found if each is not None]

    def __iter__(self) -> Iterator[Any]:
        """The elements of the first epoch."""
        for first in range(0, len(self), _BLOCK):
            yield from self.__getitems__(range(first, min(first + _BLOCK, len(self))))

    def _number(self, place: SupportsIndex) -> int:
        at = operator.index(place)
        if at < 0:
            at += len(self)
            if at < 0:
                raise NoSuchRecordError(
                    f"there is no place {at - len(self)}: an epoch has {len(self)} places"
                )
        return self._mixing.one(at)

    def place(self, place: SupportsIndex) -> MixturePlace:
        """Which record is at a place. Reads nothing.

        Raises:
            NoSuchRecordError: the place is before the first one.

        Example:
            >>> mixture = tr.mixture({"mnist@1.0.0": 3, "mnist": 1}, "train", registry=reg)
            >>> mixture.place(1)
            MixturePlace(member='mnist@1.0.0', record=185)
        """
        member, number = self._mixing.member(self._number(place))
        return MixturePlace([*self.members][member], number)

    def key(self, place: SupportsIndex) -> str | None:
        """The key of the record at a place; None if no index has it.

        Raises:
            NoSuchRecordError, ManifestError, StorageError: as :meth:`DataSource.key`.

        Example:
            >>> mixture = tr.mixture({"mnist@1.0.0": 3, "mnist": 1}, "train", registry=reg)
            >>> mixture.key(0)
            '00143'
        """
        member, number = self._mixing.member(self._number(place))
        return self._sources[member].key(number)

    @property
    def skipped(self) -> tuple[SkippedRecord, ...]:
        """The damaged records that any member has left out so far: see `DataSource.skipped`.

        Raises:
            StorageError: the list of a member cannot be read.
        """
        return tuple(each for source in self._sources for each in source.skipped)

    @property
    def identity(self) -> str:
        """Hex digest of the records of all members, their shares and the seed."""
        members = [
            [each["source"], each["records"], each["count"]] for each in self._described["members"]
        ]
        text = json.dumps([self.seed, members], separators=(",", ":"))
        return blake3(text.encode("ascii")).hexdigest(16)

    @property
    def _described(self) -> dict[str, Any]:
        """The description of the mixture in states."""
        return {
            "seed": self.seed,
            "members": [
                {
                    "name": name,
                    "source": source.identity,
                    "records": len(source),
                    "count": self.counts[name],
                }
                for name, source in self.members.items()
            ],
        }

    def order(
        self, epoch: int = 0, *, host: int = 0, hosts: int = 1, drop_remainder: bool = False
    ) -> Order:
        """The places that one host reads in an epoch.

        Args:
            epoch: number from 0 on. Each epoch continues where the previous one ends.
            host: number of this host, from 0.
            hosts: number of hosts that share the places.
            drop_remainder: whether all hosts get the same number of places.

        Raises:
            UsageError: there are more hosts than places, or `host` is not below `hosts`.

        Example:
            >>> mixture = tr.mixture(["mnist@1.0.0", "mnist"], "train", registry=reg)
            >>> mixture.order(epoch=2, host=0, hosts=4)
            <Order of 100 of 400 records, seed None, epoch 2, host 0 of 4>
        """
        expect_enough(len(self), hosts, self.name)
        return Order(
            len(self),
            self.identity,
            seed=None,
            epoch=epoch,
            host=host,
            hosts=hosts,
            drop_remainder=drop_remainder,
            mixture=self._described,
        )

    def from_state(
        self,
        state: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        host: int = 0,
        hosts: int = 1,
    ) -> Order:
        """The rest of an epoch, from a result of `Order.state`: see `DataSource.from_state`.

        Raises:
            UsageError: `state` belongs to another mixture, or lacks the states of some hosts.

        Example:
            >>> mixture = tr.mixture({"mnist@1.0.0": 3, "mnist": 1}, "train", registry=reg)
            >>> state = mixture.order(hosts=2).state(50)
            >>> len(mixture.from_state(state))
            166
        """
        states = [state] if isinstance(state, Mapping) else list(state)
        return self.order(host=host, hosts=hosts).resumed(states)

    def report(self, certificate: Certificate, epoch: int = 0, epochs: int = 1) -> MixtureReport:
        """Report how often the records of each member were handed out, and how often they should
        be.

        Args:
            certificate: contains the digest of every element that any host handed out.
            epoch: number of the first epoch in the certificate.
            epochs: number of epochs in the certificate.

        Raises:
            UsageError: it is about another mixture.
            DamagedRecordError: a shard without an index has a damaged record.
            ManifestError, StorageError: an index or a shard is damaged, or cannot be read.

        Example:
            >>> shares = {"mnist@1.0.0": 3, "mnist": 1}
            >>> mixture = tr.mixture(shares, "train", registry=reg, with_digest=True)
            >>> certificate = mixture.certificate()
            >>> for batch in mixture.batches(64):
            ...     certificate.add(batch["record/digest"])
            >>> print(mixture.report(certificate))
            all 266 elements as planned
            200 of mnist@1.0.0, 200 records: once 200
            66 of mnist, 200 records: never 134, once 66
        """
        times = [
            self._mixing.times(at, range(epoch, epoch + epochs)) for at in range(len(self._sources))
        ]
        return report_of(certificate, self.identity, self.members, times)


Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberReport:
    """Compares the number of handed-out elements of a member with the expected number."""

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
    """For each record, compare the number of elements in a certificate with the planned number.

    Several members may hold the same record. The elements of the record then count for the first of
    these members, until that member has its planned number of elements. Further elements count for
    the next of these members. Any surplus counts for the first of these members.
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
        missed_records=record_names(places, missing, source.record_name),
        surplus_records=record_names(places, surplus, source.record_name),
    )


def _sums(places: Counts, values: Counts, length: int) -> Counts:
    """For each place, the sum of its values, as an integer."""
    found = np.zeros(length, np.int64)
    np.add.at(found, places, values)
    return found
