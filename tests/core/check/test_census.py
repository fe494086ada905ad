"""TFRecords that others have published, file by file as an independent reader counted them.

That reader tells Examples and SequenceExamples by protobuf's own parser. What it calls
`otherproto` and `nonExample` is here an event, or of another kind.
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Mapping
from pathlib import Path

import pytest

from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.records.batch import StreamEnd
from tfrecreg.core.records.reader import scan
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.workers.local import LocalEngine

pytestmark = [pytest.mark.realdata, pytest.mark.usefixtures("light_workers")]


def kinds_of(row: Mapping[str, str]) -> dict[str, int]:
    said: dict[str, int] = ast.literal_eval(row["payload kinds"])
    found = {
        "example": said.pop("Example", 0),
        "sequence_example": said.pop("SequenceExample", 0),
        "other": said.pop("otherproto", 0) + said.pop("nonExample", 0),
    }
    assert not said
    return {kind: number for kind, number in found.items() if number}


def compression_of(root: Path, path: str) -> str:
    (end,) = (event for event in scan(LocalStorage(root), path) if isinstance(event, StreamEnd))
    return end.compression


@pytest.mark.slow
def test_every_file_agrees_in_compression_count_and_kind(realdata: Path) -> None:
    with (realdata / "tfrecord/census.tsv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    assert len(rows) == 104
    options = CheckOptions(only=("crc", "manifest"))
    events = 0
    for row in rows:
        path = realdata / row["path"]
        (report,) = check([str(path)], options=options, engine=LocalEngine(1))
        assert report.errors == ()
        # A file without records is a warning; nothing else is found, in none of them.
        assert {each.code for each in report.findings} <= {"SHD007"}, path
        assert report.records == int(row["records"]), path
        assert report.bytes == int(row["bytes"]), path
        assert compression_of(realdata, row["path"]) == row["compression"].lower(), path
        kinds = dict(report.kinds or {})
        event = kinds.pop("event", 0)
        if event:
            kinds["other"] = kinds.get("other", 0) + event
            assert "tfevents" in path.name
            events += 1
        assert kinds == kinds_of(row), path
    assert events == 3
