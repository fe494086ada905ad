"""`tfrecreg export` to formats of other libraries: what it says, and its exit codes."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from tests_support import flip

from tfrecreg.core.values.errors import install_command

SHARDS = {"arrayrecord": "array_record-*", "parquet": "data/*", "webdataset": "*.tar"}
MODULES = {"arrayrecord": "array_record", "parquet": "pyarrow"}


@pytest.fixture
def released(cli, digits_registry: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(digits_registry)
    return digits_registry


def needed(to: str) -> None:
    if to in MODULES:
        pytest.importorskip(MODULES[to], reason="the extra is not installed")


@pytest.mark.parametrize(
    ("to", "how"),
    [
        ("arrayrecord", "ArrayRecordDataSource(sorted(glob('{out}/digits-*.array_record-*')))"),
        ("parquet", "pandas.read_parquet('{out}/data')"),
        ("webdataset", "webdataset.WebDataset('{out}/digits-train-{{000000..000001}}.tar')"),
    ],
)
def test_it_says_that_the_content_is_equal_and_how_to_read_it(
    cli, released: Path, tmp_path: Path, to: str, how: str
) -> None:
    needed(to)
    out = tmp_path / "out"
    done = cli("export", "digits@1.0.0", "--to", to, out)
    assert (done.code, done.err) == (0, "")
    first, size, content, last = done.out.splitlines()
    assert first == f"exported digits@1.0.0 to {out}"
    assert re.fullmatch(r"  260 records in 4 shards \(4 converted\), \d+\.\d [kM]B", size)
    shown = cli("show", "digits@1.0.0", "--json").json
    assert shown["manifest"]["content"] in content
    assert content.startswith("content digest verified: ")
    assert last == f"read it: {how.format(out=out)}"
    document = cli("export", "digits", "--to", to, tmp_path / "more", "--json").json
    assert document["content"] == shown["manifest"]["content"]
    assert (document["to"], document["shards"]) == (to, {"converted": 4})


@pytest.mark.parametrize("to", MODULES)
def test_a_missing_library_is_one_line_with_its_extra(
    cli, released: Path, tmp_path: Path, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, MODULES[to], None)
    monkeypatch.delitem(sys.modules, f"tfrecreg.builtin.export.{to}", raising=False)
    done = cli("export", "digits", "--to", to, tmp_path / "out")
    assert (done.code, done.out) == (3, "")
    what = {"arrayrecord": "writing ArrayRecord files", "parquet": "the exporter `parquet`"}[to]
    assert done.err.splitlines() == [
        f"error: {what} needs the extra `{to}`, which is not installed",
        f"hint: {install_command(extra=to)}",
    ]
    assert not (tmp_path / "out").exists()


def test_an_index_that_is_gone_is_exit_1(cli, released: Path, tmp_path: Path) -> None:
    shutil.rmtree(released / "data/digits/index")
    done = cli("export", "digits", "--to", "webdataset", tmp_path / "out")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "error: `digits-test.tfrecord-00000-of-00002` of `digits` cannot be exported: its "
        "index `index/digits-test.tfrecord-00000-of-00002.index` is missing",
        "hint: tfrecreg check digits",
    ]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", SHARDS)
def test_damage_is_exit_1_and_no_folder(cli, released: Path, tmp_path: Path, to: str) -> None:
    needed(to)
    shard = released / "data/digits/digits-test.tfrecord-00001-of-00002"
    flip(shard, shard.stat().st_size - 2)
    done = cli("export", "digits", "--to", to, tmp_path / "out")
    assert (done.code, done.out) == (1, "")
    error, hint = done.err.splitlines()
    assert error.startswith(
        "error: `digits-test.tfrecord-00001-of-00002` of `digits` cannot be exported: CRC002 "
    )
    assert hint == "hint: tfrecreg check digits"
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".tfrecreg-export*"))
