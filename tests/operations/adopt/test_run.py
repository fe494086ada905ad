"""What another tool wrote becomes a build like any other, or is refused, and nothing is lost."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from foreign_support import event, example, field, put, sequence, summary, write_set
from tests_support import flip, tree

from tfrecreg.engines import LocalEngine
from tfrecreg.errors import FailureError, RefusedError, UsageError
from tfrecreg.example import bytes_feature, decode, int64_feature
from tfrecreg.example.payload import fields
from tfrecreg.index import read_index
from tfrecreg.operations.adopt import AdoptRequest, adopt, preview_adopt
from tfrecreg.operations.builds import BuildRequest, build
from tfrecreg.operations.demo import write_digits
from tfrecreg.operations.release import ReleaseRequest, release
from tfrecreg.records import Records
from tfrecreg.storage import LocalStorage

SEQUENCES = [
    sequence({"n": int64_feature(number)}, {"s": [bytes_feature(b"x")] * number})
    for number in range(5)
]


def keys(adopter: Any, path: str, name: str = "pets") -> list[str]:
    index = adopter.data(name) / f"index/{path}.index"
    return read_index(index.read_bytes(), path).keys()


class TestBuild:
    def test_the_files_become_a_build_with_splits_and_counts(self, adopter) -> None:
        result = adopter.adopt()
        manifest = result.manifest
        assert manifest == adopter.manifest()
        assert {split.name: split.records for split in manifest.splits} == {
            "train": 7,
            "validation": 4,
        }
        assert [shard.path for shard in manifest.shards] == [
            "pets-train.tfrecord-00000-of-00003",
            "pets-train.tfrecord-00001-of-00003",
            "pets-train.tfrecord-00002-of-00003",
            "pets-validation.tfrecord-00000-of-00001",
        ]
        assert [shard.records for shard in manifest.shards] == [3, 2, 2, 4]
        assert dict(result.kinds) == {"example": 11}
        assert adopter.passes()

    def test_the_bytes_are_those_of_the_files(self, adopter, snapshot) -> None:
        before = snapshot(adopter.foreign)
        adopter.adopt()
        for number in range(3):
            path = adopter.data() / f"pets-train.tfrecord-{number:05d}-of-00003"
            inode, _, data = before[f"train-{number:05d}-of-00003.tfrecord"]
            assert path.read_bytes() == data
            assert path.stat().st_ino != inode
        assert snapshot(adopter.foreign) == before

    def test_every_digest_is_that_of_its_file(self, adopter) -> None:
        manifest = adopter.adopt().manifest
        for entry in (*manifest.shards, *manifest.files):
            data = (adopter.data() / entry.path).read_bytes()
            assert (entry.bytes, entry.blake3) == (len(data), blake3(data).hexdigest())
            assert entry.sha256 == hashlib.sha256(data).hexdigest()
        listed = {entry.path for entry in (*manifest.shards, *manifest.files)}
        assert set(tree(adopter.data())) == listed | {"manifest.json"}

    def test_the_manifest_names_no_place_and_no_raw_data(self, adopter) -> None:
        manifest = adopter.adopt().manifest
        assert (manifest.source.name, manifest.source.options) == ("adopt", {"payloads": "example"})
        assert manifest.raw.files == manifest.raw.stored == manifest.raw.decoded == 0
        assert {name: (each.items, each.written) for name, each in manifest.ledger.items()} == {
            "train": (7, 7),
            "validation": (4, 4),
        }
        assert (manifest.labels, manifest.codecs, manifest.salvaged) == ({}, {}, None)
        text = (adopter.data() / "manifest.json").read_text(encoding="utf-8")
        assert str(adopter.foreign.parent) not in text
        assert set(manifest.features) == {"label", "name", "numbers"}

    def test_again_it_is_the_same_to_the_byte(self, adopter, snapshot) -> None:
        first = adopter.adopt()
        before = tree(adopter.data())
        again = adopter.adopt()
        assert (first.unchanged, again.unchanged) == (False, True)
        assert tree(adopter.data()) == before

    def test_two_processes_make_the_same_build(self, adopter) -> None:
        one = adopter.adopt().manifest
        request = AdoptRequest(name="pets", paths=(str(adopter.foreign),))
        assert adopt(adopter.registry, request, engine=LocalEngine(2)).manifest == one

    def test_content_does_not_depend_on_shards_or_encoders(self, adopter, tmp_path) -> None:
        one = adopter.adopt().manifest
        other = tmp_path / "other"
        payloads = [example(number) for number in range(7)]
        put(other / "train-00000-of-00001", *reversed(payloads), packed=True)
        # The same features in another order: other bytes, the same record.
        loose = [_backwards(example(100 + number)) for number in range(4)]
        assert decode(loose[0]) == decode(example(100))
        assert loose[0] != example(100)
        put(other / "validation.tfrecord", *loose, packed=True)
        two = adopter.adopt(other, name="again").manifest
        assert (two.content, two.compression) == (one.content, "gzip")
        assert adopter.passes("again")

    def test_nothing_is_left_in_the_stage(self, adopter) -> None:
        adopter.adopt()
        assert not adopter.stage.exists() or list(adopter.stage.iterdir()) == []

    def test_gzip_of_another_tool_can_be_read_at_any_place(self, adopter, tmp_path) -> None:
        put(tmp_path / "one/x.tfrecord", *(example(n) for n in range(50)), packed=True)
        adopter.adopt(tmp_path / "one", name="packed")
        path = adopter.data("packed") / "packed-train.tfrecord-00000-of-00001"
        index = read_index((path.parent / f"index/{path.name}.index").read_bytes(), "index")
        assert index.members == ((0, 0),)
        with Records(path) as records:
            assert records[49] == example(49)

    def test_a_record_that_no_scan_holds_is_adopted(self, adopter, tmp_path) -> None:
        large = example(1, blob=bytes_feature(bytes(65 << 20)))
        put(tmp_path / "big/a.tfrecord", example(0), large, example(2))
        put(tmp_path / "packed/a.tfrecord", example(0), large, example(2), packed=True)
        plain = adopter.adopt(tmp_path / "big", name="big").manifest
        packed = adopter.adopt(tmp_path / "packed", name="packed").manifest
        assert plain.content == packed.content
        index = read_index((adopter.data("big") / plain.shards[0].index).read_bytes(), "index")
        assert index.digests[1].tobytes() == blake3(large).digest(16)


def _backwards(payload: bytes) -> bytes:
    """The same Example with its map entries in the opposite order."""
    ((_, start, end),) = fields(payload, 0, len(payload), 100)
    entries = [payload[a:b] for _, a, b in fields(payload, start, end, 100)]
    return field(1, b"".join(field(1, entry) for entry in reversed(entries)))


class TestWays:
    def test_linked_files_share_their_bytes(self, adopter) -> None:
        adopter.adopt(how="link")
        linked = adopter.data() / "pets-validation.tfrecord-00000-of-00001"
        source = adopter.foreign / "val-00000-of-00001.tfrecord"
        assert linked.stat().st_ino == source.stat().st_ino
        assert adopter.passes()
        source.write_bytes(b"")  # what the page on adopting warns of
        assert not adopter.passes()

    def test_a_symbolic_link_is_adopted_as_the_file_it_leads_to(self, adopter, tmp_path) -> None:
        (tmp_path / "links").mkdir()
        (tmp_path / "links/train.tfrecord").symlink_to(
            adopter.foreign / "val-00000-of-00001.tfrecord"
        )
        for how in ("copy", "link"):
            adopter.adopt(tmp_path / "links", name=how, how=how)
            path = adopter.data(how) / f"{how}-train.tfrecord-00000-of-00001"
            assert path.is_file()
            assert not path.is_symlink()
            assert adopter.passes(how)

    def test_a_dry_run_writes_nothing(self, adopter, snapshot) -> None:
        before = snapshot(adopter.root)
        request = AdoptRequest(name="pets", paths=(str(adopter.foreign),))
        plan = preview_adopt(adopter.registry, request)
        assert snapshot(adopter.root) == before
        assert [(file.shard.split, file.path) for file in plan.files][-1] == (
            "validation",
            "pets-validation.tfrecord-00000-of-00001",
        )


class TestKeys:
    def test_a_record_is_called_by_its_file_and_number(self, adopter) -> None:
        adopter.adopt()
        assert keys(adopter, "pets-train.tfrecord-00000-of-00003") == [
            f"train-00000-of-00003.tfrecord#{number}" for number in range(3)
        ]

    def test_folders_tell_files_of_one_name_apart(self, adopter, tmp_path) -> None:
        for split in ("train", "eval"):
            put(tmp_path / f"tfx/Split-{split}/data_tfrecord-00000-of-00001", example(1))
        adopter.adopt(tmp_path / "tfx", name="tfx")
        path = "tfx-eval.tfrecord-00000-of-00001"
        assert keys(adopter, path, "tfx") == ["Split-eval/data_tfrecord-00000-of-00001#0"]

    def test_a_feature_can_name_the_records(self, adopter) -> None:
        manifest = adopter.adopt(key="name").manifest
        assert keys(adopter, "pets-train.tfrecord-00001-of-00003") == ["item-0001", "item-0004"]
        assert manifest.source.options["key"] == "name"

    def test_findings_name_the_keys(self, adopter) -> None:
        adopter.adopt(key="name")
        flip(adopter.data() / "pets-validation.tfrecord-00000-of-00001", 14)
        (finding,) = adopter.check(only=("crc",))["findings"]
        assert finding["locations"][0]["key"] == "item-0100"

    def test_numbers_are_keys_too(self, adopter, tmp_path) -> None:
        payloads = [example(n, id=int64_feature(-n)) for n in range(3)]
        put(tmp_path / "n/x.tfrecord", *payloads)
        adopter.adopt(tmp_path / "n", name="n", key="id")
        assert keys(adopter, "n-train.tfrecord-00000-of-00001", "n") == ["0", "-1", "-2"]

    @pytest.mark.parametrize(
        ("key", "message"),
        [
            ("label", "two records of the split `train` have the key `0` in `label`"),
            ("numbers", "has no single value of bytes or int64 in `numbers`"),
            ("nothing", "record 0 of `{}/train-00000-of-00003.tfrecord` has no single value"),
        ],
    )
    def test_a_feature_that_names_no_record_is_refused(self, adopter, key, message) -> None:
        with pytest.raises(RefusedError) as caught:
            adopter.adopt(key=key)
        assert message.format(adopter.foreign) in caught.value.message
        assert caught.value.hint
        assert not adopter.data().exists()

    def test_a_key_may_come_again_in_another_split(self, adopter, tmp_path) -> None:
        for split in ("train", "test"):
            of = bytes_feature(split)
            put(tmp_path / f"s/{split}.tfrecord", example(1, of=of), example(2, of=of))
        adopter.adopt(tmp_path / "s", name="s", key="name")
        assert adopter.passes("s")


class TestSchema:
    def test_one_is_drafted_where_there_is_none(self, adopter) -> None:
        result = adopter.adopt()
        assert (result.schema_path, result.drafted) == ("schemas/pets.pbtxt", True)
        text = (adopter.root / "schemas/pets.pbtxt").read_text(encoding="utf-8")
        assert 'name: "label"' in text
        assert result.manifest.schema.blake3 == blake3(text.encode()).hexdigest()

    def test_the_datasets_own_is_what_records_are_held_against(self, adopter) -> None:
        path = adopter.root / "schemas/pets.pbtxt"
        path.parent.mkdir(exist_ok=True)
        path.write_text('feature { name: "label" type: INT int_domain { min: 1 max: 2 } }')
        with pytest.raises(RefusedError, match="the files of `pets` are not adopted") as caught:
            adopter.adopt()
        codes = {finding.code for finding in caught.value.findings}
        assert codes == {"SCH005", "SCH006"}
        places = [each.shard for finding in caught.value.findings for each in finding.locations]
        assert str(adopter.foreign / "train-00000-of-00003.tfrecord") in places
        assert not adopter.data().exists()

    def test_one_that_is_named_becomes_the_datasets_own(self, adopter, tmp_path) -> None:
        text = """
        feature { name: "name" type: BYTES } feature { name: "label" type: INT }
        feature { name: "numbers" type: FLOAT }
        """
        (tmp_path / "mine.pbtxt").write_text(text)
        result = adopter.adopt(schema=str(tmp_path / "mine.pbtxt"))
        assert (adopter.root / "schemas/pets.pbtxt").read_text() == text
        assert not result.drafted
        assert adopter.passes()
        adopter.adopt(schema=str(tmp_path / "mine.pbtxt"))  # the same again is no conflict

    def test_one_that_is_named_does_not_replace_another(self, adopter, tmp_path) -> None:
        adopter.adopt()
        (tmp_path / "mine.pbtxt").write_text('feature { name: "name" type: BYTES }')
        with pytest.raises(UsageError, match=r"`schemas/pets\.pbtxt` is the schema of `pets`"):
            adopter.adopt(schema=str(tmp_path / "mine.pbtxt"))

    def test_one_that_says_nothing_of_examples_is_refused(self, adopter) -> None:
        path = adopter.root / "schemas/pets.pbtxt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("# nothing\n")
        with pytest.raises(UsageError, match="describes no feature of Examples"):
            adopter.adopt()

    def test_one_that_was_changed_is_taken_by_adopting_in_place(self, adopter) -> None:
        adopter.adopt(key="name")
        before = adopter.manifest()
        path = adopter.root / "schemas/pets.pbtxt"
        path.write_text(path.read_text() + 'feature { name: "age" type: INT }\n')
        with pytest.raises(UsageError) as caught:
            release(adopter.registry, ReleaseRequest(name="pets", version="1.0.0"))
        assert caught.value.hint == "tfrecreg adopt pets --in-place"
        after = adopter.adopt(how="in-place").manifest
        assert (after.shards, after.files, after.source) == (
            before.shards,
            before.files,
            before.source,
        )
        assert after.schema != before.schema
        release(adopter.registry, ReleaseRequest(name="pets", version="1.0.0"))
        assert adopter.passes("pets@1.0.0")

    def test_in_place_the_keys_stay_what_they_were(self, adopter) -> None:
        adopter.adopt()
        path = adopter.root / "schemas/pets.pbtxt"
        path.write_text(path.read_text() + "# reviewed\n")
        adopter.adopt(how="in-place")
        assert keys(adopter, "pets-train.tfrecord-00000-of-00003")[0] == (
            "train-00000-of-00003.tfrecord#0"
        )


class TestOtherPayloads:
    @pytest.mark.parametrize(
        ("payloads", "kind"),
        [
            (SEQUENCES, "sequence_example"),
            ([event(1.0), event(2.0, summary(loss=0.5))], "event"),
            ([b"text", b"\xff\xfe"], "other"),
            ([*SEQUENCES, sequence({"n": int64_feature(1)}, {})[:-2]], "sequence_example"),
        ],
    )
    def test_they_are_adopted_released_and_checked(self, adopter, tmp_path, payloads, kind) -> None:
        put(tmp_path / "s/x.tfrecord", *payloads)
        result = adopter.adopt(tmp_path / "s", name="s")
        assert result.manifest.source.options == {"payloads": kind}
        assert not result.drafted
        found = adopter.check("s")
        assert (found["status"], found["findings"]) == ("pass", [])
        reasons = {each["validator"]: each["reason"] for each in found["skipped"]}
        assert reasons["schema"].startswith("not applicable to ")
        release(adopter.registry, ReleaseRequest(name="s", version="1.0.0"))
        assert adopter.passes("s@1.0.0")
        assert adopter.adopt(tmp_path / "s", name="s").unchanged

    def test_a_record_is_its_own_canonical_form(self, adopter, tmp_path) -> None:
        put(tmp_path / "s/x.tfrecord", *SEQUENCES)
        manifest = adopter.adopt(tmp_path / "s", name="s").manifest
        index = read_index((adopter.data("s") / manifest.shards[0].index).read_bytes(), "index")
        digests = [digest.tobytes() for digest in index.digests]
        assert digests == [blake3(payload).digest(16) for payload in SEQUENCES]

    def test_they_can_be_loaded_as_they_are(self, adopter, tmp_path) -> None:
        pytest.importorskip("tensorflow")
        from tfrecreg import load

        put(tmp_path / "s/x.tfrecord", *SEQUENCES, packed=True)
        adopter.adopt(tmp_path / "s", name="s")
        assert list(load("s", registry=adopter.root).as_numpy_iterator()) == SEQUENCES

    def test_tfds_cannot_have_them(self, adopter, tmp_path) -> None:
        from tfrecreg.operations.export import export

        put(tmp_path / "s/x.tfrecord", *SEQUENCES)
        adopter.adopt(tmp_path / "s", name="s")
        with pytest.raises(UsageError, match="`s` holds SequenceExamples, and TFDS reads Examples"):
            export(adopter.registry, "s", str(tmp_path / "out"), to="tfds")


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

    def test_what_is_no_tfrecord(self, adopter) -> None:
        (adopter.foreign / "test.tfrecord").write_bytes(b"this is no TFRecord at all")
        error = self.refused(adopter)
        assert [finding.code for finding in error.findings] == ["CRC008"]
        assert error.hint == "leave out what is no TFRecord"

    def test_a_set_that_is_not_whole(self, adopter) -> None:
        (adopter.foreign / "train-00001-of-00003.tfrecord").unlink()
        (finding,) = self.refused(adopter).findings
        assert finding.code == "SHD001"
        assert finding.message == (
            f"2 of 3 shards of `{adopter.foreign}/train.tfrecord` are present"
        )

    def test_a_count_that_does_not_hold(self, adopter, tmp_path) -> None:
        put(tmp_path / "k/train00-3.tfrec", example(1), example(2))
        (finding,) = self.refused(adopter, tmp_path / "k").findings
        assert (finding.code, finding.message) == ("SHD003", "its name says 3 records, found 2")

    def test_numbers_that_contradict_each_other(self, adopter) -> None:
        put(adopter.foreign / "train-00003-of-00003.tfrecord", example(9))
        codes = [finding.code for finding in self.refused(adopter).findings]
        assert codes == ["SHD006"]

    def test_junk_among_examples(self, adopter) -> None:
        put(adopter.foreign / "test.tfrecord", *(example(n) for n in range(9)), b"\xff")
        (finding,) = self.refused(adopter).findings
        assert (finding.code, finding.locations[0].record) == ("SCH001", 9)

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

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (
                lambda folder: put(folder / "test.tfrecord", example(1), packed=True),
                "`{0}/test.tfrecord` is gzip, `{0}/train-00000-of-00003.tfrecord` is not: a "
                "build has one compression",
            ),
            (lambda folder: write_set(folder, "dev", 2, 1), "are of two sets"),
        ],
    )
    def test_what_fits_no_build(
        self, adopter, make: Callable[[Path], object], message: str
    ) -> None:
        make(adopter.foreign)
        with pytest.raises(UsageError) as caught:
            adopter.adopt()
        assert message.format(adopter.foreign) in caught.value.message
        assert caught.value.hint
        assert not adopter.data().exists()

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

    def test_a_part_of_a_set_that_lies_there_whole(self, adopter) -> None:
        with pytest.raises(UsageError) as caught:
            adopter.adopt(adopter.foreign / "train-00000-of-00003.tfrecord")
        assert caught.value.message == (
            f"1 of the 3 shards of `{adopter.foreign}/train.tfrecord` are named, 2 more lie "
            "beside them"
        )

    def test_a_file_that_cannot_be_read(self, adopter) -> None:
        (adopter.foreign / "test.tfrecord").symlink_to("gone")
        with pytest.raises(FailureError, match=r"test.tfrecord` was not read"):
            adopter.adopt()
        assert not adopter.data().exists()

    @pytest.mark.parametrize("name", ["Pets", "", "a-b"])
    def test_a_bad_name(self, adopter, name: str) -> None:
        with pytest.raises(UsageError):
            adopter.adopt(name=name)

    def test_nothing_named(self, adopter) -> None:
        with pytest.raises(UsageError, match="no files are named"):
            adopt(adopter.registry, AdoptRequest(name="pets"))


class TestWhatWasThere:
    def test_files_that_are_no_build_are_not_replaced(self, adopter) -> None:
        put(adopter.data() / "precious.tfrecord", example(1))
        with pytest.raises(UsageError, match="`data/pets` holds files that are no build") as caught:
            adopter.adopt()
        assert "--in-place" in caught.value.hint
        assert [path.name for path in adopter.data().iterdir()] == ["precious.tfrecord"]

    def test_files_in_the_folder_of_the_build_are_not_copied_over_themselves(self, adopter) -> None:
        path = put(adopter.data() / "train.tfrecord", example(1))
        with pytest.raises(UsageError, match="lies in `data/pets`, which the build would replace"):
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
        with pytest.raises(UsageError, match="they would be lost") as caught:
            adopter.adopt()
        assert caught.value.hint.startswith("`tfrecreg release pets`")
        assert tree(adopter.data()) == before
        release(adopter.registry, ReleaseRequest(name="pets", version="1.0.0"))
        adopter.adopt()
        change = release(adopter.registry, ReleaseRequest(name="pets")).change
        assert (change.level, change.reasons) == ("minor", ["the split `test` is new: 1 example"])
        assert adopter.passes("pets@1.0.0")


class TestInPlace:
    @pytest.fixture
    def lying(self, adopter) -> Path:
        """The foreign files where a build lies, with others beside them."""
        adopter.foreign.rename(adopter.data())
        (adopter.data() / "README.md").write_text("what this is")
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
        assert keys(adopter, "deep/test.tfrecord") == ["deep/test.tfrecord#0"]

    def test_what_lies_beside_them_is_a_file_of_the_build(self, adopter, lying) -> None:
        manifest = adopter.adopt(how="in-place").manifest
        assert "README.md" in {entry.path for entry in manifest.files}
        assert adopter.passes()
        (lying / "README.md").write_text("changed")
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
        with pytest.raises(UsageError, match="`data/pets/pipe` is no file"):
            adopter.adopt(how="in-place")

    def test_damage_leaves_all_as_it_is(self, adopter, lying) -> None:
        flip(lying / "train-00001-of-00003.tfrecord", 14)
        before = tree(lying)
        with pytest.raises(RefusedError):
            adopter.adopt(how="in-place")
        assert tree(lying) == before

    def test_files_that_lie_elsewhere_are_refused(self, adopter, lying, tmp_path) -> None:
        path = put(tmp_path / "x.tfrecord", example(1))
        with pytest.raises(UsageError, match="does not lie in `data/pets`") as caught:
            adopter.adopt(path, how="in-place")
        assert "leave out `--in-place`" in caught.value.hint

    def test_nothing_there(self, adopter) -> None:
        with pytest.raises(UsageError):
            adopter.adopt(how="in-place")

    def test_a_build_of_our_own_is_none_to_adopt(self, adopter, tmp_path) -> None:
        write_digits(LocalStorage(tmp_path / "raw"), train=5, test=2, seed=1)
        request = BuildRequest(name="pets", source="mnist", raw=str(tmp_path / "raw"))
        build(adopter.registry, request)
        with pytest.raises(UsageError, match="is a build that tfrecreg made"):
            adopter.adopt(how="in-place")


def test_the_result_is_one_document(adopter) -> None:
    found = json.loads(json.dumps(adopter.adopt().to_json()))
    assert found["splits"] == {"train": 7, "validation": 4}
    assert found["kinds"] == {"example": 11}
    assert found["schema"] == {"path": "schemas/pets.pbtxt", "drafted": True}
    assert (found["shards"], found["compression"], found["unchanged"]) == (4, "none", False)
