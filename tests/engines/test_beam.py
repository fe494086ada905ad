"""Outcomes that are there are taken without a pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrecreg.engines.beam import BeamEngine
from tfrecreg.engines.exchange import new_exchange
from tfrecreg.engines.remote import is_installed


# `importorskip` would import Beam, which takes seconds.
@pytest.mark.skipif(not is_installed("apache_beam"), reason="the extra `beam` is not installed")
def test_an_outcome_that_is_there_is_taken_and_its_files_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrecreg.engines.beam._Pipeline", None)  # none is needed
    engine = BeamEngine()
    engine._exchange = exchange = new_exchange(str(tmp_path))
    number = engine._submit(b"work")
    assert exchange.get("00000001.work") == b"work"
    exchange.put("00000001.outcome", b"outcome")
    assert engine._result(number) == b"outcome"
    assert not exchange.has("00000001.work")
    assert not exchange.has("00000001.outcome")
