"""Parts of the viewer alone: what is kept, and work in a process of its own."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest
from check_support import framed
from view_support import serving

from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.slow
def test_a_record_is_shown_as_tensorflow_parses_it(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")
    path = tmp_path / "a.tfrecord"
    payload = encode(
        {
            "n": int64_feature(7),
            "x": float_feature(0.5),
            "t": bytes_feature(b"\xff<b>"),
        }
    )
    path.write_bytes(framed(payload, b"no example"))
    with serving(path) as viewing:
        found = viewing.ask("/api/t/0/tensors/0/0")["tensors"]
        said = viewing.error("/api/t/0/tensors/0/1", 400)
    assert [(each["name"], each["dtype"], each["shape"], each["values"]) for each in found] == [
        ("n", "int64", [1], "7"),
        ("t", "string", [1], "4 bytes"),
        ("x", "float32", [1], "0.5"),
    ]
    assert said == "the record is not a tf.train.Example | it has no features"


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
