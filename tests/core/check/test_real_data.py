"""TFRecords that others have published: counted as an independent reader counted them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tfrecreg.builtin.look.head import head
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.run import check
from tfrecreg.core.registry.shardset.target import find_target
from tfrecreg.core.workers.local import LocalEngine

pytestmark = [pytest.mark.realdata, pytest.mark.usefixtures("light_workers")]


@pytest.fixture
def census(realdata: Path) -> dict[str, int]:
    """Each file with its number of records."""
    with (realdata / "tfrecord/census.tsv").open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t")
        return {
            str(realdata / path): int(row["records"])
            for row in rows
            if (path := row["path"]) and (realdata / path).is_file()
        }


def test_all_of_them_pass_and_every_record_is_counted(census: dict[str, int]) -> None:
    assert len(census) > 50
    options = CheckOptions(only=("crc",))
    (report,) = check(list(census), options=options, engine=LocalEngine(2))
    assert (report.status, report.findings) == ("pass", ())
    assert (report.shards, report.records) == (len(census), sum(census.values()))


def test_the_head_of_each_is_shown_without_anything_to_mislead(census: dict[str, int]) -> None:
    for path, count in census.items():
        records = list(head(find_target(path), 3))
        assert len(records) == min(3, count)
        for record in records:
            for feature in record.features or ():
                assert feature.name.isprintable()
                assert feature.shown.isprintable()
