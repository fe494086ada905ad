"""A record as a page shows it."""

from __future__ import annotations

from pathlib import Path

import tfrecreg as tr
from tfrecreg.builtin.pages.records import PagePlace, PageRecord, read_records
from tfrecreg.core.registry.shardset.target import find_target


def test_classes_that_are_there_once_have_no_number() -> None:
    record = PageRecord(
        split="train",
        shard="a",
        record=0,
        offset=0,
        length=1,
        key=None,
        marks=(("cat", 1, 3), ("dog", 0, 1)),  # type: ignore[arg-type]
        features=(),
        more_features=0,
        image=None,
        problem="",
    )
    assert record.label == "cat × 3, dog"


def test_a_payload_that_is_no_example_shows_its_fields(tmp_path: Path) -> None:
    with tr.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(b"\x12\x05scene\x18\x07")
    target = find_target(str(tmp_path / "a.tfrecord"))
    (record,) = read_records(target, [PagePlace(target.shards[0].name, 0)]).values()
    assert [(each.name, each.shown) for each in record.features] == [("2", '"scene"'), ("3", "7")]
    assert record.problem == ""
