"""A record as a page shows it."""

from __future__ import annotations

from tfrecreg.pages.records import PageRecord


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
