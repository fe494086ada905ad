"""The records that a condition selects are a sequence with its own length, order and state."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import tfrecreg
from tfrecreg.builtin.training.data_source import DataSource
from tfrecreg.builtin.training.splits import splits_of
from tfrecreg.core.registry.find import find_built
from tfrecreg.core.values.errors import RefusedError, UsageError

from .conftest import Write, payload

pytest.importorskip("duckdb", reason="the extra `query` is not installed")


def found(source: DataSource) -> list[int]:
    return [int(element["number"][0]) for element in source]


ODD = list(range(1, 100, 2))


def test_only_selected_records_are_in_the_sequence(numbers: Path) -> None:
    source = tfrecreg.data_source(numbers, "train", where=" number % 2 = 1 ")
    assert (len(source), source.where) == (50, "number % 2 = 1")
    assert found(source) == ODD
    assert found(source[::-1]) == ODD[::-1]
    assert found(source[40:]) == ODD[40:]
    assert found(source[-3::-10]) == ODD[-3::-10]
    assert int(source[20]["number"][0]) == 41
    assert [int(each["number"][0]) for each in source.__getitems__([49, 0, -2])] == [99, 1, 97]
    assert repr(source) == f"<DataSource 50 records of {numbers} where number % 2 = 1>"
    with pytest.raises(IndexError):
        source[50]


def test_a_slice_of_a_split_comes_before_the_condition(numbers: Path) -> None:
    source = tfrecreg.data_source(numbers, "train[:10]", where="number % 2 = 1")
    assert found(source) == [1, 3, 5, 7, 9]
    source = tfrecreg.data_source(numbers, "test+train[90%:]", where="number % 2 = 1")
    assert found(source) == [501, 503, 505, 507, 509, 91, 93, 95, 97, 99]
    assert [found(part) for part in source.even_splits(2)] == [
        [501, 503, 505, 91, 93, 95],
        [507, 509, 97, 99],
    ]
    first, second = tfrecreg.data_source(numbers, ["train", "test"], where="number >= 99")
    assert (found(first), found(second)) == ([99], list(range(500, 510)))


def test_subqueries_see_all_splits(numbers: Path) -> None:
    where = "number + 500 IN (SELECT number FROM records WHERE split = 'test' AND number > 507)"
    assert found(tfrecreg.data_source(numbers, "train", where=where)) == [8, 9]


def test_a_condition_that_nothing_meets_selects_nothing(numbers: Path) -> None:
    source = tfrecreg.data_source(numbers, "train", where="number > 1000")
    assert (len(source), found(source), len(source[:])) == (0, [], 0)
    assert list(source.order(seed=1)) == []


def test_a_copy_in_another_process_is_the_same(numbers: Path) -> None:
    source = tfrecreg.data_source(numbers, "train", where="number % 2 = 1")[5:]
    copy = pickle.loads(pickle.dumps(source))
    assert found(copy) == ODD[5:]
    assert (copy.identity, copy.where) == (source.identity, source.where)


@pytest.mark.parametrize("hosts", [1, 5])
def test_every_selected_record_comes_once_over_hosts_that_stop_and_resume(
    numbers: Path, hosts: int
) -> None:
    def opened() -> DataSource:
        return tfrecreg.data_source(
            numbers, "train", where="number % 3 = 0 OR number > 80", with_digest=True
        )

    certificates, states = [], []
    for host in range(hosts):
        source = opened()
        order = source.order(seed=3, epoch=1, host=host, hosts=hosts)
        taken = 2 + host
        certificate = source.certificate()
        certificate.add(
            [each["record/digest"] for each in source.__getitems__(order[:taken].tolist())]
        )
        certificates.append(certificate.to_bytes())
        states.append(json.loads(json.dumps(order.state(taken))))
    assert {state["where"] for state in states} == {"number % 3 = 0 OR number > 80"}
    later = 3
    for host in range(later):
        source = opened()
        rest = source.from_state(states, host=host, hosts=later)
        certificate = source.certificate()
        certificate.add([each["record/digest"] for each in source.__getitems__(rest[:].tolist())])
        certificates.append(certificate.to_bytes())
    whole = opened().certificate()
    for each in certificates:
        whole.merge(tfrecreg.Certificate.from_bytes(each))
    report = opened().report(whole)
    assert report.is_complete, str(report)
    assert report.expected == len([n for n in range(100) if n % 3 == 0 or n > 80])
    assert str(report).endswith(f"{numbers} where number % 3 = 0 OR number > 80, each once")


def test_a_lost_record_of_a_selection_is_named(numbers: Path) -> None:
    source = tfrecreg.data_source(numbers, "train", where="number >= 98", raw=True)
    certificate = source.certificate()
    certificate.add_payloads([payload(98), payload(97)])
    report = source.report(certificate)
    assert (report.missed, report.foreign, report.expected) == (1, 1, 2)
    assert [each.record for each in report.missed_records] == [68]


def test_a_state_of_another_question_is_refused(numbers: Path) -> None:
    odd = tfrecreg.data_source(numbers, "train", where="number % 2 = 1")
    even = tfrecreg.data_source(numbers, "train", where="number % 2 = 0")
    every = tfrecreg.data_source(numbers, "train")
    state = odd.order(seed=1).state(10)
    for other in (even, every):
        with pytest.raises(UsageError, match="another order: its `where` is `number % 2 = 1`"):
            other.from_state(state)
    with pytest.raises(UsageError, match="another order: its `where` is `None`"):
        odd.from_state(every.order(seed=1).state(10))
    other = tfrecreg.data_source(numbers, "train[:50%]", where="number % 2 = 1")
    with pytest.raises(UsageError, match="belongs to another order"):
        other.from_state(state)
    with pytest.raises(UsageError, match="different records"):
        odd.certificate().merge(even.certificate())
    assert "where" not in every.order(seed=1).state()
    assert len(odd.from_state(state)) == 40


def test_only_selected_records_are_read(write: Write) -> None:
    path = write("x.tfrecord", [payload(number) for number in range(50)])
    # After the catalog was made, all other records are damaged, and the file looks the same.
    tfrecreg.data_source(path, where="number IN (7, 31)")
    data = bytearray(path.read_bytes())
    start = 0
    for number in range(50):
        size = int.from_bytes(data[start : start + 8], "little")
        if number not in (7, 31):
            data[start + 12] ^= 1
        start += size + 16
    status = path.stat()
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    source = tfrecreg.data_source(path, where="number IN (7, 31)")
    assert found(source) == [7, 31]
    with pytest.raises(RefusedError):
        found(tfrecreg.data_source(path))


def test_a_release_is_selected_by_the_names_of_its_classes(digits_registry: Path) -> None:
    every = tfrecreg.data_source("digits@1.0.0", "train", registry=digits_registry, with_key=True)
    source = tfrecreg.data_source(
        "digits@1.0.0",
        "train",
        registry=digits_registry,
        with_key=True,
        decode=True,
        where="label = '7'",
    )
    wanted = [key for key, each in every if int(each["image/class/label"]) == 7]
    assert [key for key, _ in source] == wanted
    assert [source.key(at) for at in range(len(source))] == wanted
    shapes = [batch["image/encoded"].shape for batch in source.batches(10, source.order(seed=1))]
    assert np.sum([each[0] for each in shapes]) == len(wanted) > 0


def test_damage_and_other_questions_are_refused(numbers: Path) -> None:
    with pytest.raises(UsageError, match="the condition is empty"):
        tfrecreg.data_source(numbers, "train", where=" ")
    with pytest.raises(UsageError) as caught:
        tfrecreg.data_source(numbers, "train", where="numbr = 1")
    assert 'Candidate bindings: "number"' in caught.value.message
    path = next(numbers.glob("train-00000*"))
    data = bytearray(path.read_bytes())
    data[14] ^= 1
    path.write_bytes(data)
    with pytest.raises(RefusedError) as refused:
        tfrecreg.data_source(numbers, "train", where="number = 1", damaged="skip", max_damaged=1)
    assert refused.value.message == (
        f"`{path}` is damaged, and a condition cannot be evaluated on damaged records"
    )


def test_more_records_than_the_manifest_says_are_refused(digits_registry: Path) -> None:
    built = find_built("digits@1.0.0", digits_registry)
    assert built is not None
    target = splits_of(built, "test")
    with pytest.raises(RefusedError, match="should have 3 records, but it has more"):
        target.records_where([range(6)], [3] * len(target.shards), "true")


def test_a_condition_holds_for_shards_of_two_builds(digits_registry: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(digits_registry / "data/digits", copy)
    one, two = str(digits_registry / "data/digits/*tfrecord-0*"), str(copy / "*tfrecord-0*")
    half = len(tfrecreg.data_source(one, "test", where="bytes > 0", progress=False))
    both = tfrecreg.data_source([one, two], "test", where="bytes > 0", progress=False)
    assert len(both) == 2 * half > 0
