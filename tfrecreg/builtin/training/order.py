"""The order of an epoch, its division among hosts, and the state of a training run.

An :class:`Order` is the share of one host. It is computed from a few integers and takes no memory
that grows with the records. Its state is a small JSON object; see ``docs/formats.md``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex, overload

import numpy as np

from tfrecreg.builtin.training.block_order import (
    GIVEN,
    Blocks,
    BlockShuffle,
    Draws,
    Permutation,
    RecordNumbers,
    Weights,
    expect_same_blocks,
)
from tfrecreg.builtin.training.certificate import Stage, expect_host, integer_of, joined, share
from tfrecreg.core.values.errors import UsageError, upgrade_hint
from tfrecreg.core.values.text import listed, safe

STATE_FORMAT = 4
"""Format version of states with blocks; those with weights have 2, others 1. A reader refuses a
greater one. Earlier versions wrote 3 for buckets of lengths and 5 for rows of records."""
_BLOCK = 1 << 12
"""Number of positions that an iteration computes at once."""
_MOST_HOSTS = 1 << 20
"""States with more hosts are rejected: memory grows with their number."""
_HINT = "pass what `order.state()` returned, for the same records"


class Order:
    """The numbers of the records that one host reads in an epoch, in its order. Picklable.

    `order[i]` is a number, `order[i:j]` an array of shape (j - i,). See
    :meth:`tfrecreg.builtin.training.data_source.DataSource.order`, which makes them.

    Args:
        records: how many records there are.
        source: identifies them, for states; see `DataSource.identity`.
        seed: of the permutation; None for the order of the records.
        epoch: of the permutation.
        host: number of the host, from 0.
        hosts: number of hosts that share the records.
        drop_remainder: whether all hosts get the same number; no host gets the remainder.
        before: stages consumed before this share was made.
        where: the condition that the records were selected by; None without one.
        weights: of the records; then each of `records` numbers is drawn with replacement. None for
            a permutation.
        blocks: that the records are shuffled by. None for a shuffle of all records.

    Raises:
        UsageError: `host` is not one of `hosts`; or there are weights or blocks and no seed, or
            both, or weights of other records.

    Example:
        >>> order = reg["mnist@1.0.0"].data_source("train").order(seed=1, epoch=3, hosts=2)
        >>> order
        <Order of 100 of 200 records, seed 1, epoch 3, host 0 of 2>
        >>> numbers = iter(order)
        >>> first = next(numbers)
        >>> numbers.state()["done"]
        1
    """

    def __init__(
        self,
        records: int,
        source: str,
        *,
        seed: int | None,
        epoch: int,
        host: int = 0,
        hosts: int = 1,
        drop_remainder: bool = False,
        before: tuple[Stage, ...] = (),
        where: str | None = None,
        weights: Weights | None = None,
        blocks: Blocks | None = None,
    ) -> None:
        host, hosts = integer_of("host", host), integer_of("hosts", hosts)
        seed = None if seed is None else integer_of("seed", seed)
        expect_host(host, hosts)
        if weights is not None and seed is None:
            raise UsageError("`weights` needs a seed", hint="`order(seed=1, weights=…)`")
        if weights is not None and len(weights) != records:
            raise UsageError(
                f"there are {len(weights)} weights for {records} records",
                hint="one number per record",
            )
        if blocks is not None and (seed is None or weights is not None):
            raise UsageError(
                "`block` needs a seed"
                if seed is None
                else "records are shuffled by blocks or drawn by weights, not both",
                hint="`order(seed=1, block=…)`, without `weights`",
            )
        self.records = records
        """How many records the whole source has."""
        self.source = source
        """Identity of these records."""
        self.seed = seed
        self.epoch = integer_of("epoch", epoch)
        self.host = host
        self.hosts = hosts
        self.drop_remainder = drop_remainder
        self.where = where
        self.weights = weights
        self.blocks = blocks
        self._before = before
        self.left = records - sum(stage.consumed for stage in before)
        """How many records all hosts share."""
        self._length = self.left // hosts if drop_remainder else share(self.left, host, hosts)
        self._drawn = self._draw()

    def _draw(self) -> Callable[[RecordNumbers], RecordNumbers] | None:
        """What makes records of places; None where they are the same. It has to be picklable."""
        if self.seed is None:
            return None
        if self.weights is not None:
            return Draws(self.weights, self.seed, self.epoch)
        if self.blocks is not None:
            return BlockShuffle(self.records, self.blocks, self.seed, self.epoch)
        return Permutation(self.records, self.seed, self.epoch)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> RecordNumbers: ...
    def __getitem__(self, place: SupportsIndex | slice) -> int | RecordNumbers:
        chosen = range(self._length)
        if isinstance(place, slice):
            part = chosen[place]
            return self._numbers(np.arange(part.start, part.stop, part.step, dtype=np.int64))
        at = chosen[operator.index(place)]
        return int(self._numbers(np.array([at], np.int64))[0])

    def __iter__(self) -> OrderIterator:
        return OrderIterator(self)

    def __repr__(self) -> str:
        return (
            f"<Order of {self._length} of {self.records} records, seed {self.seed}, "
            f"epoch {self.epoch}, host {self.host} of {self.hosts}>"
        )

    def _numbers(self, places: RecordNumbers) -> RecordNumbers:
        """The records at these places of the share."""
        found = places * self.hosts + self.host
        for stage in reversed(self._before):
            found = stage.places(found)
        return found if self._drawn is None else self._drawn(found)

    def of_epoch(self, epoch: int) -> Order:
        """The share of the same host in another epoch, from its beginning.

        Example:
            >>> order = reg["mnist@1.0.0"].data_source("train").order(seed=1, hosts=2)
            >>> order.of_epoch(4)
            <Order of 100 of 200 records, seed 1, epoch 4, host 0 of 2>
        """
        return type(self)(
            self.records,
            self.source,
            seed=self.seed,
            epoch=epoch,
            host=self.host,
            hosts=self.hosts,
            drop_remainder=self.drop_remainder,
            where=self.where,
            weights=self.weights,
            blocks=self.blocks,
        )

    def state(self, done: int | None = None) -> dict[str, Any]:
        """The state of the epoch after this host consumed `done` records of its share.

        Args:
            done: how many; None for all of them.

        Returns:
            A JSON object, for :meth:`from_states`.

        Raises:
            UsageError: the share has fewer records.
        """
        done = self._length if done is None else operator.index(done)
        if not 0 <= done <= self._length:
            raise UsageError(
                f"`done` should be a number from 0 to {self._length}, found {done}",
                hint="`done` counts records of this host in this epoch, not batches",
            )
        asked = {} if self.where is None else {"where": self.where}
        drawn: dict[str, Any] = {} if self.weights is None else {"weights": _said(self.weights)}
        if self.blocks is not None:
            drawn = {"block": self.blocks.said()}
        return {
            "format": {"block": 4, "weights": 2}.get(next(iter(drawn), ""), 1),
            "source": self.source,
            **asked,
            **drawn,
            "records": self.records,
            "seed": self.seed,
            "epoch": self.epoch,
            "drop_remainder": self.drop_remainder,
            "before": [list(stage.counts) for stage in self._before],
            "host": self.host,
            "hosts": self.hosts,
            "done": done,
        }

    @classmethod
    def from_states(
        cls,
        states: Sequence[Mapping[str, Any]],
        *,
        records: int,
        source: str,
        where: str | None = None,
        weights: Weights | None = None,
        host: int = 0,
        hosts: int = 1,
    ) -> Order:
        """The rest of an epoch, shared among as many hosts as there are now.

        Args:
            states: of all hosts, in any order; or of one, if all have consumed as many records.
            records: how many records there are.
            source: identity of these records.
            where: the condition that they were selected by; None without one.
            weights: that they are drawn by; None for a permutation.
            host: number of this host, from 0.
            hosts: number of hosts that share the rest.

        Raises:
            UsageError: there are no states, or they belong to other records or epochs.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train")
            >>> states = [source.order(seed=1, host=host, hosts=2).state(30) for host in range(2)]
            >>> rest = tr.Order.from_states(states, records=200, source=source.identity)
            >>> len(rest)
            140
        """
        checked = [_checked(state, records, source, where) for state in states]
        blocks = Blocks.of_states(checked)
        for each in checked:
            expect_same_blocks(each.get("block"), blocks)
            _expect_same_weights(each.get("weights"), weights)
        if not checked:
            raise UsageError("there is no state to resume from", hint=_HINT)
        first = checked[0]
        counts = _counts(checked)
        before = tuple(Stage(each) for each in first["before"])
        left = records - sum(stage.consumed for stage in before)
        if first["drop_remainder"]:
            limits = [left // first["hosts"]] * first["hosts"]
        else:
            limits = [share(left, each, first["hosts"]) for each in range(first["hosts"])]
        counts = [min(count, limit) for count, limit in zip(counts, limits, strict=True)]
        return cls(
            records,
            source,
            seed=first["seed"],
            epoch=first["epoch"],
            host=host,
            hosts=hosts,
            drop_remainder=first["drop_remainder"],
            before=joined(before, Stage(counts)),
            where=where,
            weights=weights,
            blocks=blocks,
        )


class OrderIterator(Iterator[int]):
    """The numbers of an order one after the other, and the state after the last one."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._block: list[int] = []
        self.done = 0
        """How many numbers were taken."""

    def __next__(self) -> int:
        at = self.done % _BLOCK
        if at == 0:
            self._block = self._order[self.done : self.done + _BLOCK].tolist()
        if at >= len(self._block):
            raise StopIteration
        self.done += 1
        return self._block[at]

    def state(self) -> dict[str, Any]:
        """The state of the epoch, where all numbers that were taken count as consumed."""
        return self._order.state(self.done)


