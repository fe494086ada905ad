from __future__ import annotations

import sys
from pathlib import Path

import pytest
from statistics_support import alike_examples, dealt, write


@pytest.fixture
def files(tmp_path: Path) -> str:
    return write(tmp_path, *dealt(alike_examples(40), 2))


def test_a_table_by_default(cli, files: str) -> None:
    done = cli("stats", files)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("train: 40 examples\n  feature  type ")
    assert "\n  label    int64" in done.out


def test_one_json_document(cli, files: str) -> None:
    done = cli("stats", files, "--json", "--feature", "label")
    assert done.code == 0
    (split,) = done.json["splits"]
    assert (done.json["format_version"], split["examples"], split["cached"]) == (1, 40, False)
    (label,) = split["features"]
    assert label["detail"].keys() == {
        *("mean", "std", "min", "median", "max", "zeros", "nan", "quantiles")
    }


def test_neither_form_needs_tfdv(cli, files: str, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow_data_validation", None)
    assert cli("stats", files).code == 0
    done = cli("stats", files, "--pbtxt")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith('datasets {\n  name: "train"\n  num_examples: 40\n')
