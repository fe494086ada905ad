"""Questions that cost too much, and questions that nobody waits for."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest
from check_support import framed
from view_support import serving

from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import int64_feature

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


COSTLY = "(SELECT count(*) FROM range(1000000000000)) > 5"


def write_numbers(path: Path) -> Path:
    path.write_bytes(framed(*(encode({"n": int64_feature(each)}) for each in range(4))))
    return path


@pytest.mark.medium
def test_costly_conditions_that_were_given_up_end_and_others_are_answered(tmp_path: Path) -> None:
    with serving(write_numbers(tmp_path / "a.tfrecord")) as viewing:
        viewing.wait("/api/t/0", "catalog", "ready")
        for number in range(8):
            where = {"where": f"{COSTLY} AND n > {number}"}
            with pytest.raises(httpx.ReadTimeout):
                viewing.client.get("/api/t/0/select", params=where, timeout=0.3)
            assert viewing.ask("/api/t/0/select", where=f"n >= {number}")["count"] == 4 - min(
                number, 4
            )
        time.sleep(2)
        spent = time.process_time()
        time.sleep(1)
        assert time.process_time() - spent < 0.3  # nobody searches any more


@pytest.mark.medium
def test_a_costly_question_ends_after_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(write_numbers(tmp_path / "a.tfrecord")) as viewing:
        viewing.wait("/api/t/0", "catalog", "ready")
        monkeypatch.setattr("tfrecreg.builtin.view.background.ANSWER_SECONDS", 1)
        began = time.monotonic()
        assert "within 1 seconds" in viewing.error("/api/t/0/select", 400, where=COSTLY)
        assert time.monotonic() - began < 10
