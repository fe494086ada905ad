"""Every address for TFRecords of other tools: no answer is a bug's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from view_support import serving

from tfrecreg.builtin.view.record import SHOWN

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.skipif(
        "TFRECREG_TEST_DATA" not in os.environ, reason="TFRECREG_TEST_DATA names no datasets"
    ),
]


def files() -> Iterator[Path]:
    root = Path(os.environ.get("TFRECREG_TEST_DATA", os.devnull)) / "tfrecord"
    for path in sorted(root.rglob("*")):
        if path.is_file() and any(
            end in path.name for end in (".tfrecord", ".record", ".tfevents")
        ):
            yield path


@pytest.mark.medium
def test_records_of_other_tools_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    targets = list(files())
    kinds: dict[str, int] = {}
    with serving(*targets) as viewing:
        for at, path in enumerate(targets):
            told = viewing.ask(f"/api/t/{at}")
            found = viewing.ask(f"/api/t/{at}/records", count=20)
            assert found["of"] == told["records"] > 0, path
            for each in found["records"]:
                kinds[each["kind"]] = kinds.get(each["kind"], 0) + 1
                assert each["problem"] is None, path
                if each["thumb"]:
                    answer = viewing.client.get(each["thumb"])
                    assert answer.status_code == 200, (path, answer.text)
                    assert answer.headers["content-type"] in SHOWN.values()
            for number in (0, told["records"] - 1):
                viewing.ask(f"/api/t/{at}/record/0/{number}")
        for at in range(len(targets)):
            told = viewing.wait(f"/api/t/{at}", "catalog", "ready")
            facets = viewing.ask(f"/api/t/{at}/facets")["facets"]
            assert all(each["of"] for each in facets if each["kind"] == "histogram")
            chosen = viewing.ask(f"/api/t/{at}/select", where="record < 3", sort="bytes")
            assert chosen["count"] == min(told["records"], 3)
    assert {"image", "numbers", "bytes"} <= set(kinds)
