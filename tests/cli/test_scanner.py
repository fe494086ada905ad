"""`TFRECREG_SCANNER`, as a user meets it: what reads, what a mistake says, the same report."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests_support import flip

from tfrecreg.core.records import scanner as scanner_module


@pytest.fixture
def shard(tmp_path: Path, digits_original: Path) -> Path:
    """A shard with a flipped bit."""
    name = "digits-test.tfrecord-00001-of-00002"
    copy = tmp_path / name
    copy.write_bytes((digits_original / "data/digits" / name).read_bytes())
    flip(copy, 100)
    return copy


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_scanner_that_there_is_not_is_one_line_and_exit_2(cli, shard, jobs, monkeypatch) -> None:
    monkeypatch.setenv("TFRECREG_SCANNER", "fast")
    done = cli("check", shard, "--jobs", jobs)
    assert done.code == 2
    assert done.out == ""
    assert done.err.splitlines() == [
        "error: `TFRECREG_SCANNER` should be `auto`, `native` or `python`, found `fast`",
    ]


def test_a_compiled_scanner_that_is_not_there_is_exit_3(cli, shard, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(scanner_module, "LIBRARY", tmp_path / "none")
    monkeypatch.setenv("TFRECREG_SCANNER", "native")
    scanner_module.load_scanner.cache_clear()
    try:
        done = cli("check", shard)
    finally:
        scanner_module.load_scanner.cache_clear()
    assert done.code == 3
    assert done.err.splitlines() == [
        "error: there is no compiled scanner: it was not compiled",
        "hint: install tfrecreg where there is a C compiler",
    ]


def test_plugins_list_says_which_scanner_reads(cli, monkeypatch) -> None:
    monkeypatch.setenv("TFRECREG_SCANNER", "python")
    done = cli("plugins", "list")
    assert done.out.splitlines()[-1] == "scanner: python (TFRECREG_SCANNER=python)"
    found = cli("plugins", "list", "--json").json["scanner"]
    assert found == {"kind": "python", "detail": "TFRECREG_SCANNER=python"}
