"""Bare files: what is in them is counted, and only what does not belong there is found."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from check_support import Document, document, framed
from foreign_support import event, example, put, sequence, summary, write_set

from tfrecreg.core.example.values import int64_feature

EXAMPLES = tuple(example(number) for number in range(9))
SEQUENCES = tuple(sequence({"n": int64_feature(n)}, {"s": []}) for n in range(4))
EVENTS = (event(1.5e9), event(1.5e9, summary(loss=0.5)))
SCHEMA = """
feature { name: "name" type: BYTES }
feature { name: "label" type: INT }
feature { name: "numbers" type: FLOAT }
"""


def codes(found: Document) -> list[str]:
    return sorted(each["code"] for each in found["findings"])


class TestKinds:
    @pytest.mark.parametrize(
        ("payloads", "kinds"),
        [
            (EXAMPLES, {"example": 9}),
            (SEQUENCES, {"sequence_example": 4}),
            (EVENTS, {"event": 2}),
            ((b"1 1", b"\xff"), {"other": 2}),
            ((*SEQUENCES, *EVENTS, b"x"), {"sequence_example": 4, "event": 2, "other": 1}),
        ],
    )
    def test_they_are_counted_and_none_is_called_corrupt(
        self, tmp_path: Path, payloads: tuple[bytes, ...], kinds: dict[str, int]
    ) -> None:
        found = document([put(tmp_path / "x.tfrecord", *payloads)])
        assert (found["status"], codes(found)) == ("pass", [])
        assert found["summary"]["kinds"] == found["measures"]["manifest.kinds"] == kinds

    @pytest.mark.medium
    def test_a_record_too_large_to_be_held_is_counted_as_such(self, tmp_path: Path) -> None:
        put(tmp_path / "x.tfrecord", *EXAMPLES, bytes((64 << 20) + 1))
        found = document([tmp_path], only=("manifest",))
        assert found["summary"]["kinds"] == {"example": 9, "too_large": 1}
        assert codes(found) == []

    def test_without_the_validator_nothing_is_counted(self, tmp_path: Path) -> None:
        found = document([put(tmp_path / "x.tfrecord", *EXAMPLES)], only=("crc",))
        assert "kinds" not in found["summary"]

    def test_a_build_is_not_counted(self, digits_original: Path) -> None:
        found = document(["digits"], digits_original)
        assert "kinds" not in found["summary"]


class TestSCH001:
    """In a set of Examples, what is none."""

    def test_one_record_of_junk_among_examples(self, tmp_path: Path) -> None:
        path = put(tmp_path / "train.tfrecord", *EXAMPLES[:5], b"\xffjunk", *EXAMPLES[5:])
        found = document([path])
        assert (found["status"], codes(found)) == ("fail", ["SCH001"])
        (finding,) = found["findings"]
        assert finding["message"] == "the payload should be a tf.train.Example"
        (place,) = finding["locations"]
        assert (place["split"], place["shard"], place["record"]) == ("train", str(path), 5)
        assert place["offset"] == len(framed(*EXAMPLES[:5]))
        assert place["detail"] == "found 5 bytes: ff 6a 75 6e 6b"

    @pytest.mark.parametrize(
        ("payload", "what"),
        [
            (SEQUENCES[0], "found a SequenceExample, "),
            (EVENTS[0], "found an event, "),
            (b"{}", "found 2 bytes: 7b 7d"),
        ],
    )
    def test_it_says_what_is_there_instead(self, tmp_path: Path, payload: bytes, what: str) -> None:
        found = document([put(tmp_path / "x.tfrecord", *EXAMPLES, payload)])
        (finding,) = found["findings"]
        assert finding["locations"][0]["detail"].startswith(what)

    def test_the_shards_of_a_set_are_judged_together(self, tmp_path: Path) -> None:
        put(tmp_path / "x-00000-of-00002", *EXAMPLES)
        put(tmp_path / "x-00001-of-00002", *SEQUENCES)
        found = document([tmp_path])
        assert codes(found) == ["SCH001"]
        assert found["findings"][0]["count"] == 4

    def test_files_of_no_set_are_judged_alone(self, tmp_path: Path) -> None:
        put(tmp_path / "x.tfrecord", *EXAMPLES)
        put(tmp_path / "y.tfrecord", *SEQUENCES)
        path = put(tmp_path / "strange name", b"x")
        assert codes(document([tmp_path, path])) == []

    def test_files_of_the_same_path_in_two_stores_are_two(self, memory: Any) -> None:
        memory.pipe({"/one/x": framed(*EXAMPLES, b"junk"), "/two/x": framed(*EXAMPLES)})
        (finding,) = document(["memory://one/x", "memory://two/x"], only=["manifest"])["findings"]
        assert (finding["code"], finding["count"]) == ("SCH001", 1)

    def test_examples_among_others_are_not_found(self, tmp_path: Path) -> None:
        """A SequenceExample without lists has the bytes of an Example."""
        lone = sequence({"n": int64_feature(1)}, {})[:-2]
        found = document([put(tmp_path / "x.tfrecord", *SEQUENCES, lone)])
        assert codes(found) == []
        assert found["summary"]["kinds"] == {"example": 1, "sequence_example": 4}

    def test_with_a_schema_the_schema_validator_finds_it_once(self, tmp_path: Path) -> None:
        (tmp_path / "s.pbtxt").write_text(SCHEMA)
        put(tmp_path / "x.tfrecord", *EXAMPLES, SEQUENCES[0], b"\xff")
        found = document([tmp_path / "x.tfrecord"], schema=str(tmp_path / "s.pbtxt"))
        (finding,) = found["findings"]
        assert (finding["code"], finding["count"]) == ("SCH001", 2)
        details = [each["detail"] for each in finding["locations"]]
        assert details[0].startswith("found a SequenceExample, ")
        assert details[1] == "found 1 byte: ff"

    def test_a_schema_of_examples_refuses_sequences(self, tmp_path: Path) -> None:
        (tmp_path / "s.pbtxt").write_text('feature { name: "n" type: INT }')
        put(tmp_path / "x.tfrecord", *SEQUENCES)
        found = document([tmp_path / "x.tfrecord"], schema=str(tmp_path / "s.pbtxt"))
        assert [(each["code"], each["count"]) for each in found["findings"]] == [("SCH001", 4)]


class TestUnnamed:
    """Shards that are beside those that were named are not missing."""

    def test_a_shard_of_a_set_that_lies_beside_it(self, tmp_path: Path) -> None:
        paths = write_set(tmp_path, "train", 12, 5)
        found = document(paths[1:2])
        assert (found["status"], codes(found)) == ("pass", [])
        assert found["measures"]["manifest.unnamed"] == 4

    def test_what_lies_nowhere_is_missing_still(self, tmp_path: Path) -> None:
        paths = write_set(tmp_path, "train", 12, 5)
        paths[3].unlink()
        found = document(paths[1:2])
        assert codes(found) == ["SHD001"]
        (finding,) = found["findings"]
        subject = tmp_path / "train.tfrecord"
        assert finding["message"] == f"4 of 5 shards of `{subject}` are present"
        assert finding["count"] == 1
        assert finding["locations"][0]["shard"] == str(paths[3])
        assert found["measures"]["manifest.unnamed"] == 3


class TestSets:
    @pytest.mark.parametrize(
        ("name", "numbers", "missing"),
        [
            ("x_{:03d}-of-003", (0, 2), "x_001-of-003"),
            ("x-{}-of-3", (1, 3), "x-2-of-3"),
            ("x-{:05d}-of-00003.tfrecord", (1, 2, 3), None),
            ("x{}of3.tfrecord", (0, 2), "x1of3.tfrecord"),
            ("x_{}_of_12.tfrecords", (0, 10), "x_1_of_12.tfrecords"),
            ("train.tfrecord-{:05d}-of-00003", (0, 1), "train.tfrecord-00002-of-00003"),
        ],
    )
    def test_the_missing_are_found_however_the_set_is_spelled(
        self, tmp_path: Path, name: str, numbers: tuple[int, ...], missing: str | None
    ) -> None:
        for number in numbers:
            put(tmp_path / name.format(number), *EXAMPLES)
        found = document([tmp_path], only=("manifest",))
        assert codes(found) == ["SHD001"] * (missing is not None)
        places = [place["shard"] for each in found["findings"] for place in each["locations"]]
        assert missing is None or f"{tmp_path}/{missing}" in places

    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (("train-00000-of-00002", "train-00001-of-00002"), ["SHD013"]),
            (("x_0.tfrecord", "x_1.tfrecord"), ["SHD013"]),
            (("train.tfrecord", "test.tfrecord"), ["SHD007"]),
            (("part-r-00000", "part-r-00001"), ["SHD007"]),
            (tuple(f"x-{number}-of-20" for number in range(20)), ["SHD007"] * 19),
        ],
    )
    def test_an_empty_shard_is_an_error_where_the_others_have_enough_records(
        self, tmp_path: Path, names: tuple[str, ...], expected: list[str]
    ) -> None:
        put(tmp_path / names[0], *EXAMPLES)
        for name in names[1:]:
            put(tmp_path / name)
        found = document([tmp_path], only=("manifest",))
        assert codes(found) == expected
        assert found["status"] == ("fail" if "SHD013" in expected else "pass")

    def test_zlib_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "x.tfrecord.zz"
        path.write_bytes(zlib.compress(b"".join(framed(each) for each in EXAMPLES)))
        found = document([tmp_path], only=("crc",))
        (finding,) = found["findings"]
        assert finding["code"] == "CRC008"
        assert "zlib" in finding["locations"][0]["detail"]


@pytest.mark.parametrize(
    ("records", "shards", "expected"),
    [(9, 2, []), (10, 2, ["SHD003"]), (9, 3, ["SHD001"])],
)
def test_a_folder_of_old_tfds_is_held_against_the_counts_that_it_has(
    tmp_path: Path, records: int, shards: int, expected: list[str]
) -> None:
    for number in range(2):
        name = f"pets-train.tfrecord-{number:05d}-of-{shards:05d}"
        put(tmp_path / name, *EXAMPLES[number * 5 :][:5])
    split = {
        "name": "train",
        "numShards": str(shards),
        "statistics": {"numExamples": str(records)},
    }
    info = {"name": "pets", "version": "1.0.0", "splits": [split]}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    assert codes(document([tmp_path], only=("manifest",))) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"label_map.pbtxt": 'item { id: 1 name: "b" }'}, ["ANN004"]),
        ({"label.labels.txt": "a\nb\n"}, []),
        ({"labels.txt": "a\n"}, ["ANN004"]),
        ({"../label_map.pbtxt": 'item { id: 1 name: "b" }'}, ["ANN004"]),
        ({"label_map.pbtxt": "item {"}, []),
    ],
)
def test_label_maps_beside_bare_files_are_used(
    tmp_path: Path, files: dict[str, str], expected: list[str]
) -> None:
    folder = tmp_path / "set"
    put(
        folder / "x.tfrecord",
        *(example(number, label=int64_feature(number % 2)) for number in range(4)),
    )
    for name, text in files.items():
        (folder / name).write_text(text)
    for target in (folder, folder / "x.tfrecord"):
        found = document([target], only=("annotations",))
        assert [each for each in codes(found) if each != "ANN005"] == expected
        told = found["measures"].get("annotations.labels")
        assert (told is None) == ("label.labels.txt" in files)
