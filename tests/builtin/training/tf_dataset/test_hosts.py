"""The shares of all hosts have no record in common, and together they have all.

Keys and the certificate of an epoch have to agree about it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrecreg
from tfrecreg.builtin.training.load import load

pytestmark = pytest.mark.slow  # TensorFlow traces a graph for each test

Keys = Callable[..., list[bytes]]


def read(dataset: Any, certificate: tfrecreg.Certificate | None = None) -> list[bytes]:
    """The keys of a dataset, whose digests the certificate gets."""
    found: list[bytes] = []
    for element in dataset:
        keys = element["record/key"].numpy()
        found += [keys] if isinstance(keys, bytes) else keys.tolist()
        if certificate is not None:
            certificate.add(element["record/digest"])
    return found


@pytest.mark.parametrize(("shards", "hosts"), [(1, 3), (2, 2), (7, 5)])
def test_every_record_goes_to_one_host(
    tf: Any, numbered: Path, keys: Keys, shards: int, hosts: int
) -> None:
    source = tfrecreg.data_source(f"digits{shards}", "train", registry=numbered)
    certificate = source.certificate()
    shares = []
    for host in range(hosts):
        dataset = load(
            f"digits{shards}",
            "train",
            registry=numbered,
            features=[],
            with_key=True,
            with_digest=True,
            host=host,
            hosts=hosts,
        )
        shares.append(read(dataset, certificate))
        assert len(dataset) == len(shares[-1]) > 0
    together = [key for share in shares for key in share]
    assert sorted(together) == sorted(keys(shards))
    assert source.report(certificate).is_complete
    if shards % hosts:
        # Shares of records: contiguous, in order, equal but for one.
        assert together == keys(shards)
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(("shards", "hosts"), [(7, 5), (2, 2)])
def test_shuffled_batches_of_hosts_have_every_record_once(
    tf: Any, numbered: Path, keys: Keys, shards: int, hosts: int
) -> None:
    source = tfrecreg.data_source(f"digits{shards}", "train", registry=numbered)
    certificate = source.certificate()
    seen: list[bytes] = []
    for host in range(hosts):
        dataset = load(
            f"digits{shards}",
            "train",
            registry=numbered,
            with_key=True,
            with_digest=True,
            shuffle=True,
            seed=3,
            batch_size=16,
            host=host,
            hosts=hosts,
        )
        found = read(dataset, certificate)
        seen += found
        assert found != [key for key in keys(shards) if key in set(found)]
    assert sorted(seen) == sorted(keys(shards))
    assert str(source.report(certificate)).startswith("all 200 records of ")


@pytest.mark.parametrize(
    "arguments",
    [
        {"decode": True, "batch_size": 16},
        {"features": [], "deterministic": False},
    ],
)
def test_a_certificate_shows_a_lost_and_a_doubled_batch(
    tf: Any, numbered: Path, arguments: dict[str, Any]
) -> None:
    source = tfrecreg.data_source("digits7", "test", registry=numbered)
    dataset = load("digits7", "test", registry=numbered, with_digest=True, **arguments)
    digests = [each["record/digest"] for each in dataset]
    size = arguments.get("batch_size", 1)
    assert digests[0].shape == ((size, 16) if size > 1 else (16,))
    certificate = source.certificate()
    for each in digests:
        certificate.add(each)
    assert source.report(certificate).is_complete
    certificate = source.certificate()
    for each in [digests[0], *digests[:-1]]:
        certificate.add(each)
    report = source.report(certificate)
    assert (report.missed, report.doubled, report.foreign) == (60 % size or 1, size, 0)


def test_whole_shards_go_to_hosts_that_divide_them(tf: Any, numbered: Path, keys: Keys) -> None:
    first = load("digits7", "train", registry=numbered, features=[], with_key=True, host=6, hosts=7)
    found = read(first)
    assert found == keys()[-len(found) :]


def test_hosts_share_a_part_of_a_split(tf: Any, numbered: Path, keys: Keys) -> None:
    found: list[bytes] = []
    for host in range(3):
        found += read(
            load(
                "digits7",
                "train[13:98]+test",
                registry=numbered,
                features=[],
                with_key=True,
                host=host,
                hosts=3,
            )
        )
    assert sorted(found) == sorted(keys()[13:98] + keys(7, "test"))
