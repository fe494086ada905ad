"""Hosts stop anywhere and resume with other numbers: each record comes as the mixture says."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from check_support import framed

import tfrecreg
from tfrecreg.builtin.training.mixtures.source import Mixture

from ..conftest import payload  # noqa: TID252 - the conftest of the folder above

QUICK, ALL = 60, 1000


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[tfrecreg.DataSource]:
    """Four sources of 3 to 61 payloads, the third of which has records of the first."""
    folder: Path = tmp_path_factory.mktemp("members")
    found = []
    for at, numbers in enumerate((range(61), range(100, 113), range(50, 90), range(200, 203))):
        path = folder / f"member{at}.tfrecord"
        path.write_bytes(framed(*map(payload, numbers)))
        found.append(tfrecreg.data_source(path, raw=True))
    return found


def drawn_mixture(chance: random.Random, sources: list[tfrecreg.DataSource]) -> Mixture:
    chosen = chance.sample(sources, chance.randint(1, 4))
    seed = chance.randrange(1000)
    rule = chance.randrange(4)
    if rule == 0:
        return tfrecreg.mixture(
            [(each, chance.randint(1, 150)) for each in chosen], seed=seed, by="count"
        )
    if rule == 1:
        temperature = chance.choice([1, 2, 3.3, 100])
        return tfrecreg.mixture(chosen, seed=seed, temperature=temperature, size=200)
    if rule == 2:
        weights = [(each, chance.choice([0.7, 1, 1.3])) for each in chosen]
        stop: Any = chance.choice(["first_exhausted", "all_exhausted"])
        return tfrecreg.mixture(weights, seed=seed, stop=stop)
    weights = [(each, chance.choice([0.1, 0.7, 1, 2.5])) for each in chosen]
    return tfrecreg.mixture(weights, seed=seed, size=chance.randint(100, 400))


def consume(
    chance: random.Random, mixture: Mixture, epoch: int, certificate: tfrecreg.Certificate
) -> None:
    """Hand out one epoch, by hosts that stop and resume."""
    hosts = chance.randint(1, min(8, len(mixture)))
    shares = [mixture.order(epoch, host=host, hosts=hosts) for host in range(hosts)]
    for _ in range(chance.randrange(4)):
        in_step = chance.random() < 0.5
        done = chance.randrange(min(map(len, shares)) + 1)
        states = []
        for share in shares:
            count = done if in_step else chance.randrange(len(share) + 1)
            certificate.add_payloads(mixture.__getitems__(share[:count]))
            states.append(json.loads(json.dumps(share.state(count))))
        hosts = chance.randint(1, min(8, len(mixture)))
        given = states[0] if in_step else chance.sample(states, len(states))
        shares = [mixture.from_state(given, host=host, hosts=hosts) for host in range(hosts)]
    for share in shares:
        certificate.add_payloads(mixture.__getitems__(share))


def sweep(sources: list[tfrecreg.DataSource], seeds: range) -> None:
    for seed in seeds:
        chance = random.Random(seed)
        mixture = drawn_mixture(chance, sources)
        first, epochs = chance.randrange(3), chance.randint(1, 2)
        certificate = mixture.certificate()
        for epoch in range(first, first + epochs):
            consume(chance, mixture, epoch, certificate)
        report = mixture.report(certificate, epoch=first, epochs=epochs)
        assert report.is_complete, (seed, str(report))
        for member in report.members:
            assert member.handed_out == mixture.counts[member.name] * epochs
            assert sum(times * count for times, count in member.times.items()) == member.handed_out
            assert sum(member.times.values()) == member.records
        # One element less or more is no longer what the mixture says.
        payload = mixture[chance.randrange(len(mixture))]
        certificate.add_payloads([payload])
        assert not mixture.report(certificate, epoch=first, epochs=epochs).is_complete


@pytest.mark.medium
def test_each_record_comes_as_the_mixture_says(sources: list[tfrecreg.DataSource]) -> None:
    sweep(sources, range(QUICK))


@pytest.mark.slow
def test_each_record_comes_as_a_thousand_mixtures_say(sources: list[tfrecreg.DataSource]) -> None:
    sweep(sources, range(QUICK, ALL))