_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "format": int,
    "source": str,
    "records": int,
    "seed": (int, type(None)),
    "epoch": int,
    "drop_remainder": bool,
    "before": list,
    "host": int,
    "hosts": int,
    "done": int,
}
_COMMON = ("seed", "epoch", "drop_remainder", "before", "hosts")


def _checked(state: Any, records: int, source: str, where: str | None) -> Mapping[str, Any]:
    version = state.get("format") if isinstance(state, Mapping) else None
    for name, what in (("buckets", "`bucket_by`"), ("pack", "rows")):
        if isinstance(state, Mapping) and name in state:
            raise UsageError(
                f"the state belongs to an order with {what}, which tfrecreg no longer has",
                hint="resume with the version that saved it, or begin the epoch again",
            )
    if isinstance(version, int) and version > STATE_FORMAT:
        raise UsageError(
            f"the state has format {version}, this tfrecreg knows {STATE_FORMAT}",
            hint=upgrade_hint(),
        )
    fault = "it is not a JSON object" if version is None else _fault(state)
    if fault:
        raise UsageError(f"this is not the state of an order: {fault}", hint=_HINT)
    if state.get("where") != where:
        raise UsageError(
            f"the state belongs to {_asked(state.get('where'))}, and these are {_asked(where)}",
            hint="resume with the same `where`",
        )
    if (state["source"], state["records"]) != (source, records):
        raise UsageError(
            f"the state belongs to other records: to {state['records']} with the identity "
            f"`{safe(state['source'])}`, and these are {records} with the identity `{source}`",
            hint="resume with the same version, split and files",
        )
    checked: Mapping[str, Any] = state
    return checked


