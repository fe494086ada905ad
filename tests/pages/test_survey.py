"""The survey of records, batch by batch."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from scan_support import shard

import tfrecreg
from tfrecreg.operations.page.survey import Survey, SurveyVisitor
from tfrecreg.records.batch import RecordBatch, StreamEnd
from tfrecreg.records.reader import scan
from tfrecreg.storage.local import LocalStorage


def survey(folder: Path, *sides: int) -> Survey:
    """The survey of batches of 40 images, square ones of these sides, in this order."""
    storage = LocalStorage(folder)
    visitor = SurveyVisitor((), ("image/class/label",), shard(storage, "all"))
    for number, side in enumerate(sides):
        out = BytesIO()
        Image.new("L", (side, side)).save(out, "PNG")
        with tfrecreg.TFRecordWriter(folder / str(number)) as writer:
            for label in range(40):
                writer.write({"image/encoded": out.getvalue(), "image/class/label": label % 4})
        batches = [each for each in scan(storage, str(number)) if isinstance(each, RecordBatch)]
        assert len(batches) == 1
        visitor.batch(batches[0])
    return visitor.close(StreamEnd("none", 0, 0, 0, 0, None, None))


@pytest.mark.parametrize("sides", [(9, 12), (12, 9), (9, 9, 12, 5)])
def test_extremes_are_those_of_all_batches(tmp_path: Path, sides: tuple[int, ...]) -> None:
    """Also where each batch has images of one size."""
    found = survey(tmp_path, *sides).extremes
    assert found["largest"][0].order == -(max(sides) ** 2)
    assert found["smallest"][0].order == min(sides) ** 2


def test_sizes_and_classes_are_counted_over_batches(tmp_path: Path) -> None:
    found = survey(tmp_path, 9, 12, 9)
    assert found.records == 120
    assert found.sizes == {(9, 9): 80, (12, 12): 40}
    assert found.classes == {"image/class/label": {0: 30, 1: 30, 2: 30, 3: 30}}
    # Equal records have equal hashes, and the first of them are kept.
    assert {label: len(picks) for label, picks in found.samples.items()} == {
        None: 48,
        0: 8,
        1: 8,
        2: 8,
        3: 8,
    }
