"""The order of an epoch, its division among hosts, and the state of a training run.

An :class:`Order` computes the share of one host from a few integers: see ``docs/formats.md``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any, SupportsIndex, TypeAlias, overload

import msgspec
import numpy as np

from tfrecreg.builtin.training.block_order import (
    GIVEN,
    Blocks,
    BlockShuffle,
    Draws,
    Permutation,
    RecordNumbers,
    Weights,
)
from tfrecreg.builtin.training.certificate import Stage, expect_host, integer_of, joined, share
from tfrecreg.core.values.errors import UsageError, upgrade_hint
from tfrecreg.core.values.text import listed

_FORMATS = (1, 2, 4)
"""Format versions of states: 2 with weights, 4 with blocks. Earlier versions wrote 3 for buckets of
lengths and 5 for rows of records."""
_BLOCK = 1 << 12
"""Number of positions that an iteration computes at once."""
_MOST_HOSTS = 1 << 20
"""States with more hosts are refused, because memory grows with the number of hosts."""


@dataclass(repr=False, eq=False)
class Order:
    """The numbers of one host's records in an epoch, in the order of reading. Picklable.

    `order[i]` is a number, and `order[i:j]` is an array of shape (j - i,). Made by
    :meth:`tfrecreg.builtin.training.data_source.DataSource.order`.

    Example:
        >>> order = reg["mnist@1.0.0"].data_source("train").order(seed=1, epoch=3, hosts=2)
        >>> order
        <Order of 100 of 200 records, seed 1, epoch 3, host 0 of 2>
        >>> order.state(done=1)["done"]
        1
    """

    records: int
    """How many records the whole source has."""
    source: str
    """The identity of these records."""
    _: KW_ONLY
    seed: int | None
    epoch: int
    host: int = 0
    hosts: int = 1
    drop_remainder: bool = False
    before: tuple[Stage, ...] = ()
    """What earlier hosts consumed of the epoch."""
    where: str | None = None
    weights: Weights | None = None
    blocks: Blocks | None = None
    mixture: Mapping[str, Any] | None = None
    """The description of the mixture in states; None for an order of a source's records."""

    def __post_init__(self) -> None:
        self.host, self.hosts = integer_of("host", self.host), integer_of("hosts", self.hosts)
        self.seed = None if self.seed is None else integer_of("seed", self.seed)
        expect_host(self.host, self.hosts)
        if self.weights is not None and len(self.weights) != self.records:
            raise UsageError(f"there are {len(self.weights)} weights for {self.records} records")
        if self.seed is None and (self.weights is not None or self.blocks is not None):
            raise UsageError("`weights` and `block` need a seed")
        if self.blocks is not None and self.weights is not None:
            raise UsageError("`weights` and `block` exclude each other")
        self.epoch = integer_of("epoch", self.epoch)
        if self.mixture is not None and self.epoch < 0:
            raise UsageError(f"`epoch` of a mixture should be 0 or more, found {self.epoch}")
        self.left = self.records - sum(stage.consumed for stage in self.before)
        """How many records all hosts together still have to read."""
        self._length = share(self.left, self.host, self.hosts, self.drop_remainder)
        self._drawn = self._draw()

    def _draw(self) -> Callable[[RecordNumbers], RecordNumbers] | None:
        """A picklable function from places to record numbers. None if these numbers equal the
        places."""
        if self.mixture is not None:
            return partial(operator.add, self.epoch * self.records)
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

    def __iter__(self) -> Iterator[int]:
        for first in range(0, self._length, _BLOCK):
            yield from self[first : first + _BLOCK].tolist()

    def __repr__(self) -> str:
        return (
            f"<Order of {self._length} of {self.records} records, seed {self.seed}, "
            f"epoch {self.epoch}, host {self.host} of {self.hosts}>"
        )

    def _numbers(self, places: RecordNumbers) -> RecordNumbers:
        """The record numbers at these places in this host's share."""
        found = places * self.hosts + self.host
        for stage in reversed(self.before):
            found = stage.places(found)
        return found if self._drawn is None else self._drawn(found)

    def of_epoch(self, epoch: int) -> Order:
        """The share of the same host in another epoch, from the beginning of that epoch.

        Example:
            >>> order = reg["mnist@1.0.0"].data_source("train").order(seed=1, hosts=2)
            >>> order.of_epoch(4)
            <Order of 100 of 200 records, seed 1, epoch 4, host 0 of 2>
        """
        return replace(self, epoch=epoch, before=())

    def state(self, done: int | None = None) -> dict[str, Any]:
        """The state of the epoch once this host has consumed a part of its share.

        Args:
            done: number of consumed records. None means the whole share.

        Returns:
            A JSON object, for :meth:`DataSource.from_state`.

        Raises:
            UsageError: the share has fewer records.
        """
        done = self._length if done is None else operator.index(done)
        if not 0 <= done <= self._length:
            raise UsageError(f"`done` should be a number from 0 to {self._length}, found {done}")
        asked = {} if self.where is None else {"where": self.where}
        drawn: dict[str, Any] = {} if self.weights is None else {"weights": self.weights.said}
        if self.blocks is not None:
            drawn = {"block": asdict(self.blocks)}
        return {
            "format": {"block": 4, "weights": 2}.get(next(iter(drawn), ""), 1),
            "source": self.source,
            **asked,
            **drawn,
            "records": self.records,
            "seed": self.seed,
            "epoch": self.epoch,
            "drop_remainder": self.drop_remainder,
            "before": [list(stage.counts) for stage in self.before],
            "host": self.host,
            "hosts": self.hosts,
            "done": done,
            **({} if self.mixture is None else {"mixture": self.mixture}),
        }

    def resumed(self, states: Sequence[Mapping[str, Any]]) -> Order:
        """The rest of an interrupted epoch, for the host of this order.

        `states` describe how far the epoch was read.

        Example:
            >>> order = reg["mnist@1.0.0"].data_source("train").order(seed=1)
            >>> len(order.resumed([order.state(50)]))
            150
        """
        if not states:
            raise UsageError("there is no state to resume from")
        here = {"where": self.where, "source": self.source, "records": self.records}
        weights = None if self.weights is None else self.weights.said
        checked = list(map(_checked, states))
        for each in states:
            if self.mixture is not None and each["source"] != self.source:
                expect_same_order(_mapping(each.get("mixture")), self.mixture)
            expect_same_order(each, {**here, "weights": weights})
            expect_same_order(each, {name: states[0].get(name) for name in _COMMON})
        first = checked[0]
        before = tuple(map(Stage, first.before))
        left = self.records - sum(stage.consumed for stage in before)
        counts = [
            min(count, share(left, each, first.hosts, first.drop_remainder))
            for each, count in enumerate(_counts(checked))
        ]
        return replace(
            self,
            seed=first.seed,
            epoch=first.epoch,
            drop_remainder=first.drop_remainder,
            before=joined(before, Stage(counts)),
            blocks=first.block,
        )


