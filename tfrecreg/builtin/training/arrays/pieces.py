"""Runs of records inside shards, and the share of one host: for readers that read in sequence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.orders.consumed import expect_enough, expect_host
from tfrecreg.builtin.training.selection import Selection
from tfrecreg.core.registry.shardset.split_words import even_parts


class RecordRun(NamedTuple):
    """Records of one shard that follow each other."""

    shard: int
    """The place of the shard in the list of shards."""
    first: int
    """The first record, numbered in its shard."""
    records: int
    """How many, at least one."""


def find_pieces(numbers: Iterable[range], starts: Sequence[int]) -> list[RecordRun]:
    """Cut ranges of numbers at the borders of shards."""
    found: list[RecordRun] = []
    for wanted in numbers:
        for shard, low in enumerate(starts[:-1]):
            first, stop = max(wanted.start, low), min(wanted.stop, starts[shard + 1])
            if first < stop:
                found.append(RecordRun(shard, first - low, stop - first))
    return found


def host_numbers(
    numbers: Sequence[range], starts: Sequence[int], host: int, hosts: int, name: str
) -> list[range]:
    """The share of one host: whole shards if the hosts divide their number, else records.

    The shares of all hosts have no record in common, and together they have all.
    """
    expect_host(host, hosts)
    total = sum(map(len, numbers))
    expect_enough(total, hosts, name)
    pieces = find_pieces(numbers, starts)
    if len(pieces) % hosts == 0:
        firsts = [(starts[piece.shard] + piece.first, piece.records) for piece in pieces]
        return [range(first, first + records) for first, records in firsts[host::hosts]]
    part = even_parts(range(total), hosts, drop_remainder=False)[host]
    return list(Selection(numbers).part(slice(part.start, part.stop)).ranges)


def host_part(
    numbers: npt.NDArray[np.int64], host: int, hosts: int, name: str
) -> npt.NDArray[np.int64]:
    """The share of one host of a list of records, as :func:`host_numbers` gives those of ranges."""
    expect_host(host, hosts)
    expect_enough(len(numbers), hosts, name)
    part = even_parts(range(len(numbers)), hosts, drop_remainder=False)[host]
    return numbers[part.start : part.stop]
