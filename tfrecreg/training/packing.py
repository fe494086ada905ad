"""An order of rows: several short records make one row of a fixed number of values.

The records of an epoch, in the order that they have without packing, are taken so many at a time.
Each of them goes into the first row of these with room for it (first fit), or begins another one.
So the rows depend on seed and epoch, and not on hosts, which are dealt whole rows.

``docs/formats.md`` has the formula. It never changes after 1.0, since saved states depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, SupportsIndex, overload

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.errors import UsageError
from tfrecreg.text import safe
from tfrecreg.training.consumed import LENGTHS_HINT, integer_of, one_each
from tfrecreg.training.order import STATE_FORMAT, Order
from tfrecreg.training.permutation import RecordNumbers

WINDOW = 1024
"""Number of records whose rows are filled together, unless the caller says otherwise."""
_HINT = "pass what `order.state()` returned, for the same records"
_KEYS = ("by", "to", "window", "digest")


class Packs:
    """Records with their lengths, and the length of a row. Picklable.

    Args:
        lengths: of the records, whole numbers, shape (n,).
        by: what they are by: an expression, or that they are given.
        pack_to: the length of a row.
        window: number of records whose rows are filled together.
        name: of the records, for messages, escaped.

    Raises:
        UsageError: they are not such numbers, or a record is longer than a row.
    """

    def __init__(
        self, lengths: npt.ArrayLike, by: str, pack_to: int, window: int, name: str
    ) -> None:
        pack_to, window = integer_of("to", pack_to), integer_of("window", window)
        if pack_to < 1 or window < 1:
            raise UsageError(
                f"a row and `window` should be at least 1, found {pack_to} and {window}",
                hint='`packed_order(2048, by="tokens", seed=1)`',
            )
        numbers = one_each("lengths", lengths, LENGTHS_HINT)
        bad = np.flatnonzero(~((numbers >= 0) & (numbers == np.floor(numbers))))
        if len(bad):
            shown = "NULL" if np.isnan(numbers[bad[0]]) else f"{numbers[bad[0]]:g}"
            raise UsageError(
                f"the length of record {bad[0]} of `{name}` is {shown}, by `{safe(by, limit=200)}`",
                hint="lengths are whole numbers from 0; coalesce(x, 0) gives 0 for NULL",
            )
        long = np.flatnonzero(numbers > pack_to)
        if len(long):
            raise UsageError(
                f"record {long[0]} of `{name}` has a length of {numbers[long[0]]:g}, and a row "
                f"of {pack_to}; {len(long)} records are too long",
                hint="longer rows, or a `where` that leaves long records out",
            )
        self.by, self.to, self.window = by, pack_to, window
        self.lengths = numbers.astype(np.int64)
        """Of each record."""

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def digest(self) -> str:
        """Hex digest of the lengths of all records. States of orders hold it."""
        return blake3(self.lengths.astype("<i8").tobytes()).hexdigest(16)

    def said(self) -> dict[str, Any]:
        """What states say of them."""
        return {"by": self.by, "to": self.to, "window": self.window, "digest": self.digest}

    def rows(self, order: Order) -> tuple[RecordNumbers, RecordNumbers]:
        """The rows of the records of an order.

        Returns:
            The records, row by row, and where each row begins among them, and their number.
        """
        found, starts = np.empty(len(order), np.int64), [0]
        for first in range(0, len(order), self.window):
            records = order[first : first + self.window]
            rows = first_fit(self.lengths[records].tolist(), self.to)
            at = first
            for row in rows:
                found[at : at + len(row)] = records[row]
                at += len(row)
                starts.append(at)
        return found, np.array(starts, np.int64)


def first_fit(lengths: Sequence[int], most: int) -> list[list[int]]:
    """The places of lengths in rows of at most `most`, each in the first row with room for it.

    A tree over the room of all rows finds it in a logarithm of steps.
    """
    size = 1
    while size < len(lengths):
        size *= 2
    room = [most] * (2 * size)  # row r at size + r; a node has the larger of its two
    rows: list[list[int]] = []
    for place, length in enumerate(lengths):
        node = 1
        while node < size:
            node *= 2
            if room[node] < length:
                node += 1
        row = node - size
        if row == len(rows):
            rows.append([])
        rows[row].append(place)
        room[node] -= length
        node //= 2
        while node:
            larger = max(room[2 * node], room[2 * node + 1])
            if room[node] == larger:
                break
            room[node] = larger
            node //= 2
    return rows


class PackedOrder:
    """The rows that one host reads in an epoch, in its order. Picklable.

    `order[i]` is the numbers of the records of a row, `order[i:j]` a list of rows. See
    :meth:`tfrecreg.training.packed_orders.MakesRows.packed_order`, which makes them.

    Args:
        whole: the order of all records, of one host.
        packs: their lengths.
        host: number of the host, from 0.
        hosts: number of hosts that share the rows.
        drop_remainder: whether all hosts get the same number of rows.

    Raises:
        UsageError: `host` is not one of `hosts`, or there are other lengths than records.

    Example:
        >>> source = reg["mnist@1.0.0"].data_source("train")
        >>> order = source.packed_order(16, [1 + at % 8 for at in range(200)], seed=1)
        >>> order
        <PackedOrder of 64 of 64 rows of 16, seed 1, epoch 0, host 0 of 1>
        >>> sum(len(row) for row in order)
        200
    """

    def __init__(
        self,
        whole: Order,
        packs: Packs,
        *,
        host: int = 0,
        hosts: int = 1,
        drop_remainder: bool = False,
    ) -> None:
        if len(packs) != whole.records:
            raise UsageError(
                f"there are {len(packs)} lengths for {whole.records} records",
                hint="one number per record",
            )
        self._whole, self.packs = whole, packs
        self._records, self._starts = packs.rows(whole)
        self._order = Order(
            self.rows,
            whole.source,
            seed=None,
            epoch=whole.epoch,
            host=host,
            hosts=hosts,
            drop_remainder=drop_remainder,
            where=whole.where,
        )

    @property
    def rows(self) -> int:
        """How many rows all hosts have in an epoch."""
        return len(self._starts) - 1

    @property
    def seed(self) -> int | None:
        """Of the permutation of the records."""
        return self._whole.seed

    @property
    def epoch(self) -> int:
        """Of the permutation of the records."""
        return self._whole.epoch

    @property
    def host(self) -> int:
        """Number of this host."""
        return self._order.host

    @property
    def hosts(self) -> int:
        """Number of hosts that share the rows."""
        return self._order.hosts

    @property
    def drop_remainder(self) -> bool:
        """Whether all hosts get the same number of rows."""
        return self._order.drop_remainder

    @property
    def left(self) -> int:
        """How many rows all hosts share."""
        return self._order.left

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, place: SupportsIndex) -> RecordNumbers: ...
    @overload
    def __getitem__(self, place: slice) -> list[RecordNumbers]: ...
    def __getitem__(self, place: SupportsIndex | slice) -> RecordNumbers | list[RecordNumbers]:
        if isinstance(place, slice):
            return [self._row(row) for row in self._order[place].tolist()]
        return self._row(self._order[place])

    def _row(self, row: int) -> RecordNumbers:
        return self._records[self._starts[row] : self._starts[row + 1]]

    def __iter__(self) -> PackedIterator:
        return PackedIterator(self)

    def __repr__(self) -> str:
        return (
            f"<PackedOrder of {len(self)} of {self.rows} rows of {self.packs.to}, seed "
            f"{self.seed}, epoch {self.epoch}, host {self.host} of {self.hosts}>"
        )

    def state(self, done: int | None = None) -> dict[str, Any]:
        """The state of the epoch after this host consumed `done` rows of its share.

        Args:
            done: how many; None for all of them.

        Returns:
            A JSON object, for `DataSource.from_state`.

        Raises:
            UsageError: the share has fewer rows.
        """
        state = self._order.state(done)
        pack = {**self.packs.said(), "records": self._whole.records}
        return {**state, "format": PACKED_FORMAT, "pack": pack, "seed": self.seed}

    @classmethod
    def from_states(
        cls,
        states: Sequence[Mapping[str, Any]],
        whole: Order,
        packs: Packs,
        *,
        host: int = 0,
        hosts: int = 1,
    ) -> PackedOrder:
        """The rest of an epoch, shared among as many hosts as there are now.

        Args:
            states: of all hosts, in any order; or of one, if all have consumed as many rows.
            whole: the order of all records in that epoch, of one host.
            packs: their lengths.
            host: number of this host.
            hosts: number of hosts that share the rest.

        Raises:
            UsageError: the states belong to other records, lengths or epochs.
        """
        found = cls(whole, packs, host=host, hosts=hosts)
        for each in states:
            _expect_same(each, packs, whole)
        plain = [
            {key: value for key, value in each.items() if key != "pack"}
            | {"format": 1, "seed": None}
            for each in states
        ]
        found._order = Order.from_states(
            plain,
            records=found.rows,
            source=whole.source,
            where=whole.where,
            host=host,
            hosts=hosts,
        )
        return found


class PackedIterator(Iterator[RecordNumbers]):
    """The rows of an order one after the other, and the state after the last one."""

    def __init__(self, order: PackedOrder) -> None:
        self._order = order
        self.done = 0
        """How many rows were taken."""

    def __next__(self) -> RecordNumbers:
        if self.done >= len(self._order):
            raise StopIteration
        self.done += 1
        return self._order[self.done - 1]

    def state(self) -> dict[str, Any]:
        """The state of the epoch, where all rows that were taken count as consumed."""
        return self._order.state(self.done)


PACKED_FORMAT = STATE_FORMAT + 1
"""Format version of states with rows. A reader refuses a greater one."""


def pack_of_states(states: Sequence[Any]) -> Mapping[str, Any] | None:
    """What the first state says of its rows; None if it has none, or is not a state.

    Raises:
        UsageError: it says nothing that this version reads.
    """
    first = states[0] if states else None
    said = first.get("pack") if isinstance(first, Mapping) else None
    if said is None or not isinstance(first, Mapping) or first.get("format") != PACKED_FORMAT:
        return None  # a greater format is refused as any state's
    kinds = {"by": str, "to": int, "window": int, "digest": str, "records": int}
    seed, epoch = first.get("seed"), first.get("epoch")
    sound = isinstance(said, Mapping) and all(
        isinstance(said.get(key), kind) and not isinstance(said.get(key), bool)
        for key, kind in kinds.items()
    )
    if not sound or not (seed is None or isinstance(seed, int)) or not isinstance(epoch, int):
        raise UsageError(
            f"this is not the state of an order: its `pack` is {safe(repr(said), limit=100)}",
            hint=_HINT,
        )
    found: Mapping[str, Any] = said
    return found


def _expect_same(state: Mapping[str, Any], packs: Packs, whole: Order) -> None:
    there = pack_of_states([state]) or {}
    if there.get("records") != whole.records or state.get("source") != whole.source:
        raise UsageError(
            f"the state belongs to other records: to {there.get('records')} with the identity "
            f"`{safe(str(state.get('source')))}`, and these are {whole.records} with the identity "
            f"`{whole.source}`",
            hint="resume with the same version, split and files",
        )
    for key in _KEYS:
        if there.get(key) != packs.said()[key]:
            what = {"by": "`by`", "digest": "lengths with the digest", "to": "rows of"}
            raise UsageError(
                f"the state belongs to an order with {what.get(key, '`window`')} "
                f"`{safe(str(there.get(key)), limit=200)}`, and here is "
                f"`{safe(str(packs.said()[key]), limit=200)}`",
                hint="resume with the same records and lengths",
            )
    if (state.get("seed"), state.get("epoch")) != (whole.seed, whole.epoch):
        raise UsageError(
            "the states are of different epochs or runs: they differ in `seed` or `epoch`",
            hint="pass the states that all hosts saved at the same time",
        )