def weights_of_states(states: Sequence[Any]) -> str | None:
    """The expression of the weights of the first state; None if it has none, or is not a state."""
    first = states[0] if states else None
    said = first.get("weights") if isinstance(first, Mapping) else None
    by = said.get("by") if isinstance(said, Mapping) else None
    if by == GIVEN:
        raise UsageError(
            "the state belongs to an order whose weights were given as numbers",
            hint="pass them again: `from_state(state, weights=…)`",
        )
    return by if isinstance(by, str) else None


def _said(weights: Weights) -> dict[str, str]:
    return {"by": weights.by, "digest": weights.digest}


def _expect_same_weights(found: object, weights: Weights | None) -> None:
    said = None if weights is None else _said(weights)
    if found == said:
        return
    by = found.get("by") if isinstance(found, Mapping) else None
    there = "no weights" if found is None else f"the weights `{safe(str(by), limit=200)}`"
    here = "none" if weights is None else f"`{safe(weights.by, limit=200)}`"
    other = ", which have changed" if weights is not None and by == weights.by else ""
    raise UsageError(
        f"the state belongs to an order with {there}, and here are {here}{other}",
        hint="resume with the same records and weights",
    )


def _asked(where: object) -> str:
    if where is None:
        return "the records of no condition"
    return f"the records with the condition `{safe(str(where), limit=200)}`"


def _fault(state: Mapping[str, Any]) -> str:
    for name, kind in _FIELDS.items():
        value = state.get(name)
        is_bool = isinstance(value, bool)
        if name not in state or not isinstance(value, kind) or is_bool != (kind is bool):
            return f"its `{name}` is {safe(repr(value), limit=100)}"
    counts: list[Any] = [[state["done"]], *state["before"]]
    for each in counts:
        if not isinstance(each, list) or not each or not all(map(_is_count, each)):
            return f"it counts {safe(repr(each), limit=100)}"
    if sum(map(sum, state["before"])) > state["records"]:
        return "it counts more records than there are"
    if not 0 <= state["host"] < state["hosts"] <= _MOST_HOSTS:
        return f"it is of host {state['host']} of {state['hosts']}"
    return ""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _counts(states: Sequence[Mapping[str, Any]]) -> list[int]:
    """The number of records that each host has consumed."""
    first = states[0]
    hosts = first["hosts"]
    if len(states) == 1:
        return [first["done"]] * hosts
    unequal = [name for name in _COMMON if any(each[name] != first[name] for each in states)]
    if unequal:
        raise UsageError(
            f"the states are of different epochs or runs: they differ in {listed(unequal)}",
            hint="pass the states that all hosts saved at the same time",
        )
    found = {each["host"]: each["done"] for each in states}
    if len(found) != len(states) or len(states) != hosts:
        raise UsageError(
            f"expected the state of each of {hosts} hosts, found those of "
            f"{listed(str(each['host']) for each in states)}",
            hint="pass the states of all hosts; or that of one, if all consumed as many records",
        )
    return [found[each] for each in range(hosts)]
