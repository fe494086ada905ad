"""Runs that SIGKILL ends at any batch, resumed with other workers and hosts.

Each host is a process that reads its share through worker processes, and saves a checkpoint after
each batch: the state of its order, and its certificate. The kill takes its workers, too. At the end
the certificate has every record exactly once.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from child_support import Child
from sweep_support import part

import tfrecreg

BATCH = 8
MOMENTS = 3
"""In a batch a host may die before its checkpoint is written, or published, or after that."""


@pytest.fixture
def source(digits_original: Path) -> tfrecreg.DataSource:
    return tfrecreg.data_source("digits@1.0.0", "train", registry=digits_original, with_digest=True)


def read(source: tfrecreg.DataSource, share: tfrecreg.Order, workers: int) -> Iterator[list[Any]]:
    """The batches of a share, which workers read ahead."""
    batches = [share[start : start + BATCH] for start in range(0, len(share), BATCH)]
    if not workers:
        yield from map(source.__getitems__, batches)
        return
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        yield from pool.imap(source.__getitems__, batches)


def save(path: Path, state: dict[str, Any], certificate: tfrecreg.Certificate) -> Path:
    written = path.with_suffix(".new")
    written.write_bytes(json.dumps(state).encode() + b"\n" + certificate.to_bytes())
    return written


def saved(path: Path) -> tuple[dict[str, Any], tfrecreg.Certificate]:
    state, _, certificate = path.read_bytes().partition(b"\n")
    return json.loads(state), tfrecreg.Certificate.from_bytes(certificate)


def train(
    source: tfrecreg.DataSource, share: tfrecreg.Order, path: Path, workers: int, end: int
) -> None:
    """What a host does. It kills itself and its workers at the moment number `end`."""
    os.setsid()
    moment = 0

    def live() -> None:
        nonlocal moment
        if moment == end:
            os.killpg(0, signal.SIGKILL)
        moment += 1

    certificate, done = source.certificate(), 0
    for batch in read(source, share, workers):
        certificate.add([example["record/digest"] for example in batch])
        done += len(batch)
        live()
        written = save(path, share.state(done), certificate)
        live()
        written.replace(path)
        live()


def run(source: tfrecreg.DataSource, folder: Path, chance: random.Random) -> tuple[str, int]:
    """A run that is killed twice; what the certificate says of it, and how many hosts died."""
    whole, states, died, seed = source.certificate(), [], 0, chance.randrange(100)
    for kills in (True, True, False):
        hosts, workers = chance.randrange(1, 5), chance.randrange(3)
        children, paths = [], []
        for host in range(hosts):
            share = (
                source.from_state(states, host=host, hosts=hosts)
                if states
                else source.order(seed, host=host, hosts=hosts)
            )
            path = folder / f"host-{host}"
            save(path, share.state(0), source.certificate()).replace(path)
            batches = -(-len(share) // BATCH)
            end = chance.randrange(MOMENTS * batches + 1) if kills else -1
            arguments = source, share, path, workers, end
            children.append(Child(lambda tell, arguments=arguments: train(*arguments)))
            paths.append(path)
        ended = [child.join() for child in children]
        assert not any(each.failure for each in ended), ended
        died += sum(each.killed for each in ended)
        states = []
        for path in paths:
            state, certificate = saved(path)
            states.append(state)
            whole.merge(certificate)
    return str(source.report(whole)), died


def runs(source: tfrecreg.DataSource, folder: Path, numbers: Sequence[int]) -> int:
    died = 0
    for number in numbers:
        said, more = run(source, folder, random.Random(number))
        assert said == "all 200 records of digits@1.0.0, each once", number
        died += more
    return died


@pytest.mark.slow
def test_two_hundred_killed_runs_hand_out_every_record_once(
    source: tfrecreg.DataSource, tmp_path: Path
) -> None:
    numbers = part(range(200))
    assert runs(source, tmp_path, numbers) > 2 * len(numbers)
