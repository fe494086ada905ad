"""Names of shards and splits, put together and taken apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.shards import (
    normal_split,
    normal_splits,
    parse_shard_name,
    shard_name,
)


class TestShardName:
    def test_is_the_one_that_tfds_reads(self) -> None:
        assert shard_name("mnist", "train", 0, 10) == "mnist-train.tfrecord-00000-of-00010"
        assert shard_name("m", "t", 123456, 1_234_567) == "m-t.tfrecord-123456-of-1234567"

    @pytest.mark.parametrize("split", ["", "a-b", "a/b", "é", "a b", "../x", "_a", "a\n"])
    def test_split_that_no_file_name_can_hold_is_refused(self, split: str) -> None:
        with pytest.raises(UsageError, match="is not a split name: expected letters, digits"):
            shard_name("mnist", split, 0, 1)

    @given(
        st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True),
        st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_]{0,8}", fullmatch=True)
        | st.sampled_from(["train", "dev", "Valid", "eval", "unsupervised_train", "test_dev"]),
        st.integers(0, 999_999),
        st.integers(1, 999),
    )
    def test_name_can_be_taken_apart_again(
        self, dataset: str, split: str, number: int, more: int
    ) -> None:
        found = parse_shard_name(shard_name(dataset, split, number, number + more))
        assert found is not None
        assert (found.prefix, found.split, found.number, found.of, found.records, found.stem) == (
            dataset,
            normal_split(split),
            number,
            number + more,
            None,
            f"{dataset}-{split}.tfrecord",
        )


class TestParseShardName:
    @pytest.mark.parametrize(
        ("name", "prefix", "split", "number", "of", "records"),
        [
            ("mnist-train.tfrecord-00003-of-00010", "mnist", "train", 3, 10, None),
            ("mnist-extra_1.tfrecord-00003-of-00010", "mnist", "extra_1", 3, 10, None),
            ("my-data-val.tfrecord-00000-of-00001", "my-data", "validation", 0, 1, None),
            ("coco-2017-train.tfrecord-00000-of-00001", "coco-2017", "train", 0, 1, None),
            ("a-b-c.tfrecord-00000-of-00001", "a", "b-c", 0, 1, None),
            ("train-00000-of-01024", "", "train", 0, 1024, None),
            ("validation-00127-of-00128", "", "validation", 127, 128, None),
            ("imagenet_train-00000-of-01024", "imagenet", "train", 0, 1024, None),
            ("prefix-00031-of-00032.tfrecord", "prefix", None, 31, 32, None),
            ("00031-of-00032.tfrecord", "", None, 31, 32, None),
            ("x.record-00003-of-00100", "x", None, 3, 100, None),
            ("coco_train.record-00003-of-00100", "coco", "train", 3, 100, None),
            ("coco_testdev.record-00003-of-00100", "coco", "testdev", 3, 100, None),
            ("coco_test-dev.record-00003-of-00100", "coco", "test-dev", 3, 100, None),
            ("coco_train2017.record-00003-of-00100", "coco", "train2017", 3, 100, None),
            ("x.record", "x", None, 0, None, None),
            ("x.tfrecord", "x", None, 0, None, None),
            ("x.tfrecords", "x", None, 0, None, None),
            ("x.TFRecord", "x", None, 0, None, None),
            ("x.tfrec", "x", None, 0, None, None),
            ("x.tfrecord.gz", "x", None, 0, None, None),
            ("pets_val.record", "pets", "validation", 0, None, None),
            ("TRAIN.tfrecords", "", "train", 0, None, None),
            ("train_12.tfrecord", "", "train", 12, None, None),
            ("data-007.tfrecords", "data", None, 7, None, None),
            ("file_00-4096.tfrec", "file", None, 0, None, 4096),
            ("train00-2071.tfrec", "", "train", 0, None, 2071),
            ("ld_test15-687.tfrec", "ld", "test", 15, None, 687),
            ("16-224x224-452.tfrec", "", None, 16, None, 452),
            ("train-00000-of-00001.tfrecord.gz", "", "train", 0, 1, None),
            ("data_tfrecord-00002-of-00012.gz", "data", None, 2, 12, None),
            ("transformed_examples-00000-of-00001.gz", "transformed_examples", None, 0, 1, None),
            ("toy.tfe-tfrecord-00001-of-00002", "toy.tfe", None, 1, 2, None),
            ("sentences.tfe-tfrecord", "sentences.tfe", None, 0, None, None),
            ("data_tfrecord.gz", "data", None, 0, None, None),
            ("test_reads.fastq.tfrecord.gz", "test_reads.fastq", None, 0, None, None),
            ("x-00010-of-00010", "x", None, 10, 10, None),
            ("x-00000-of-00000", "x", None, 0, 0, None),
            ("eval-00000-of-00002", "", "eval", 0, 2, None),
            ("caf\udce9-00000-of-00002", "caf\udce9", None, 0, 2, None),
        ],
    )
    def test_every_scheme_in_use_is_known(
        self,
        name: str,
        prefix: str,
        split: str | None,
        number: int,
        of: int | None,
        records: int | None,
    ) -> None:
        found = parse_shard_name(name)
        assert found is not None
        assert (found.prefix, found.split, found.number, found.of, found.records) == (
            prefix, split, number, of, records
        )  # fmt: skip

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "README.md",
            "train",
            "train.gz",
            "train.txt",
            "image.png",
            "00000",
            "tfrecord",
            ".tfrecord",
            "x.tfrecords.idx",
            "train-00000-of-00010.tfrecord.idx",
            "train-00000-of-00010.tfindex",
            "train-00000-of-00010.json",
            "mnist-train.tfrecord-00000-of-00010.index",
            "mnist-train.tfrecord-00000-of-00010.incomplete",
            "mnist-train.tfrecord-00000-of-",
            "mnist-train.tfrecord-1234567890-of-00010",
            "mnist-train.array_record-00000-of-00010",
            "mnist-train.riegeli-00000-of-00010",
            "part.parquet-00000-of-00010",
            "variables.data-00000-of-00001",
            "model.ckpt.data-00000-of-00001",
            "._train-00000-of-00010",
            ".train.tfrecord.0123456789abcdef.tmp",
            "folder/train-00000-of-00010",
            "train-00000-of-00010\n",
            "train-٣-of-٤",
            "name@1000",
        ],
    )
    def test_other_names_are_none(self, name: str) -> None:
        assert parse_shard_name(name) is None

    def test_stem_tells_sets_apart(self) -> None:
        stems = {
            name: parse_shard_name(name)
            for name in (
                "a-train.tfrecord-00000-of-00002",
                "a-train.tfrecord-00001-of-00002",
                "a-train.tfrecord-00001-of-00003",
                "a-val.tfrecord-00000-of-00002",
                "train-00000-of-00002",
                "train-00000-of-00002.tfrecord",
                "train-00000-of-00002.tfrecord.gz",
                "train00-71.tfrec",
                "train01-72.tfrec",
                "x_1.tfrecord",
            )
        }
        assert [found and found.stem for found in stems.values()] == [
            *["a-train.tfrecord"] * 3,
            "a-val.tfrecord",
            "train",
            "train.tfrecord",
            "train.tfrecord.gz",
            *["train.tfrec"] * 2,
            "x.tfrecord",
        ]

    @pytest.mark.parametrize(
        ("name", "plain", "ended"),
        [
            ("1-" * 20_000, None, ("1-" * 20_000, 0, None)),
            ("-of-0" * 10_000, ("-of-0" * 9_998 + "-of", 0, 0), ("-of-0" * 9_998 + "-of", 0, 0)),
            (".tfrecord" * 10_000 + "x", None, None),
            ("a_1" * 20_000, None, ("a_1" * 19_999 + "a", 1, None)),
        ],
        ids=["numbers", "counts", "endings", "words"],
    )
    def test_long_hostile_names_are_read_to_their_end(
        self, name: str, plain: tuple[str, int, int | None] | None, ended: Any
    ) -> None:
        for end, expected in (("", plain), (".tfrec", ended), (".tfrecord", ended), ("!", None)):
            found = parse_shard_name(name + end)
            assert (found and (found.prefix, found.number, found.of)) == expected

    @pytest.mark.realdata
    def test_real_files_are_known(self, realdata: Path) -> None:
        names = {
            path.name
            for path in realdata.rglob("*")
            if path.is_file() and path.name.endswith((".tfrecord", ".tfrecord.gz", ".tfrecords"))
        }
        assert names
        assert [name for name in sorted(names) if parse_shard_name(name) is None] == []


class TestNormalSplit:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("train", "train"),
            ("TRAIN", "train"),
            ("Training", "train"),
            ("val", "validation"),
            ("Valid", "validation"),
            ("VALIDATION", "validation"),
            ("dev", "validation"),
            ("test", "test"),
            ("Testing", "test"),
            ("eval", "eval"),
            ("Extra", "Extra"),
            ("train2017", "train2017"),
            ("trainval", "trainval"),
            ("test_dev", "test_dev"),
            (" train", " train"),
            ("", ""),
        ],
    )
    def test_only_what_is_sure_is_changed(self, text: str, expected: str) -> None:
        assert normal_split(text) == expected

    def test_splits_are_never_merged(self) -> None:
        assert normal_splits(["Train", "val", "test"]) == {
            "Train": "train",
            "val": "validation",
            "test": "test",
        }
        assert normal_splits(["train", "val", "dev"]) == {
            "train": "train",
            "val": "val",
            "dev": "dev",
        }
        assert normal_splits(["validation", "valid"]) == {
            "validation": "validation",
            "valid": "valid",
        }
