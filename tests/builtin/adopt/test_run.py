"""What another tool wrote becomes a build like any other, and nothing is lost."""

from __future__ import annotations

import hashlib

import pytest
from blake3 import blake3
from foreign_support import SEQUENCES, event, example, field, put, sequence, summary
from tests_support import tree

from tfrecreg.builtin.adopt.request import AdoptRequest
from tfrecreg.builtin.adopt.run import preview_adopt
from tfrecreg.builtin.releases.release import ReleaseRequest, release
from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.model import fields
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.records.index import read_index
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.values.errors import RefusedError, UsageError


class TestBuild:
    def test_the_files_become_a_build_with_splits_and_counts(self, adopter) -> None:
        result = adopter.adopt()
        manifest = result.manifest
        assert manifest == adopter.manifest()
        assert {split.name: split.records for split in manifest.splits} == {
            "train": 7,
            "validation": 4,
        }
        assert {split.name: split.payload_bytes for split in manifest.splits} == {
            "train": sum(len(example(number)) for number in range(7)),
            "validation": sum(len(example(100 + number)) for number in range(4)),
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

    def test_gzip_of_another_tool_can_be_read_at_any_place(self, adopter, tmp_path) -> None:
        put(tmp_path / "one/x.tfrecord", *(example(n) for n in range(50)), packed=True)
        adopter.adopt(tmp_path / "one", name="packed")
        path = adopter.data("packed") / "packed-train.tfrecord-00000-of-00001"
        index = read_index((path.parent / f"index/{path.name}.index").read_bytes(), "index")
        assert index.members == ((0, 0),)
        with Records(path) as records:
            assert records[49] == example(49)

    @pytest.mark.slow
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
        assert adopter.keys("pets-train.tfrecord-00000-of-00003") == [
            f"train-00000-of-00003.tfrecord#{number}" for number in range(3)
        ]

    def test_folders_tell_files_of_one_name_apart(self, adopter, tmp_path) -> None:
        for split in ("train", "eval"):
            put(tmp_path / f"tfx/Split-{split}/data_tfrecord-00000-of-00001", example(1))
        adopter.adopt(tmp_path / "tfx", name="tfx")
        path = "tfx-eval.tfrecord-00000-of-00001"
        assert adopter.keys(path, "tfx") == ["Split-eval/data_tfrecord-00000-of-00001#0"]

    def test_a_feature_can_name_the_records(self, adopter) -> None:
        manifest = adopter.adopt(key="name").manifest
        assert adopter.keys("pets-train.tfrecord-00001-of-00003") == ["item-0001", "item-0004"]
        assert manifest.source.options["key"] == "name"

    def test_numbers_are_keys_too(self, adopter, tmp_path) -> None:
        payloads = [example(n, id=int64_feature(-n)) for n in range(3)]
        put(tmp_path / "n/x.tfrecord", *payloads)
        adopter.adopt(tmp_path / "n", name="n", key="id")
        assert adopter.keys("n-train.tfrecord-00000-of-00001", "n") == ["0", "-1", "-2"]

    @pytest.mark.parametrize(
        ("key", "message"),
        [
            ("label", "two records of the split `train` have the key `0` in `label`"),
            ("numbers", "should have exactly one bytes or int64 value in `numbers`"),
            ("nothing", "record 0 of `{}/train-00000-of-00003.tfrecord` should have exactly"),
        ],
    )
    def test_a_feature_that_names_no_record_is_refused(self, adopter, key, message) -> None:
        with pytest.raises(RefusedError) as caught:
            adopter.adopt(key=key)
        assert message.format(adopter.foreign) in caught.value.message
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
        with pytest.raises(
            UsageError, match=r"`pets` already has the schema `schemas/pets\.pbtxt`"
        ):
            adopter.adopt(schema=str(tmp_path / "mine.pbtxt"))

    def test_one_that_says_nothing_of_examples_is_refused(self, adopter) -> None:
        path = adopter.root / "schemas/pets.pbtxt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("# nothing\n")
        with pytest.raises(UsageError, match="declares no features"):
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
        assert adopter.keys("pets-train.tfrecord-00000-of-00003")[0] == (
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
        is_sequence = kind == "sequence_example"
        assert result.drafted == is_sequence
        found = adopter.check("s")
        assert (found["status"], found["findings"]) == ("pass", [])
        reasons = {each["validator"]: each["reason"] for each in found["skipped"]}
        assert reasons.get("schema", "").startswith("not applicable to ") != is_sequence
        release(adopter.registry, ReleaseRequest(name="s", version="1.0.0"))
        assert adopter.passes("s@1.0.0")
        assert adopter.adopt(tmp_path / "s", name="s").unchanged

    def test_a_record_is_its_own_canonical_form(self, adopter, tmp_path) -> None:
        put(tmp_path / "s/x.tfrecord", *SEQUENCES)
        manifest = adopter.adopt(tmp_path / "s", name="s").manifest
        index = read_index((adopter.data("s") / manifest.shards[0].index).read_bytes(), "index")
        digests = [digest.tobytes() for digest in index.digests]
        assert digests == [blake3(payload).digest(16) for payload in SEQUENCES]

    @pytest.mark.medium
    def test_they_can_be_loaded_as_they_are(self, adopter, tmp_path) -> None:
        pytest.importorskip("tensorflow")
        from tfrecreg import load

        events = [event(1.0), event(2.0, summary(loss=0.5))]
        put(tmp_path / "s/x.tfrecord", *events, packed=True)
        adopter.adopt(tmp_path / "s", name="s")
        assert list(load("s", registry=adopter.root).as_numpy_iterator()) == events

    def test_sequences_without_a_schema_stay_payloads(self, adopter, tmp_path) -> None:
        from tfrecreg import data_source

        put(tmp_path / "s/x.tfrecord", *SEQUENCES)
        schema = adopter.root / "schemas/s.pbtxt"
        schema.parent.mkdir(exist_ok=True)
        schema.write_text("# nothing is known\n")
        assert not adopter.adopt(tmp_path / "s", name="s").drafted
        assert list(data_source("s", registry=adopter.root)) == SEQUENCES
