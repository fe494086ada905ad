"""TFRecords that others have published: counted as an independent reader counted them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tfrecreg.builtin.look.head import Choice, head
from tfrecreg.core.registry.find import find_target

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


def test_the_head_of_each_is_shown_without_anything_to_mislead(census: dict[str, int]) -> None:
    for path, count in census.items():
        records = list(head(find_target(path), Choice(3)))
        assert len(records) == min(3, count)
        for record in records:
            for feature in record.features or ():
                assert feature.name.isprintable()
                assert feature.shown.isprintable()