_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_COMMON = ("seed", "epoch", "drop_remainder", "before", "hosts", "block")


class _State(msgspec.Struct):
    source: str
    records: _Count
    seed: int | None
    epoch: int
    drop_remainder: bool
    before: list[Annotated[list[_Count], msgspec.Meta(min_length=1)]]
    host: _Count
    hosts: Annotated[int, msgspec.Meta(le=_MOST_HOSTS)]
    done: _Count
    block: Blocks | None = None


def _checked(state: Any) -> _State:
    version = state.get("format") if isinstance(state, Mapping) else None
    if type(version) is int and version not in _FORMATS:
        raise UsageError(
            f"the state has format {version}, but this tfrecreg reads only 1, 2 and 4",
            hint=f"resume with the version that saved it: {upgrade_hint()}",
        )
    try:
        if type(version) is not int:
            raise ValueError("it is not a JSON object with a `format`")
        found = msgspec.convert(state, _State)
        if sum(map(sum, found.before)) > found.records:
            raise ValueError("it counts more records than there are")
        if found.host >= found.hosts:
            raise ValueError(f"it belongs to host {found.host} of {found.hosts}")
    except ValueError as error:
        raise UsageError(f"this is not the state of an order: {error}") from None
    return found


def expect_same_order(state: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse a state if its values differ from those of `here`."""
    for name, value in here.items():
        if state.get(name) != value:
            raise UsageError(
                f"the state belongs to another order: its `{name}` is `{state.get(name)}`, but "
                f"here it is `{value}`"
            )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def weights_of_states(states: Sequence[Any]) -> str | None:
    """The expression of the weights in the first state; None without weights."""
    by = _mapping(_mapping(states[0] if states else None).get("weights")).get("by")
    if by == GIVEN:
        raise UsageError(
            "the state belongs to an order whose weights were given as numbers: pass them again, "
            "`from_state(state, weights=…)`"
        )
    return by if isinstance(by, str) else None


def _counts(states: Sequence[_State]) -> list[int]:
    """The number of records that each host has consumed."""
    hosts = states[0].hosts
    if len(states) == 1:
        return [states[0].done] * hosts
    found = {each.host: each.done for each in states}
    if len(found) != len(states) or len(states) != hosts:
        raise UsageError(
            f"expected one state from each of {hosts} hosts, found states of the hosts "
            f"{listed(str(each.host) for each in states)}"
        )
    return [found[each] for each in range(hosts)]
