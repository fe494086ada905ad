"""What was cut out of damaged shards is adopted with its mark: nobody takes it for whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_support import example, put
from tests_support import flip

from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.builtin.salvage.run import salvage
from tfrecreg.core.registry.manifest import read_mark
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RefusedError


@pytest.fixture
def rest(adopter, tmp_path) -> Path:
    """The foreign files, after one of them was damaged and salvaged."""
    flip(adopter.foreign / "train-00001-of-00003.tfrecord", 14)
    salvage([str(adopter.foreign)], tmp_path / "rest")
    return Path(tmp_path / "rest")


def test_the_mark_goes_into_the_manifest(adopter, rest) -> None:
    manifest = adopter.adopt(rest).manifest
    mark = read_mark(LocalStorage(rest), "")
    assert mark is not None
    assert manifest.salvaged == mark.digest
    assert sum(split.records for split in manifest.splits) == 10
    found = adopter.check()
    assert (found["status"], [each["code"] for each in found["findings"]]) == ("fail", ["SHD009"])


def test_it_is_released_only_where_somebody_accepts_that(adopter, rest) -> None:
    adopter.adopt(rest)
    with pytest.raises(RefusedError) as caught:
        release(adopter.registry, ReleaseRequest(name="pets", version="1.0.0"))
    assert [finding.code for finding in caught.value.findings] == ["SHD009"]
    with (adopter.root / "tfrecreg.toml").open("a") as file:
        file.write('\n[gates.pets.severity]\nSHD009 = "warning"\n')
    released = release(adopter.registry, ReleaseRequest(name="pets", version="1.0.0")).manifest
    assert released.salvaged is not None


def test_shards_that_lost_nothing_have_no_mark(adopter, rest) -> None:
    manifest = adopter.adopt(rest / "val-00000-of-00001.tfrecord").manifest
    assert manifest.salvaged is None
    assert adopter.passes()


def test_several_marks_make_one_of_their_own(adopter, rest, tmp_path) -> None:
    path = put(tmp_path / "more/test.tfrecord", example(1), example(2))
    flip(path, 14)
    salvage([str(path)], tmp_path / "rest2")
    both = adopter.adopt(rest, tmp_path / "rest2").manifest.salvaged
    one = adopter.adopt(rest, name="one").manifest.salvaged
    assert both is not None
    assert one is not None
    assert len(both) == len(one) == 64
    assert both != one


def test_in_place_the_report_is_a_file_of_the_build(adopter, rest) -> None:
    adopter.data().parent.mkdir(exist_ok=True)
    rest.rename(adopter.data())
    manifest = adopter.adopt(how="in-place").manifest
    assert manifest.salvaged is not None
    assert {"salvage.json", "train-00001-of-00003.tfrecord.quarantine"} <= {
        entry.path for entry in manifest.files
    }
    assert [each["code"] for each in adopter.check()["findings"]] == ["SHD009"]
