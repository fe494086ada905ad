"""Exports of the records for which a condition holds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import tfrecreg
from tfrecreg.cli.main import main
from tfrecreg.core.values.errors import RefusedError, UsageError

pytest.importorskip("duckdb", reason="the extra `query` is not installed")

MODULES = {"arrayrecord": "array_record", "parquet": "pyarrow"}
WHERE = "label = '7' AND split = 'train'"


@pytest.fixture(params=("arrayrecord", "jsonl", "parquet", "webdataset"))
def to(request: pytest.FixtureRequest) -> str:
    if request.param in MODULES:
        pytest.importorskip(MODULES[request.param], reason="the extra is not installed")
    return str(request.param)


def test_the_folder_has_these_records_and_says_so(
    digits_registry: Path, tmp_path: Path, to: str
) -> None:
    release = tfrecreg.open(digits_registry)["digits@1.0.0"]
    with tfrecreg.TFRecordWriter(tmp_path / "train.tfrecord") as writer:
        for payload in release.data_source("train", where=WHERE, raw=True):
            writer.write(payload)
    wanted = tfrecreg.digest(tmp_path / "train.tfrecord")
    records = {each.split: each.records for each in wanted.splits}
    result = release.export(tmp_path / "out", to=to, where=WHERE)
    assert (result.content, result.where) == (wanted.content, WHERE)
    assert result.splits == records
    assert records.keys() == {"train"}
    assert 0 < records["train"] < 200
    said = json.loads((tmp_path / "out/tfrecreg.json").read_text())
    assert (said["where"], said["content"]) == (WHERE, wanted.content)
    assert said["manifest"] == release.manifest.digest
    assert said["splits"] == [
        {"name": each.split, "records": each.records, "content": each.content}
        for each in wanted.splits
    ]
    assert sum(each["records"] for each in said["files"]) == records["train"]


def test_the_lines_are_those_of_the_whole_export(digits_registry: Path, tmp_path: Path) -> None:
    release = tfrecreg.open(digits_registry)["digits@1.0.0"]
    release.export(tmp_path / "all", to="jsonl")
    release.export(tmp_path / "some", to="jsonl", where="label = '7'")

    def lines(folder: str) -> list[str]:
        files = sorted((tmp_path / folder).glob("*.jsonl"))
        return [line for file in files for line in file.read_text().splitlines()]

    classes = {"image/class/label": ["7"]}
    sevens = [each for each in lines("all") if json.loads(each)["classes"] == classes]
    assert lines("some") == sevens
    assert sevens


def test_a_shard_with_chosen_records_is_verified(digits_registry: Path, tmp_path: Path) -> None:
    release = tfrecreg.open(digits_registry)["digits@1.0.0"]
    long_ago = 1e9
    paths = sorted((digits_registry / "data/digits").glob("*train.tfrecord-*"))
    assert paths
    for path in paths:
        os.utime(path, (long_ago, long_ago))  # so that its catalog is remembered
    release.export(tmp_path / "before", to="jsonl", where="label = '7'")
    for path in paths:
        data = bytearray(path.read_bytes())
        data[-5] ^= 1  # of the last record, which is not chosen
        path.write_bytes(data)  # the same file, as its catalog knows it
        os.utime(path, (long_ago, long_ago))
    chosen = "label = '7' AND record < 50"
    with pytest.raises(RefusedError, match="cannot be exported: CRC002"):
        release.export(tmp_path / "out", to="jsonl", where=chosen)
    assert not (tmp_path / "out").exists()


def test_formats_of_whole_shards_are_refused(digits_registry: Path, tmp_path: Path) -> None:
    release = tfrecreg.open(digits_registry)["digits@1.0.0"]
    for to in ("croissant", "index", "tfds", "tfx"):
        with pytest.raises(UsageError) as caught:
            release.export(tmp_path / "out", to=to, where="label = '7'")
        assert f"`--to {to}` exports whole shards" in caught.value.message


@pytest.mark.medium
def test_the_command_says_the_condition(
    digits_registry: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(digits_registry)
    arguments = ["export", "digits@1.0.0", "--to", "jsonl", str(tmp_path / "out")]
    assert main([*arguments, "--where", "label = '7'"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == f"exported digits@1.0.0 where label = '7' to {tmp_path / 'out'}"
    assert "in 4 shards (4 converted)" in second
    arguments[-1] = str(tmp_path / "more")
    assert main([*arguments, "--where", "label = '7'", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["where"] == "label = '7'"
    arguments[-1] = str(tmp_path / "bad")
    assert main([*arguments, "--where", "labell = '7'"]) == 2
    assert 'Candidate bindings: "label"' in capsys.readouterr().err
    assert not (tmp_path / "bad").exists()
