"""Outcomes that are there are taken without a pipeline, and one that runs is waited for."""

from __future__ import annotations

import threading
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from tfrecreg.builtin.engines.beam import BeamEngine, _Pipeline
from tfrecreg.core.plugins.engines import open_engine
from tfrecreg.core.values.errors import FailureError
from tfrecreg.core.workers.exchange import Exchange, new_exchange


# `importorskip` would import Beam, which takes seconds.
@pytest.mark.skipif(find_spec("apache_beam") is None, reason="the extra `beam` is not installed")
def test_an_outcome_that_is_there_is_taken_and_its_files_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrecreg.builtin.engines.beam._Pipeline", None)  # none is needed
    engine = open_engine("beam")
    assert isinstance(engine, BeamEngine)
    engine._exchange = exchange = new_exchange(str(tmp_path), "beam")
    number = engine.submit(b"work")
    assert exchange.get("00000001.work") == b"work"
    exchange.put("00000001.outcome", b"outcome")
    assert engine.result(number) == b"outcome"
    assert not exchange.has("00000001.work")
    assert not exchange.has("00000001.outcome")


class Held(_Pipeline):
    """A pipeline that does nothing until it is let go, and fails then if it is told to."""

    def __init__(self, exchange: Exchange, *numbers: int) -> None:
        self._go = threading.Event()
        self._failure: BaseException | None = None
        super().__init__(exchange, numbers, None, None)

    def _run(self) -> None:
        self._go.wait()
        self._error = self._failure

    def close(self, failure: BaseException | None = None) -> None:
        self._failure = failure
        self._go.set()
        self.stop()


def test_a_pipeline_has_ended_when_it_has(tmp_path: Path) -> None:
    exchange = new_exchange(str(tmp_path), "beam")
    with closing(Held(exchange, 1, 2)) as pipeline:
        assert not pipeline.has_ended(1)
        assert not pipeline.has_ended(3)
    exchange.put("00000001.outcome", b"outcome")
    assert not pipeline.has_ended(1)  # the outcome is there to be taken
    with pytest.raises(FailureError, match="a Beam pipeline ended and left no outcome in"):
        pipeline.has_ended(2)
    assert pipeline.has_ended(3)  # the next pipeline is for it


def test_a_pipeline_that_fails_says_so_of_every_outcome_it_did_not_leave(tmp_path: Path) -> None:
    exchange = new_exchange(str(tmp_path), "beam")
    exchange.put("00000001.outcome", b"outcome")
    pipeline = Held(exchange, 1, 2)
    pipeline.close(ValueError("no runner"))
    assert not pipeline.has_ended(1)
    with pytest.raises(FailureError, match="no runner"):
        pipeline.has_ended(2)
