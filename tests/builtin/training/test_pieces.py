"""Pieces of shards, and the shares of hosts."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tfrecreg.builtin.training.arrays.element_blocks import RecordRun, find_pieces, host_numbers
from tfrecreg.core.values.errors import UsageError

STARTS = [0, 4, 4, 10, 13]


def test_ranges_are_cut_at_the_borders_of_shards() -> None:
    assert find_pieces([range(2, 11)], STARTS) == [
        RecordRun(0, 2, 2),
        RecordRun(2, 0, 6),
        RecordRun(3, 0, 1),
    ]
    assert find_pieces([range(5, 7), range(3)], STARTS) == [RecordRun(2, 1, 2), RecordRun(0, 0, 3)]
    assert find_pieces([range(4, 4)], STARTS) == []


def test_hosts_that_divide_the_shards_get_whole_ones() -> None:
    shares = [host_numbers([range(13)], STARTS, host, 3, "x") for host in range(3)]
    assert shares == [[range(4)], [range(4, 10)], [range(10, 13)]]


@pytest.mark.parametrize("hosts", [2, 4, 5, 13])
def test_other_hosts_get_records_that_follow_each_other(hosts: int) -> None:
    shares = [host_numbers([range(13)], STARTS, host, hosts, "x") for host in range(hosts)]
    numbers = [number for share in shares for each in share for number in each]
    assert numbers == list(range(13))
    sizes = [sum(map(len, share)) for share in shares]
    assert all(before - after in (0, 1) for before, after in pairwise(sizes))


def test_nothing_can_be_shared_by_one_host_only() -> None:
    assert host_numbers([], STARTS, 0, 1, "x") == []
    with pytest.raises(UsageError, match="2 hosts cannot share 0 records of `x`"):
        host_numbers([], STARTS, 0, 2, "x")
