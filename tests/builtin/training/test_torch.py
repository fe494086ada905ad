"""PyTorch's DataLoader over a data source: shuffled, shared among ranks, stopped and resumed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import tfrecreg

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
data = torch.utils.data


@pytest.fixture
def source(digits_original: Path) -> tfrecreg.DataSource:
    return tfrecreg.data_source(
        "digits@1.0.0", "train", registry=digits_original, decode=True, with_digest=True
    )


def consume(certificate: tfrecreg.Certificate, loader: Any, most: int | None = None) -> int:
    """Add the first batches of a loader, and return how many elements these had."""
    count = 0
    for at, batch in enumerate(loader):
        if at == most:
            break
        certificate.add(batch["record/digest"])
        count += len(batch["record/digest"])
    return count


def test_an_order_is_a_sampler(source: tfrecreg.DataSource) -> None:
    loader = data.DataLoader(source, batch_size=32, sampler=source.order(seed=1))
    assert len(loader) == 7
    batch = next(iter(loader))
    assert (batch["image/encoded"].shape, batch["image/encoded"].dtype) == (
        (32, 28, 28, 1),
        torch.uint8,
    )
    assert batch["image/class/label"].dtype == torch.int64
    expected = [source[number]["image/class/label"] for number in source.order(seed=1)[:32]]
    assert batch["image/class/label"].tolist() == expected
    certificate = source.certificate()
    consume(certificate, loader)
    assert source.report(certificate).is_complete


def test_a_sampler_of_pytorch_shares_the_records_among_ranks(source: tfrecreg.DataSource) -> None:
    certificate = source.certificate()
    for rank in range(2):
        sampler = data.DistributedSampler(source, num_replicas=2, rank=rank, seed=3)
        loader = data.DataLoader(source, batch_size=32, sampler=sampler, num_workers=2)
        consume(certificate, loader)
    assert source.report(certificate).is_complete


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_may_be_forked_or_spawned(source: tfrecreg.DataSource, context: str) -> None:
    loader = data.DataLoader(
        source,
        batch_size=50,
        sampler=source.order(seed=2),
        num_workers=2,
        multiprocessing_context=context,
    )
    certificate = source.certificate()
    consume(certificate, loader)
    assert source.report(certificate).is_complete


def test_a_run_stops_anywhere_and_resumes_with_other_ranks_and_workers(
    source: tfrecreg.DataSource,
) -> None:
    """What workers read ahead of the stop was not consumed, and comes again."""
    chance = random.Random(1)
    certificate = source.certificate()
    shares = [source.order(seed=4, host=rank, hosts=2) for rank in range(2)]
    for workers in (0, 2, 0):
        stop = chance.randrange(1, 4)
        states = []
        for share in shares:
            loader = data.DataLoader(source, batch_size=8, sampler=share, num_workers=workers)
            done = consume(certificate, loader, stop)
            states.append(json.loads(json.dumps(share.state(done))))
        ranks = chance.randrange(1, 4)
        shares = [source.from_state(states, host=rank, hosts=ranks) for rank in range(ranks)]
    for share in shares:
        consume(certificate, data.DataLoader(source, batch_size=8, sampler=share))
    assert str(source.report(certificate)) == "all 200 records of digits@1.0.0, each once"
