"""Exporters of another distribution are like others: help, options, workers, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plugin_support import install, with_site
from sources_support import tfrecreg
from tests_support import flip

PLUGIN = '''
import json
from dataclasses import dataclass

from tfrecreg.api import (
    Exporter, ExporterRecord, FailureError, RecordExporter, RecordFormat, UsageError, canonical,
    export_unchanged, hookimpl, keyed_examples,
)

@dataclass(frozen=True)
class Options:
    fault: str = ""
    """What goes wrong: ``loses``, ``raises``, ``refuses`` or ``names``."""

@dataclass(frozen=True)
class HexLines(RecordFormat):
    fault: str

    def write(self, task, records):
        if self.fault == "raises":
            raise ZeroDivisionError("nothing")
        with task.folder.create(task.name) as file:
            for number, record in enumerate(records):
                if self.fault != "loses" or number:
                    file.write(record.payload.hex().encode() + b"\\n")
        return task.entry.records

    def read(self, task):
        for line in task.folder.read(task.name).splitlines():
            yield canonical(bytes.fromhex(line.decode()))

class HexExporter(RecordExporter):
    Options = Options

    def expect(self):
        if self.options.fault == "refuses":
            raise UsageError("no hexes today")

    def file_name(self, split, number, of):
        return "same" if self.options.fault == "names" else f"{split}-{number + 1}-of-{of}.hex"

    def format(self):
        return HexLines(self.options.fault)

    def finish(self, folder, shards):
        yield from super().finish(folder, shards)
        yield f"{sum(each.seen for each in shards)} lines"

    def how_to_read(self, folder):
        return "read it: bytes.fromhex"

class Listing(Exporter):
    """The shards as they are, beside a list of them."""

    payloads = "any"

    def finish(self, folder, shards):
        with folder.create("list.json") as file:
            file.write(json.dumps([each.name for each in shards]).encode())
        return ()

class Stray:
    Options = Options
    expect = file_name = begin = verify = finish = how_to_read = len

@hookimpl
def tfrecreg_exporters():
    yield ExporterRecord(name="hex", summary="a line for each record", load=lambda: HexExporter)
    yield ExporterRecord(name="listing", summary="shards and a list", load=lambda: Listing)
    yield ExporterRecord(name="stray", summary="no exporter", load=lambda: Stray)
'''


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """An environment with a distribution that brings exporters: a module and its entry point."""
    install(tmp_path / "site", "hexes", PLUGIN)
    return with_site(tmp_path / "site")


@pytest.mark.medium
def test_records_are_written_read_back_and_compared(
    digits_original: Path, tmp_path: Path, site: dict[str, str]
) -> None:
    out = tmp_path / "out"
    done = tfrecreg(
        *("-C", digits_original, "export", "digits@1.0.0", "--to", "hex", out, "--jobs", "2"),
        env=site,
    )
    assert done.returncode == 0, done.stderr
    assert "  260 records in 4 shards (4 converted), " in done.stdout
    assert "  note: 260 lines\n" in done.stdout
    assert "content digest verified: " in done.stdout
    assert done.stdout.endswith("read it: bytes.fromhex\n")
    assert len((out / "train-1-of-2.hex").read_text().splitlines()) == 100
    assert json.loads((out / "tfrecreg.json").read_text())["to"] == "hex"


@pytest.mark.medium
def test_shards_are_verified_without_a_line_of_its_own(
    digits_original: Path, tmp_path: Path, site: dict[str, str]
) -> None:
    out = tmp_path / "out"
    done = tfrecreg(
        *("-C", digits_original, "export", "digits", "--to", "listing", out, "--json"), env=site
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["shards"], document["content"]) == ({"linked": 4}, None)
    names = json.loads((out / "list.json").read_text())
    assert sorted([*names, "list.json"]) == document["files"]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("to", "fault", "code", "message"),
    [
        ("hex", "loses", 3, "differs from the records of the shard `digits-"),
        ("hex", "raises", 3, "failed in `begin`: ZeroDivisionError: nothing (hexes_plugin.py, "),
        ("hex", "refuses", 2, "error: no hexes today\n"),
    ],
)
def test_its_faults_are_named_and_leave_nothing(
    digits_original: Path,
    tmp_path: Path,
    site: dict[str, str],
    to: str,
    fault: str,
    code: int,
    message: str,
) -> None:
    option = ("--option", f"fault={fault}")
    out = tmp_path / "out"
    done = tfrecreg(
        *("-C", digits_original, "export", "digits", "--to", to, out, "--jobs", "2", *option),
        env=site,
    )
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    if code == 3:
        assert f"the exporter `{to}` of `hexes` 1.0" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["site"]


@pytest.mark.medium
@pytest.mark.parametrize("to", ["hex", "listing"])
def test_a_damaged_shard_is_no_fault_of_the_exporter(
    digits_registry: Path, tmp_path: Path, site: dict[str, str], to: str
) -> None:
    flip(digits_registry / "data/digits/digits-train.tfrecord-00000-of-00002", 60)
    done = tfrecreg(
        *("-C", digits_registry, "export", "digits", "--to", to, tmp_path / "out"), env=site
    )
    assert done.returncode == 1, done.stderr
    assert "of `digits` cannot be exported" in done.stderr
    assert "the exporter" not in done.stderr
    assert not (tmp_path / "out").exists()
