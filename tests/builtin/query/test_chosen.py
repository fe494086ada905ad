"""Digests and statistics of the records for which a condition holds: nothing else is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from check_support import framed

import tfrecreg as tr
from tfrecreg.builtin.query import chosen
from tfrecreg.cli.main import main
from tfrecreg.engines.local import LocalEngine
from tfrecreg.errors import RefusedError, UsageError
from tfrecreg.example.encode import encode
from tfrecreg.example.features import bytes_feature, int64_feature
from tfrecreg.records.access import Records

pytest.importorskip("duckdb", reason="the extra `query` is not installed")

WHERE = "n % 3 = 1"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def written(path: Path, numbers: range) -> Path:
    payloads = [
        encode({"n": int64_feature(n), "b": bytes_feature(b"x" * (n % 7))}) for n in numbers
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(framed(*payloads))
    os.utime(path, (1e9, 1e9))
    return path


@pytest.fixture
def every(tmp_path: Path) -> Path:
    """Two shards of a split, one of another."""
    folder = tmp_path / "every"
    written(folder / "train-00000-of-00002", range(40))
    written(folder / "train-00001-of-00002", range(40, 50))
    written(folder / "test-00000-of-00001", range(50, 60))
    return folder


@pytest.fixture
def selected(tmp_path: Path) -> Path:
    """The records that meet the condition, in shards of their own."""
    folder = tmp_path / "selected"
    written(folder / "train-00000-of-00001", range(1, 50, 3))
    written(folder / "test-00000-of-00001", range(52, 60, 3))
    return folder


@pytest.mark.medium
def test_the_digest_is_that_of_a_dataset_of_these_records(
    every: Path, selected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, wanted = tr.digest(every, where=WHERE), tr.digest(selected)
    assert (found.content, found.where) == (wanted.content, WHERE)
    counts = {each.split: (each.content, each.records) for each in found.splits}
    assert counts == {each.split: (each.content, each.records) for each in wanted.splits}
    assert found.content != tr.digest(every).content
    monkeypatch.setattr(chosen, "_WORTH_WORKERS", 0)
    with LocalEngine(2) as engine:
        assert tr.digest(every, where=WHERE, engine=engine) == found


def test_a_large_selection_comes_in_blocks(every: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tr.digest(every)
    assert tr.digest(every, where="true").content == whole.content
    monkeypatch.setattr(chosen, "_BLOCK_RECORDS", 3)
    assert tr.digest(every, where="true").content == whole.content
    monkeypatch.setattr(chosen, "_BLOCK_BYTES", 1)
    assert tr.digest(every, where="true").content == whole.content
    monkeypatch.setattr(chosen, "HOLD_LIMIT", 20)  # larger ones are read by the visitor
    assert tr.digest(every, where="true").content == whole.content


def test_a_batch_is_as_the_scanner_makes_it(every: Path) -> None:
    with Records(every / "train-00000-of-00002") as records:
        (batch,) = chosen._batches(records, np.array([1, 4, 39]))
        assert list(batch.payloads()) == [records[1], records[4], records[39]]
        assert [batch.payload(at) for at in range(3)] == list(batch.payloads())
        assert (batch.first, len(batch), batch.whole) == (0, 3, True)
        frames = (every / "train-00000-of-00002").read_bytes()
        start = batch.offsets[1]
        size = batch.lengths[1] + 16
        assert frames[start : start + size] in batch.memory


def test_the_statistics_are_those_of_a_dataset_of_these_records(
    every: Path, selected: Path
) -> None:
    found, wanted = tr.stats(every, where=WHERE), tr.stats(selected)
    assert found.where == WHERE
    assert [each.to_json() for each in found.splits] == [each.to_json() for each in wanted.splits]
    (test,) = tr.stats(every, "test", where=WHERE).splits
    assert test.to_json() == wanted.splits[0].to_json()
    with pytest.raises(UsageError, match=r"no Example of .* meets `n > 1000`"):
        tr.stats(every, where="n > 1000")
    only_train = tr.stats(every, where="n < 5").splits
    assert [(each.statistics.split, each.statistics.examples) for each in only_train] == [
        ("test", 0),
        ("train", 5),
    ]


def test_statistics_of_a_selection_are_not_kept(digits_registry: Path) -> None:
    release = tr.open(digits_registry)["digits@1.0.0"]
    whole = release.stats()
    sevens = release.stats(where="label = '7'")
    assert sevens.splits[0].statistics.examples < whole.splits[0].statistics.examples
    assert not any(each.cached for each in sevens.splits)
    again = release.stats()
    assert [each.statistics.examples for each in again.splits] == [60, 200]
    assert release.digest(where="true").content == release.digest().content


def test_nothing_else_is_read(every: Path) -> None:
    wanted = tr.digest(every, where=WHERE)
    path = every / "train-00000-of-00002"
    status, data = path.stat(), bytearray(path.read_bytes())
    start = 0
    for number in range(40):
        size = int.from_bytes(data[start : start + 8], "little")
        data[start + 13] ^= number % 3 != 1
        start += size + 16
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert tr.digest(every, where=WHERE) == wanted
    assert tr.stats(every, where=WHERE).where == WHERE
    with pytest.raises(RefusedError, match="is damaged: CRC002"):
        tr.digest(every, where="n % 3 = 2")
    with pytest.raises(RefusedError, match="is damaged: CRC002"):
        tr.stats(every, where="n % 3 = 2")


@pytest.mark.medium
def test_commands_have_the_option(
    every: Path, selected: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ran(*arguments: object, code: int = 0) -> str:
        assert main(list(map(str, arguments))) == code
        told = capsys.readouterr()
        return told.out if code == 0 else told.err

    assert ran("digest", every, "--where", WHERE) == ran("digest", selected)
    told = json.loads(ran("digest", every, "--where", WHERE, "--json"))
    assert told["targets"][0]["where"] == WHERE
    told = json.loads(ran("stats", every, "--where", WHERE, "--json"))
    assert (told["where"], told["splits"][1]["examples"]) == (WHERE, 17)
    assert "17 examples" in ran("stats", every, "--where", WHERE)
    for command in ("digest", "stats"):
        said = ran(command, every, "--where", "m = 1", code=2)
        assert said.startswith('error: Referenced column "m" not found')
