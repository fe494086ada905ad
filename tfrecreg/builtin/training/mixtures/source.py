"""Several sources as one sequence, in which each has its share."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from blake3 import blake3

from tfrecreg.builtin.training.batches import numbers_of_batches, read_batches
from tfrecreg.builtin.training.certificate import Certificate, expect_enough
from tfrecreg.builtin.training.data_source import DataSource
from tfrecreg.builtin.training.elements import Elements
from tfrecreg.builtin.training.mixtures.mixing import Mixing
from tfrecreg.builtin.training.mixtures.order import (
    MixtureOrder,
    MixtureReport,
    expect_mixture,
    report_of,
)
from tfrecreg.builtin.training.order import Order
from tfrecreg.builtin.training.selection import SkippedRecord
from tfrecreg.core.values.errors import NoSuchRecordError

_BLOCK = 64
"""Elements that an iteration reads at once."""


class MixturePlace(NamedTuple):
    """Where the element at a place of a mixture comes from."""

    member: str
    """Its name."""
    record: int
    """Its number in the source of the member."""


class Mixture:
    """The elements of several sources, each as often as its share. :func:`tfrecreg.mixture` makes
    one.

    It is an endless sequence of places; `len(mixture)` of them in a row are an epoch, and the first
    epoch has the places from 0 on. Picklable, usable after a fork and by several threads.

    Args:
        members: sources by name, with elements of one form.
        counts: the places of each in an epoch.
        seed: of the interleaving, and of the permutations of the members.

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
        self.counts = dict(zip(self.members, counts, strict=True))
        """The places of each member in an epoch."""
        self.seed = operator.index(seed)
        self._sources = list(self.members.values())
        self._mixing = Mixing([len(each) for each in self._sources], counts, seed)

    def __len__(self) -> int:
        """The places of an epoch."""
        return self._mixing.places

    @property
    def name(self) -> str:
        """The names of its members, escaped."""
        return " + ".join(self.members)

    def __repr__(self) -> str:
        shown = ", ".join(f"{count} of {name}" for name, count in self.counts.items())
        return f"<Mixture of {len(self)} places an epoch: {shown}>"

    def __getitem__(self, place: SupportsIndex) -> Any:
        """The element at a place. Places from `len` on are those of later epochs.

        Raises:
            NoSuchRecordError: the place is before the first one; also an IndexError.
            DamagedRecordError, RefusedError, StorageError: as :meth:`DataSource.__getitem__`.
        """
        member, number = self._mixing.member(self._number(place))
        return self._sources[member][number]

    def __getitems__(self, places: Iterable[SupportsIndex]) -> list[Any]:
        """The elements at places, in the order asked for: a batch in one call.

        Raises:
            NoSuchRecordError, DamagedRecordError, RefusedError, StorageError: as for one.
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
                    f"there is no place {at - len(self)}: the mixture has {len(self)} in an epoch",
                    hint="places go from 0 on; negative ones count from the end of the first epoch",
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
        """The key of the record at a place; None where no index has it.

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
    def elements(self) -> Elements:
        """The form of its elements."""
        return self._sources[0].elements

    @property
    def skipped(self) -> tuple[SkippedRecord, ...]:
        """Damaged records of all members that were left out so far: see `DataSource.skipped`.

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
        """What states say of it."""
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
        self,
        epoch: int = 0,
        *,
        host: int = 0,
        hosts: int = 1,
        drop_remainder: bool = False,
    ) -> Order:
        """The places that one host reads in an epoch.

        Args:
            epoch: from 0 on; each goes on where the one before ends.
            host: number of this host, from 0.
            hosts: number of hosts that share the places.
            drop_remainder: whether all hosts get the same number of places.

        Raises:
            UsageError: there are more hosts than places, or `host` is not one of `hosts`.

        Example:
            >>> mixture = tr.mixture(["mnist@1.0.0", "mnist"], "train", registry=reg)
            >>> mixture.order(epoch=2, host=0, hosts=4)
            <MixtureOrder of 100 of 400 places, epoch 2, host 0 of 4>
        """
        expect_enough(len(self), hosts, self.name)
        found = MixtureOrder(
            len(self),
            self.identity,
            seed=None,
            epoch=epoch,
            host=host,
            hosts=hosts,
            drop_remainder=drop_remainder,
        )
        found.mixture = self._described
        return found

    def from_state(
        self,
        state: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        host: int = 0,
        hosts: int = 1,
    ) -> Order:
        """The rest of an epoch, from a result of `Order.state`: see `DataSource.from_state`.

        Raises:
            UsageError: it is not a state of this mixture, or not that of every host.

        Example:
            >>> mixture = tr.mixture({"mnist@1.0.0": 3, "mnist": 1}, "train", registry=reg)
            >>> state = mixture.order(hosts=2).state(50)
            >>> len(mixture.from_state(state))
            166
        """
        states = [state] if isinstance(state, Mapping) else list(state)
        described = self._described
        expect_mixture(states, described)
        found = MixtureOrder.from_states(
            states, records=len(self), source=self.identity, host=host, hosts=hosts
        )
        assert isinstance(found, MixtureOrder)
        found.mixture = described
        return found

    def batches(
        self,
        size: int | None = None,
        order: Iterable[SupportsIndex] | None = None,
        *,
        global_batch: int | None = None,
        drop_remainder: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Batches of NumPy arrays: see `DataSource.batches`.

        Args:
            size: elements of a batch; or `global_batch`.
            order: places, such as an order; None for those of the first epoch.
            global_batch: elements of the batch that all hosts of an order have together.
            drop_remainder: whether to leave out a last batch for which fewer places are left.

        Raises:
            UsageError: `size` is less than 1, or there is no schema, or elements are payloads; or
                the hosts do not divide `global_batch`, or cannot share its rest.
            DamagedRecordError, RefusedError, StorageError: as for a single element.

        Example:
            >>> mixture = tr.mixture({"mnist@1.0.0": 3, "mnist": 1}, "train", registry=reg)
            >>> [len(batch["image/class/label"]) for batch in mixture.batches(100)]
            [100, 100, 66]
        """
        chosen = self.order() if order is None else order
        numbers = numbers_of_batches(size, chosen, drop_remainder, global_batch)
        return read_batches(self, self.elements, numbers)

    def certificate(self) -> Certificate:
        """An empty certificate of epochs of this mixture: see :meth:`report`.

        Example:
            >>> mixture = tr.mixture(["mnist@1.0.0"], "train", registry=reg, raw=True)
            >>> certificate = mixture.certificate()
            >>> certificate.add_payloads(mixture)
            >>> mixture.report(certificate).is_complete
            True
        """
        return Certificate(self.identity)

    def report(self, certificate: Certificate, epoch: int = 0, epochs: int = 1) -> MixtureReport:
        """What of each member was handed out how often, compared with what the mixture says.

        Args:
            certificate: with the digests of all that was handed out, on all hosts.
            epoch: the first epoch that it is about.
            epochs: how many.

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
            all 266 as the mixture says
            200 of mnist@1.0.0, 200 records: once 200
            66 of mnist, 200 records: never 134, once 66
        """
        times = [
            self._mixing.times(at, range(epoch, epoch + epochs)) for at in range(len(self._sources))
        ]
        return report_of(certificate, self.identity, self.members, times)
