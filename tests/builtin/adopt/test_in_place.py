"""Files that lie where a build lies become one, and stay as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from foreign_support import example, put
from tests_support import flip, tree

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RefusedError, UsageError


class TestInPlace:
    @pytest.fixture
    def lying(self, adopter) -> Path:
        """The foreign files where a build lies, with others beside them."""
        adopter.foreign.rename(adopter.data())
        (adopter.data() / "notes.md").write_text("what this is")
        (adopter.data() / "deep").mkdir()
        put(adopter.data() / "deep/test.tfrecord", example(50))
        return Path(adopter.data())

    def test_the_files_stay_as_they_are(self, adopter, lying, snapshot) -> None:
        before = snapshot(lying)
        manifest = adopter.adopt(how="in-place").manifest
        after = snapshot(lying)
        assert {path: after[path] for path in before} == before
        assert [(shard.split, shard.path) for shard in manifest.shards] == [
            ("test", "deep/test.tfrecord"),
            ("train", "train-00000-of-00003.tfrecord"),
            ("train", "train-00001-of-00003.tfrecord"),
            ("train", "train-00002-of-00003.tfrecord"),
            ("validation", "val-00000-of-00001.tfrecord"),
        ]
        assert set(after) - set(before) == {
            "labels.json",
            "ledger.jsonl",
            "manifest.json",
            *(f"index/{shard.path}.index" for shard in manifest.shards),
        }
        assert adopter.keys("deep/test.tfrecord") == ["deep/test.tfrecord#0"]

    def test_what_lies_beside_them_is_a_file_of_the_build(self, adopter, lying) -> None:
        manifest = adopter.adopt(how="in-place").manifest
        assert "notes.md" in {entry.path for entry in manifest.files}
        assert adopter.passes()
        (lying / "notes.md").write_text("changed")
        assert [each["code"] for each in adopter.check()["findings"]] == ["SHD002"]

    def test_it_is_released_and_outlives_the_next_one(self, adopter, lying) -> None:
        adopter.adopt(how="in-place")
        release(adopter.registry, ReleaseRequest(name="pets", version="1.0.0"))
        put(lying / "extra.tfrecord", example(70))
        adopter.adopt(how="in-place", splits=(("extra", "extra*"),))
        released = release(adopter.registry, ReleaseRequest(name="pets"))
        assert str(released.version) == "1.1.0"
        assert adopter.passes("pets@1.0.0")
        assert adopter.passes("pets@1.1.0")

    def test_again_it_is_the_same_to_the_byte(self, adopter, lying) -> None:
        adopter.adopt(how="in-place")
        before = tree(lying)
        assert adopter.adopt(how="in-place").unchanged
        assert tree(lying) == before

    def test_what_a_killed_adoption_left_is_no_hindrance(self, adopter, lying) -> None:
        adopter.adopt(how="in-place")
        before = tree(lying)
        for name in ("manifest.json", "labels.json", "ledger.jsonl"):
            (lying / name).unlink()
        adopter.adopt(how="in-place")
        assert tree(lying) == before

    @pytest.mark.parametrize(
        "name", ["labels.json", "ledger.jsonl", "index/notes.txt", "index/a.index"]
    )
    def test_a_strangers_file_is_not_overwritten(self, adopter, lying, name: str) -> None:
        (lying / name).parent.mkdir(exist_ok=True)
        (lying / name).write_text("precious")
        before = tree(lying)
        with pytest.raises(UsageError, match="has a name that the build needs for itself"):
            adopter.adopt(how="in-place")
        assert tree(lying) == before

    def test_what_is_no_file_is_refused(self, adopter, lying) -> None:
        os.mkfifo(lying / "pipe")
        with pytest.raises(UsageError, match="`data/pets/pipe` is not a file"):
            adopter.adopt(how="in-place")

    def test_damage_leaves_all_as_it_is(self, adopter, lying) -> None:
        flip(lying / "train-00001-of-00003.tfrecord", 14)
        before = tree(lying)
        with pytest.raises(RefusedError):
            adopter.adopt(how="in-place")
        assert tree(lying) == before

    def test_files_that_lie_elsewhere_are_refused(self, adopter, lying, tmp_path) -> None:
        path = put(tmp_path / "x.tfrecord", example(1))
        with pytest.raises(UsageError, match="is not in `data/pets`"):
            adopter.adopt(path, how="in-place")

    def test_a_build_of_our_own_is_none_to_adopt(self, adopter, tmp_path) -> None:
        write_digits(LocalStorage(tmp_path / "raw"), train=5, test=2, seed=1)
        request = BuildRequest(name="pets", source="mnist", raw=str(tmp_path / "raw"))
        build(adopter.registry, request)
        with pytest.raises(UsageError, match="is a build that tfrecreg made"):
            adopter.adopt(how="in-place")
