"""The raw file of a record: where its source knows it, and it is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from image_support import png
from view_support import Viewing, serving

import tfrecreg as tr

NAMES = ("cat/a.png", "cat/b c.png", "dog/<b>\u202e.png")


@pytest.fixture
def viewing(tmp_path: Path) -> Iterator[Viewing]:
    for number, name in enumerate(NAMES):
        path = tmp_path / "raw/train" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(8, 8, seed=number))
    registry = tr.init(tmp_path / "registry", with_dvc=False)
    registry["pets"].build(source="imagefolder", raw=tmp_path / "raw")
    (tmp_path / "raw/train/cat/a.png").unlink()
    with serving("pets", registry=tmp_path / "registry") as found:
        yield found


def test_the_raw_file_is_named_where_it_is_there(viewing: Viewing, tmp_path: Path) -> None:
    records = [viewing.ask(f"/api/t/0/record/0/{each}") for each in range(3)]
    found = {each["key"]: each["raw"] for each in records}
    assert found.pop("cat/a.png") is None
    assert found == {
        "cat/b c.png": str(tmp_path / "raw/train/cat/b c.png"),
        "dog/<b>\\u202e.png": f"{tmp_path}/raw/train/dog/<b>\\u202e.png",
    }


def test_records_of_files_have_no_raw_file(tmp_path: Path) -> None:
    with tr.TFRecordWriter(tmp_path / "a.tfrecord", index=True) as writer:
        writer.write({"n": 1}, key="a.png")
    with serving(tmp_path / "a.tfrecord") as viewing:
        assert viewing.ask("/api/t/0/record/0/0")["raw"] is None
