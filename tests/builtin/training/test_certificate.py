"""What an epoch handed out is compared with what it should have: losses and doubles are planted."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests_support import flip

import tfrecreg
from tfrecreg.builtin.training.certificate import Certificate, RecordName
from tfrecreg.core.values.errors import UsageError

from .conftest import Write, payload

NAME = "0" * 32


def digest(number: int) -> bytes:
    """Ends in zeros, which NumPy's strings would drop."""
    return number.to_bytes(2, "big") + bytes(14)


def rows(numbers: list[int]) -> Any:
    return np.frombuffer(b"".join(map(digest, numbers)), np.uint8).reshape(-1, 16)


def named(position: int) -> RecordName:
    return RecordName("x", position, f"key-{position}")


@given(
    source=st.lists(st.integers(0, 30), max_size=40),
    handed_out=st.lists(st.integers(0, 40), max_size=60),
)
def test_counts_are_those_of_multisets(source: list[int], handed_out: list[int]) -> None:
    certificate = Certificate(NAME)
    certificate.add(rows(handed_out))
    found = certificate._report("x", NAME, rows(source), named)
    wanted, given_ = Counter(source), Counter(handed_out)
    assert found.missed == (wanted - given_).total()
    assert found.foreign == sum(n for each, n in given_.items() if each not in wanted)
    assert found.doubled == sum(
        max(0, n - wanted[each]) for each, n in given_.items() if each in wanted
    )
    assert found.is_complete == (wanted == given_)
    assert (found.expected, found.handed_out) == (len(source), len(handed_out))
    lost = Counter(source[each.record] for each in found.missed_records)
    assert lost <= wanted - given_
    assert len(found.missed_records) == min(20, found.missed)


@given(
    numbers=st.lists(st.integers(0, 99), max_size=50),
    parts=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_order_and_parts_have_no_say(numbers: list[int], parts: int, seed: int) -> None:
    shuffled = random.Random(seed).sample(numbers, len(numbers))
    whole = Certificate(NAME)
    for part in range(parts):
        one = Certificate(NAME)
        one.add(rows(shuffled[part::parts]))
        whole.merge(Certificate.from_bytes(one.to_bytes()))
    assert len(whole) == len(numbers)
    assert whole._report("x", NAME, rows(numbers), named).is_complete


@pytest.fixture
def source(digits_original: Path) -> tfrecreg.DataSource:
    return tfrecreg.data_source("digits@1.0.0", "train", registry=digits_original, with_digest=True)


def certified(source: tfrecreg.DataSource, numbers: list[int]) -> Certificate:
    certificate = source.certificate()
    certificate.add([each["record/digest"] for each in source.__getitems__(numbers)])
    return certificate


def test_what_was_lost_and_doubled_is_named(source: tfrecreg.DataSource) -> None:
    numbers = [*range(200), 150, 7, 7]
    numbers.remove(13)
    certificate = certified(source, numbers)
    certificate.add_payloads([payload(1)])
    report = source.report(certificate)
    assert (report.missed, report.doubled, report.foreign) == (1, 3, 1)
    keys = [source.key(13)], [source.key(7), source.key(150)]
    assert [each.key for each in report.missed_records] == keys[0]
    assert [each.key for each in report.doubled_records] == keys[1]
    first, *others = str(report).splitlines()
    assert first == (
        "203 handed out for 200 records of digits@1.0.0: 1 missed, 3 doubled, 1 foreign"
    )
    shard = report.missed_records[0].shard
    assert others[0] == f"missed: record 13 of `{shard}`, key `{source.key(13)}`"
    assert [each.partition(":")[0] for each in others] == ["missed", "doubled", "doubled"]


def test_parts_of_splits_have_certificates(source: tfrecreg.DataSource) -> None:
    for part in (source[20:140:3], source[::-1], *source.even_splits(3)):
        assert part.report(certified(part, list(part.order(1)))).is_complete
    with pytest.raises(UsageError, match="is not about the records of"):
        source.report(source[1:].certificate())
    with pytest.raises(UsageError, match="are about different records"):
        source.certificate().merge(source[1:].certificate())


def test_a_certificate_is_not_merged_with_itself(source: tfrecreg.DataSource) -> None:
    certificate = certified(source, [0, 1])
    with pytest.raises(UsageError, match="cannot be merged with itself"):
        certificate.merge(certificate)
    assert len(certificate) == 2


def test_files_without_an_index_are_read_again(numbers: Path) -> None:
    source = tfrecreg.data_source(numbers, "train+test", raw=True)
    certificate = source.certificate()
    certificate.add_payloads(source[:105])
    report = source.report(certificate)
    assert (report.missed, report.doubled, report.foreign) == (5, 0, 0)
    assert [each.record for each in report.missed_records] == [5, 6, 7, 8, 9]
    assert all(each.key is None for each in report.missed_records)


def test_a_skipped_record_is_named(digits_registry: Path) -> None:
    path = digits_registry / "data/digits/digits-train.tfrecord-00000-of-00002"
    flip(path, int(tfrecreg.Records(path).offsets[12]) + 20)
    source = tfrecreg.data_source(
        "digits",
        "train",
        registry=digits_registry,
        with_digest=True,
        damaged="skip",
        max_damaged=1,
    )
    report = source.report(certified(source, list(source.order(1))))
    assert (report.missed, report.doubled, report.foreign) == (1, 0, 0)
    assert report.missed_records == (RecordName(str(path), 12, source.key(12)),)


def test_equal_records_are_expected_as_often_as_they_are_there(write: Write) -> None:
    path = write("x.tfrecord", [payload(1), payload(2), payload(1)])
    source = tfrecreg.data_source(path, with_digest=True)
    assert source.report(certified(source, [0, 1, 2])).is_complete
    assert source.report(certified(source, [0, 1, 0])).is_complete
    report = source.report(certified(source, [0, 1]))
    assert (report.missed, len(report.missed_records)) == (1, 1)


def test_no_records_at_all(write: Write) -> None:
    assert len(Certificate(NAME)) == 0
    Certificate(NAME).add([])
    source = tfrecreg.data_source(write("x.tfrecord", []))
    assert source.report(source.certificate()).is_complete


@pytest.mark.parametrize("data", [b"", b"TFRCERT1", b"x" * 56, Certificate(NAME).to_bytes() + b"x"])
def test_bytes_that_are_no_certificate(data: bytes) -> None:
    with pytest.raises(UsageError, match="are not a certificate"):
        Certificate.from_bytes(data)


@pytest.mark.parametrize(("shards", "hosts", "zipped"), [(1, 3, True), (2, 2, False), (7, 5, True)])
def test_hosts_over_shards(write: Write, shards: int, hosts: int, zipped: bool) -> None:
    for shard in range(shards):
        part = [payload(number) for number in range(shard, 101, shards)]
        path = write(f"s/train-{shard:05d}-of-{shards:05d}.tfrecord", part, zipped=zipped)
    source = tfrecreg.data_source(path.parent, with_digest=True)
    certificate = source.certificate()
    for host in range(hosts):
        certificate.merge(certified(source, list(source.order(6, host=host, hosts=hosts))))
    assert source.report(certificate).is_complete
