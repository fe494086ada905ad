"""Grain over a data source: shuffled, sharded, in worker processes, stopped and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests_support import flip

import tfrecreg

grain = pytest.importorskip("grain.python", reason="Grain is not installed")


@pytest.fixture
def source(digits_original: Path) -> tfrecreg.DataSource:
    return tfrecreg.data_source(
        "digits@1.0.0", "train", registry=digits_original, decode=True, with_digest=True
    )


def loader(source: tfrecreg.DataSource, workers: int, host: int = 0, hosts: int = 1) -> Any:
    sampler = grain.IndexSampler(
        num_records=len(source),
        num_epochs=1,
        shuffle=True,
        seed=3,
        shard_options=grain.ShardOptions(shard_index=host, shard_count=hosts),
    )
    return grain.DataLoader(
        data_source=source,
        sampler=sampler,
        operations=[grain.Batch(10)],
        worker_count=workers,
    )


def test_it_is_a_source_of_grain(source: tfrecreg.DataSource) -> None:
    assert isinstance(source, grain.RandomAccessDataSource)


def test_hosts_and_workers_read_every_record_once(source: tfrecreg.DataSource) -> None:
    certificate = source.certificate()
    for host in range(2):
        for batch in loader(source, 2, host, 2):
            assert batch["image/encoded"].shape == (10, 28, 28, 1)
            certificate.add(batch["record/digest"])
    assert source.report(certificate).is_complete


def test_the_records_that_a_sampler_of_grain_drops_are_named(source: tfrecreg.DataSource) -> None:
    """Versions whose hosts get equal shares give what is left to none; others drop nothing."""
    certificate, given = source.certificate(), 0
    for host in range(3):
        for batch in loader(source, 0, host, 3):
            certificate.add(batch["record/digest"])
            given += len(batch["record/digest"])
    report, dropped = source.report(certificate), len(source) - given
    assert dropped in (0, 2)
    assert (report.missed, report.doubled, len(report.missed_records)) == (dropped, 0, dropped)


def test_a_run_resumes_from_the_state_of_grain(source: tfrecreg.DataSource) -> None:
    certificate = source.certificate()
    iterator = iter(loader(source, 2))
    for _ in range(7):
        certificate.add(next(iterator)["record/digest"])
    state = iterator.get_state()
    iterator = iter(loader(source, 2))
    iterator.set_state(state)
    for batch in iterator:
        certificate.add(batch["record/digest"])
    assert source.report(certificate).is_complete


def test_a_dataset_of_grain_shuffles_all_records(source: tfrecreg.DataSource) -> None:
    certificate = source.certificate()
    for batch in grain.MapDataset.source(source).shuffle(seed=1).batch(32):
        certificate.add(batch["record/digest"])
    assert source.report(certificate).is_complete


def test_an_order_may_choose_in_place_of_grain(source: tfrecreg.DataSource) -> None:
    share = source.order(seed=1, host=1, hosts=3)
    dataset = grain.MapDataset.source(share).map(source.__getitem__)
    labels = [element["image/class/label"] for element in dataset]
    assert labels == [source[number]["image/class/label"] for number in share]


def test_damage_is_named_through_grain(digits_registry: Path) -> None:
    path = digits_registry / "data/digits/digits-train.tfrecord-00000-of-00002"
    flip(path, int(tfrecreg.Records(path).offsets[12]) + 20)
    source = tfrecreg.data_source("digits", "train", registry=digits_registry)
    with pytest.raises(Exception, match=r"(?s)record 12 of .* is damaged: CRC002") as caught:
        list(grain.MapDataset.source(source).shuffle(seed=1))
    assert f"its key is `{source.key(12)}`" in str(caught.value)
