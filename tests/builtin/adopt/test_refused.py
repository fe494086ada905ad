"""What cannot be adopted is refused, and what lies there stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from foreign_support import SEQUENCES, example, put
from tests_support import flip, tree

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.cli.digits import write_digits
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import FailureError, RefusedError, UsageError


class TestRefused:
    def refused(self, adopter: Any, *paths: Path, **more: Any) -> RefusedError:
        with pytest.raises(RefusedError) as caught:
            adopter.adopt(*paths, **more)
        assert not adopter.data().exists()
        assert not adopter.stage.exists() or list(adopter.stage.iterdir()) == []
        assert not (adopter.root / "schemas/pets.pbtxt").exists()
        return caught.value

    def test_damage_is_named_and_salvage_is_hinted_at(self, adopter) -> None:
        path = adopter.foreign / "train-00001-of-00003.tfrecord"
        flip(path, 14)
        error = self.refused(adopter)
        (finding,) = error.findings
        assert (finding.code, finding.locations[0].shard) == ("CRC002", str(path))
        assert error.hint.startswith("`tfrecreg salvage FILE.. --output DIR`")

    @pytest.mark.parametrize(
        ("name", "payloads", "code", "record"),
        [
            ("test.tfrecord", [*map(example, range(9)), b"\xff"], "SCH001", 9),
            ("test00-3.tfrec", [example(1), example(2)], "SHD003", None),
            ("train-00003-of-00003.tfrecord", [example(9)], "SHD006", None),
            ("test.tfrecord", None, "CRC008", None),
        ],
    )
    def test_a_file_that_contradicts_its_name_or_the_others(
        self, adopter, name: str, payloads: list[bytes] | None, code: str, record: int | None
    ) -> None:
        if payloads is None:
            (adopter.foreign / name).write_bytes(b"this is not a TFRecord at all")
        else:
            put(adopter.foreign / name, *payloads)
        (finding,) = self.refused(adopter).findings
        assert (finding.code, finding.locations[0].record) == (code, record)

    def test_two_compressions_make_no_build(self, adopter) -> None:
        put(adopter.foreign / "test.tfrecord", example(1), packed=True)
        with pytest.raises(UsageError, match="a build has one compression"):
            adopter.adopt()
        assert not adopter.data().exists()

    def test_a_set_that_is_not_whole(self, adopter) -> None:
        (adopter.foreign / "train-00001-of-00003.tfrecord").unlink()
        (finding,) = self.refused(adopter).findings
        assert finding.code == "SHD001"
        assert finding.message == (
            f"2 of 3 shards of `{adopter.foreign}/train.tfrecord` are present"
        )

    def test_sequences_under_a_schema_of_examples(self, adopter, tmp_path) -> None:
        (tmp_path / "s.pbtxt").write_text('feature { name: "n" type: INT }')
        put(tmp_path / "s/x.tfrecord", *SEQUENCES)
        error = self.refused(adopter, tmp_path / "s", schema=str(tmp_path / "s.pbtxt"))
        assert [finding.code for finding in error.findings] == ["SCH001"]

    def test_the_gate_can_accept_it(self, adopter) -> None:
        (adopter.foreign / "train-00001-of-00003.tfrecord").unlink()
        with (adopter.root / "tfrecreg.toml").open("a") as file:
            file.write('\n[gates.pets.severity]\nSHD001 = "warning"\n')
        assert len(adopter.adopt().manifest.shards) == 3
        assert adopter.passes()

    def test_a_lowered_finding_is_not_the_reason(self, adopter) -> None:
        (adopter.foreign / "train-00001-of-00003.tfrecord").unlink()
        flip(adopter.foreign / "train-00000-of-00003.tfrecord", 14)
        with (adopter.root / "tfrecreg.toml").open("a") as file:
            file.write('\n[gates.pets.severity]\nCRC002 = "warning"\n')
        error = self.refused(adopter)
        assert [finding.code for finding in error.findings] == ["CRC002", "SHD001"]
        assert "2 of 3 shards" in error.message
        assert "salvage" not in error.hint

    def test_an_empty_file_has_no_compression(self, adopter) -> None:
        for path in adopter.foreign.glob("*.tfrecord"):
            path.unlink()
        put(adopter.foreign / "train.tfrecord", example(1), packed=True)
        put(adopter.foreign / "test.tfrecord")
        assert adopter.adopt().manifest.compression == "gzip"
        assert adopter.check()["status"] == "pass"

    def test_files_without_a_record(self, adopter, tmp_path) -> None:
        put(tmp_path / "none/a.tfrecord")
        with pytest.raises(UsageError, match="there is no record in the 1 files"):
            adopter.adopt(tmp_path / "none")

    def test_a_split_with_a_name_that_no_shard_can_have(self, adopter, tmp_path) -> None:
        put(tmp_path / "a.tfrecord", example(1))
        with pytest.raises(UsageError, match="`my split` is not a split name"):
            adopter.adopt(tmp_path / "a.tfrecord", splits=(("my split", "a*"),))

    def test_a_part_of_a_set_that_lies_there_whole(self, adopter) -> None:
        with pytest.raises(UsageError) as caught:
            adopter.adopt(adopter.foreign / "train-00000-of-00003.tfrecord")
        assert caught.value.message == (
            f"only 1 of the 3 shards of `{adopter.foreign}/train.tfrecord` would be adopted, "
            "although the same folder has 2 more"
        )

    def test_a_file_that_cannot_be_read(self, adopter) -> None:
        (adopter.foreign / "test.tfrecord").symlink_to("gone")
        with pytest.raises(FailureError, match=r"test.tfrecord` was not read"):
            adopter.adopt()
        assert not adopter.data().exists()


class TestWhatWasThere:
    def test_files_that_are_no_build_are_not_replaced(self, adopter) -> None:
        put(adopter.data() / "precious.tfrecord", example(1))
        with pytest.raises(
            UsageError, match="`data/pets` holds files that do not belong to a build"
        ) as caught:
            adopter.adopt()
        assert "--in-place" in caught.value.hint
        assert [path.name for path in adopter.data().iterdir()] == ["precious.tfrecord"]

    def test_files_in_the_folder_of_the_build_are_not_copied_over_themselves(self, adopter) -> None:
        path = put(adopter.data() / "train.tfrecord", example(1))
        with pytest.raises(
            UsageError,
            match="is in the folder `data/pets`, and the new build would replace this folder",
        ):
            adopter.adopt(path)

    def test_a_build_that_can_be_made_again_is_replaced(self, adopter, tmp_path) -> None:
        write_digits(LocalStorage(tmp_path / "raw"), train=5, test=2, seed=1)
        request = BuildRequest(name="pets", source="mnist", raw=str(tmp_path / "raw"))
        build(adopter.registry, request)
        (adopter.root / "schemas/pets.pbtxt").unlink()
        adopter.adopt()
        assert adopter.passes()

    def test_an_adopted_build_that_was_never_released_is_not(self, adopter) -> None:
        adopter.adopt()
        before = tree(adopter.data())
        put(adopter.foreign / "test.tfrecord", example(200))
        with pytest.raises(UsageError, match="this build, would be lost") as caught:
            adopter.adopt()
        assert caught.value.hint.startswith("`tfrecreg release pets`")
        assert tree(adopter.data()) == before
        release(adopter.registry, ReleaseRequest(name="pets", version="1.0.0"))
        adopter.adopt()
        change = release(adopter.registry, ReleaseRequest(name="pets")).change
        assert (change.level, change.reasons) == ("minor", ["the split `test` is new: 1 example"])
        assert adopter.passes("pets@1.0.0")
