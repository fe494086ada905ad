"""How many shards there are to be, and which records go into each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.values.shards import (
    ShardPolicy,
    bounds,
    shard_count,
)

MIB, GIB = 1 << 20, 1 << 30
COUNTS = st.integers(0, 5_000_000)
SIZES = st.integers(0, 1 << 44)


POLICIES = st.one_of(
    st.just(ShardPolicy()),
    st.builds(ShardPolicy, shards=st.integers(1, 10_000)),
    st.builds(ShardPolicy, shard_size=st.integers(1, 1 << 34)),
    st.builds(ShardPolicy, records_per_shard=st.integers(1, 10_000)),
    st.builds(ShardPolicy, hosts=st.integers(1, 2000)),
)


class TestShardCount:
    @given(POLICIES, COUNTS, SIZES)
    def test_is_at_least_one_and_never_more_than_the_records(
        self, policy: ShardPolicy, records: int, size: int
    ) -> None:
        assert 1 <= shard_count(policy, records, size) <= max(1, records)

    @pytest.mark.parametrize(
        ("records", "total", "expected"),
        [
            (0, 0, 1),
            (10_000, 100 * MIB, 1),  # 128 MiB is the least that makes two
            (10_000, 128 * MIB - 1, 1),
            (10_000, 128 * MIB, 2),
            (10_000, 255 * MIB, 2),
            (10_000, 256 * MIB, 4),
            (10_000, GIB, 16),
            (10_000, 10 * GIB, 128),
            (3, 10 * GIB, 10),  # TFDS says 1: a shard of 10 GiB
            (20, 10 * GIB, 16),
            (10_000, 64 * GIB, 1024),
            (1023, 64 * GIB, 512),
            (10_000, 1024 * GIB, 1024),
            (10_000, 1025 * GIB, 2048),
            (10_000, 2048 * GIB, 2048),
            (10_000, 2049 * GIB, 3072),
            (2000, 2049 * GIB, 2000),
        ],
    )
    def test_default_is_the_rule_of_tfds(self, records: int, total: int, expected: int) -> None:
        count = shard_count(ShardPolicy(), records, total - 16 * records)
        assert count == min(expected, max(1, records))

    @given(st.integers(1, 1 << 32), st.integers(1, 100_000), SIZES)
    def test_shard_size_is_kept_by_as_few_as_can(
        self, wanted: int, records: int, size: int
    ) -> None:
        count = shard_count(ShardPolicy(shard_size=wanted), records, size)
        total = size + 16 * records
        assert total <= count * wanted or count == records
        assert count == 1 or total > (count - 1) * wanted

    @given(st.integers(1, 10_000), st.integers(1, 100_000))
    def test_records_per_shard_are_never_exceeded(self, most: int, records: int) -> None:
        count = shard_count(ShardPolicy(records_per_shard=most), records, 0)
        assert max(stop - start for start, stop in bounds(records, count)) <= most
        assert count == 1 or records > (count - 1) * most

    @pytest.mark.parametrize(
        ("hosts", "records", "total", "expected"),
        [
            (1, 100_000, 100_000_000, 10),  # 10 of 10 MB
            (1, 100_000, 99_999_999, 9),
            (4, 100_000, 1_000_000_000, 40),
            (4, 100_000, 200_000_000, 20),  # 5 a host
            (4, 100_000, 100_000_000, 8),
            (4, 100_000, 79_999_999, 4),
            (4, 100_000, 10_000_000, 4),  # one a host, however small
            (4, 15, 1_000_000_000, 12),
            (4, 3, 1_000_000_000, 3),
            (4, 0, 0, 1),
            (2, 1_000_000, 100 * GIB, 100),  # 10 a host would be 5 GiB each
            (2, 1_000_000, 100 * GIB + 1, 102),
            (3, 1_000_000, 30 * GIB, 30),
        ],
    )
    def test_hosts_get_what_tensorflow_advises(
        self, hosts: int, records: int, total: int, expected: int
    ) -> None:
        assert shard_count(ShardPolicy(hosts=hosts), records, total - 16 * records) == expected


class TestBounds:
    @given(st.integers(0, 5000), st.integers(1, 600))
    def test_are_contiguous_and_balanced(self, records: int, shards: int) -> None:
        found = list(bounds(records, shards))
        assert len(found) == shards
        assert [start for start, _ in found] == [0, *[stop for _, stop in found[:-1]]]
        assert found[-1][1] == records
        sizes = {stop - start for start, stop in found}
        assert max(sizes) - min(sizes) <= 1

    def test_are_the_ones_written_down(self) -> None:
        assert list(bounds(10, 4)) == [(0, 2), (2, 5), (5, 7), (7, 10)]
