"""What a validator finds in a few records, without a registry and without being installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit_support import Short

import tfrecreg
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import ValidatorRecord
from tfrecreg.testing import check_validator, write_shard


def test_a_class_is_checked_without_a_registry() -> None:
    report = check_validator(Short, [{"text": "one"}, {"text": ""}])
    assert [(each.code, each.count) for each in report.findings] == [("NOT001", 1)]
    assert "short" not in plugins().names(ValidatorRecord)


def test_records_have_keys_and_labels_where_they_are_given() -> None:
    report = check_validator(
        Short,
        [{"text": "one", "label": 1}, {"text": "", "label": 0}],
        keys=["first", "second"],
        labels={"label": ["bad", "good"]},
    )
    assert [place.key for place in report.findings[0].locations] == ["second"]


def test_an_installed_validator_takes_limits(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.tfrecord", [{"a": 1}])
    path = tmp_path / "a.tfrecord"
    assert check_validator("crc", path).validators == ("crc",)
    with pytest.raises(tfrecreg.UsageError, match=r"`limits\.duplicates\.no_such` is not known"):
        check_validator("duplicates", path, limits={"no_such": 1})
