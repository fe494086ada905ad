"""TFRecords that other tools wrote and other projects publish."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.storage.local import LocalStorage

pytestmark = pytest.mark.realdata


def census(folder: Path) -> Iterator[dict[str, str]]:
    with (folder / "tfrecord" / "census.tsv").open(newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")


def read(folder: Path, path: str) -> tuple[list[int], list[Fault], StreamEnd]:
    lengths: list[int] = []
    faults: list[Fault] = []
    for event in scan(LocalStorage(str(folder)), path, digest=True):
        if isinstance(event, RecordBatch):
            lengths += event.lengths
        elif isinstance(event, Fault):
            faults.append(event)
        else:
            return lengths, faults, event
    raise AssertionError("no end came")


def test_every_published_file_is_read_as_an_independent_reader_did(realdata: Path) -> None:
    checked = 0
    for row in census(realdata):
        if not (realdata / row["path"]).is_file():
            continue
        lengths, faults, end = read(realdata, row["path"])
        least, most = (int(each) for each in row["min,max record bytes"].split(","))
        assert faults == [], row["path"]
        assert end.records == int(row["records"]), row["path"]
        assert end.file_bytes == int(row["bytes"])
        assert end.compression == row["compression"].lower()
        assert (min(lengths, default=0), max(lengths, default=0)) == (least, most)
        assert Records(realdata / row["path"]).lengths.tolist() == lengths
        checked += 1
    assert checked > 80


def test_array_records_are_no_tfrecords(realdata: Path) -> None:
    for number in range(2):
        path = f"tfrecord/grain/digits.array_record-0000{number}-of-00002"
        lengths, faults, _ = read(realdata, path)
        assert [fault.code for fault in faults] == ["CRC008"]
        assert lengths == []


def test_images_and_tables_are_no_tfrecords(realdata: Path) -> None:
    checked = 0
    for pattern in ("**/*.jpg", "**/*.png", "**/*.json", "**/*.csv", "**/*-ubyte.gz", "**/*.md"):
        for path in sorted(realdata.glob(pattern))[:15]:
            if path.is_file() and path.stat().st_size > 11:
                _, faults, _ = read(realdata, str(path.relative_to(realdata)))
                assert [fault.code for fault in faults] == ["CRC008"], path
                checked += 1
    assert checked > 30
