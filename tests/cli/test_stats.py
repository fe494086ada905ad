from __future__ import annotations

import sys
from pathlib import Path

import pytest
from statistics_support import alike_examples, dealt, needs_tfdv, write

from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature


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


def test_the_text_of_tfdv(cli, files: str, tmp_path: Path) -> None:
    needs_tfdv()
    from tfrecreg.builtin.statistics.tfdv import load_tfdv

    done = cli("stats", files, "--pbtxt")
    path = tmp_path / "stats.pbtxt"
    path.write_text(done.out, encoding="utf-8")
    (dataset,) = load_tfdv().api.load_stats_text(str(path)).datasets
    assert (dataset.name, dataset.num_examples) == ("train", 40)


@pytest.mark.parametrize("form", [(), ("--json",), ("--pbtxt",)], ids=str)
def test_output_takes_what_stdout_would_get(cli, files: str, tmp_path: Path, form) -> None:
    shown = cli("stats", files, *form).out
    path = tmp_path / "written"
    done = cli("stats", files, *form, "--output", path)
    assert (done.code, done.out, path.read_text(encoding="utf-8")) == (0, "", shown)


def test_a_feature_of_two_types_is_refused(cli, tmp_path: Path) -> None:
    pattern = write(tmp_path, [encode({"a": int64_feature(1)}), encode({"a": bytes_feature(b"1")})])
    done = cli("stats", pattern)
    assert done.code == 1
    assert "`a` has bytes values in some records and int64 values in others" in done.err


def test_neither_form_needs_tfdv(cli, files: str, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow_data_validation", None)
    assert cli("stats", files).code == 0
    done = cli("stats", files, "--pbtxt")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith('datasets {\n  name: "train"\n  num_examples: 40\n')
