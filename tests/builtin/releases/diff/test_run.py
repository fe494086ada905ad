"""What became of examples, features and labels, and which number that asks for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from diff_support import SCHEMA, example, put_build, put_release
from rich.console import Console
from tests_support import flip

from tfrecreg.builtin.releases.diff.printed import print_diff
from tfrecreg.builtin.releases.diff.result import diff
from tfrecreg.builtin.releases.diff.verdict import classify
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.manifest import parse_manifest, render_manifest, seal
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.text import json_data, si_bytes

TWO = {"train": [{"a": example(1), "b": example(2)}], "test": [{"a": example(9)}]}


def keys(result, kind: str) -> list[str]:
    return [each.key for each in result.examples.get(kind, ())]


def test_nothing_differs(compare) -> None:
    result = compare(TWO, TWO)
    assert result.same
    assert result.order == "same"
    assert set(result.totals.values()) == {0}
    assert (result.change.level, result.version) == ("patch", "1.0.1")
    assert result.change.reasons == ["the same examples in the same order"]
    assert (result.shards.kept, result.shards.new, result.shards.gone) == (2, 0, 0)


def test_examples_were_added(compare) -> None:
    result = compare(TWO, {**TWO, "train": [*TWO["train"], {"c": example(3)}]})
    assert keys(result, "added") == ["c"]
    assert (result.change.level, result.version) == ("minor", "1.1.0")
    assert result.change.reasons == ["1 example was added to the split `train`"]
    assert (result.shards.kept, result.shards.new, result.shards.gone) == (2, 1, 0)
    split = next(each for each in result.splits if each.name == "train")
    assert (split.records_before, split.records_after, split.added) == (2, 3, 1)
    assert not result.same


@pytest.mark.parametrize("kind", ["added", "removed"])
def test_examples_of_one_side_are_in_order_of_their_keys(compare, kind: str) -> None:
    names = ["7/a", "2/b", "3/c", "10/d", "ä", *(f"{n}" for n in range(90, 60, -1))]
    more = {"train": [*TWO["train"], {name: example(n) for n, name in enumerate(names, 20)}]}
    sides = [TWO, {**TWO, **more}]
    result = compare(*(sides if kind == "added" else reversed(sides)))
    assert keys(result, kind) == sorted(names)[:20]
    assert [each.key for each in result.records()] == sorted(names)


def test_a_split_was_added(compare) -> None:
    result = compare(TWO, {**TWO, "validation": [{"v": example(30), "w": example(31)}]})
    assert result.change.level == "minor"
    assert result.change.reasons == ["the split `validation` is new: 2 examples"]
    (split,) = (each for each in result.splits if each.name == "validation")
    assert (split.records_before, split.records_after, split.added) == (None, 2, 2)


def test_an_example_is_gone(compare) -> None:
    result = compare(TWO, {**TWO, "train": [{"a": example(1)}]})
    assert keys(result, "removed") == ["b"]
    assert (result.change.level, result.version) == ("major", "2.0.0")
    assert result.change.reasons == ["1 example of the split `train` is gone"]


def test_a_split_is_gone(compare) -> None:
    result = compare(TWO, {"train": TWO["train"]})
    assert keys(result, "removed") == ["a"]
    assert result.change.level == "major"
    assert result.change.reasons == ["the split `test` is gone"]
    (split,) = (each for each in result.splits if each.name == "test")
    assert (split.records_before, split.records_after) == (1, None)


def test_an_example_changed_and_its_features_are_named(compare) -> None:
    changed = example(2, label=int64_feature(7))
    result = compare(TWO, {**TWO, "train": [{"a": example(1), "b": changed}]})
    (found,) = result.examples["changed"]
    assert (found.key, found.split, found.shard) == (
        "b",
        "train",
        "d-train.tfrecord-00000-of-00001",
    )
    assert (found.record, found.features_changed) == (1, ("label",))
    assert found.labels == (("label", "2", "7"),)
    assert {name: each.changed for name, each in result.features.items()} == {"label": 1}
    assert result.change.level == "major"
    assert result.change.reasons == [
        "1 label changed",
        "1 example of the split `train` was changed in `label`",
    ]


def test_labels_that_changed_are_counted_with_the_names_of_their_classes(compare) -> None:
    before = {"train": [{str(n): example(n) for n in range(9)}]}
    after = {"train": [{str(n): example(n, label=int64_feature(1)) for n in range(9)}]}
    names = {"label": ["cat", "dog", "2"]}
    result = compare(before, after, labels=names, first_labels=names)
    assert [(each.before, each.after, each.count) for each in result.labels] == [
        ("0 (cat)", "1 (dog)", 3),
        ("2", "1 (dog)", 3),
    ]
    assert result.totals["changed"] == 6


def test_long_class_names_are_cut_between_characters(compare) -> None:
    sides = [
        {"train": [{"a": example(1, label=bytes_feature(name))}]}
        for name in ("a" + "ö" * 300, "日" * 300)
    ]
    result = compare(*sides, labels={"label": ["x"]})
    ((_, before, after),) = result.examples["changed"][0].labels
    assert (before, after) == ("a" + "ö" * 99, "日" * 100)


def test_numbers_that_are_classes_by_the_schema_are_labels(compare) -> None:
    schema = SCHEMA + (
        'feature { name: "animal" type: INT int_domain { min: 0 max: 9 is_categorical: true } }\n'
        'feature { name: "age" type: INT int_domain { min: 0 max: 9 } }\n'
    )
    one, other = ({"animal": int64_feature(n), "age": int64_feature(n)} for n in (4, 5))
    before, after = ({"train": [{"a": example(1, **each)}]} for each in (one, other))
    result = compare(before, after, schema=schema, first_schema=schema)
    assert [(each.feature, each.before, each.after) for each in result.labels] == [
        ("animal", "4", "5")
    ]


def test_features_that_were_added_are_minor_where_nothing_else_changed(compare) -> None:
    more = {"width": int64_feature(28)}
    after = {"train": [{"a": example(1, **more), "b": example(2, **more)}], "test": TWO["test"]}
    result = compare(TWO, after)
    assert result.totals["changed"] == 2
    assert result.features["width"].added == 2
    assert (result.change.level, result.version) == ("minor", "1.1.0")
    assert result.change.reasons == ["the feature `width` was added to 2 examples"]


@pytest.mark.parametrize(
    "other",
    [
        {"label": int64_feature(5), "width": int64_feature(1)},
        {"label": float_feature(2.0), "width": int64_feature(1)},
        {"image/encoded": bytes_feature(b"other"), "width": int64_feature(1)},
    ],
    ids=["value", "kind", "image"],
)
def test_features_that_were_added_beside_a_change_are_major(compare, other) -> None:
    after = {**TWO, "train": [{"a": example(1, width=int64_feature(1)), "b": example(2, **other)}]}
    result = compare(TWO, after)
    assert result.change.level == "major"
    assert result.features["width"].added == 2


def test_a_feature_that_was_removed_is_major(compare) -> None:
    after = {**TWO, "train": [{"a": example(1), "b": {"label": int64_feature(2)}}]}
    result = compare(TWO, after)
    assert result.examples["changed"][0].features_removed == ("image/encoded",)
    assert result.change.level == "major"
    assert result.change.reasons == [
        "1 example of the split `train` was changed in `image/encoded`"
    ]


def test_without_the_bytes_of_the_first_side_the_number_is_the_safe_one(compare) -> None:
    more = {"width": int64_feature(28)}
    after = {"train": [{"a": example(1, **more), "b": example(2, **more)}], "test": TWO["test"]}
    result = compare(TWO, after, keep_bytes=False)
    assert (result.compared, result.unread) == (0, 2)
    assert result.unread_reason == "the bytes of `d@1.0.0` are not on this machine"
    assert result.change.level == "major"
    assert result.change.reasons == [
        "2 examples of the split `train` were changed",
        "it is unknown whether they only gained features: "
        "the bytes of `d@1.0.0` are not on this machine",
    ]
    assert result.examples["changed"][0].features_changed == ()


def test_what_is_in_a_shard_of_its_own_needs_no_index_of_the_first_side(compare) -> None:
    after = {**TWO, "train": [*TWO["train"], {"c": example(3)}]}
    # The shard's name says of how many it is one, so its index has another name and the same bytes.
    result = compare(TWO, after, keep_bytes=False, keep_indexes=False)
    assert result.change.level == "minor"
    assert keys(result, "added") == ["c"]


def test_a_rewritten_shard_whose_old_index_is_gone_is_unknown(compare) -> None:
    rewritten = {**TWO, "train": [{"a": example(1), "b": example(2), "c": example(3)}]}
    result = compare(TWO, rewritten, keep_bytes=False, keep_indexes=False)
    assert result.change.level == "major"
    assert result.change.reasons == [
        "the split `train` may have lost examples: its indexes are not on this machine"
    ]
    assert result.change.counts is None
    known = {split.name: split.known for split in result.splits}
    assert known == {"test": True, "train": False}
    assert not result.known
    document = json_data(result)
    assert set(document["totals"].values()) == {None}
    test, train = document["splits"]
    assert (train["known"], train["added"], train["moved_out"]) == (False, None, None)
    assert (test["known"], test["added"], test["moved_out"]) == (True, 0, 0)
    assert train["records_after"] == 3


def test_an_example_that_moved_to_another_split_is_told_by_its_record(compare) -> None:
    after = {"train": [{"a": example(1)}], "test": [{"a": example(9), "z": example(2)}]}
    result = compare(TWO, after)
    (moved,) = result.examples["moved"]
    assert (moved.from_split, moved.split, moved.from_key, moved.key) == ("train", "test", "b", "z")
    assert result.totals["removed"] == result.totals["added"] == 0
    assert result.change.reasons == ["1 example moved from the split `train` to `test`"]
    assert result.change.level == "major"
    by_name = {split.name: (split.moved_in, split.moved_out) for split in result.splits}
    assert by_name == {"test": (1, 0), "train": (0, 1)}


def test_an_example_that_moved_and_changed_is_told_by_its_key(compare) -> None:
    changed = example(2, label=int64_feature(7))
    after = {"train": [{"a": example(1)}], "test": [{"a": example(9), "b": changed}]}
    result = compare(TWO, after)
    (moved,) = result.examples["moved"]
    assert (moved.from_split, moved.split, moved.key) == ("train", "test", "b")
    assert moved.features_changed == ("label",)
    assert result.change.reasons == [
        "1 label changed",
        "1 example moved from the split `train` to `test`",
    ]


def test_an_example_whose_key_and_record_changed_is_told_by_its_image(compare) -> None:
    other = example(2, label=int64_feature(0), name=bytes_feature("test/b.png"))
    after = {"train": [{"a": example(1)}], "test": [{"a": example(9), "test/b": other}]}
    result = compare(TWO, after)
    (moved,) = result.examples["moved"]
    assert (moved.from_split, moved.from_key) == ("train", "b")
    assert (moved.split, moved.key) == ("test", "test/b")
    assert (moved.features_added, moved.features_changed) == (("name",), ("label",))
    assert result.totals["removed"] == result.totals["added"] == 0


def test_one_key_in_two_splits_is_two_examples_where_the_images_differ(compare) -> None:
    """Keys that are positions are in every split: what left one did not come to the other."""
    before = {"train": [{"0": example(1), "1": example(2)}], "test": [{"0": example(8)}]}
    after = {"train": [{"0": example(1)}], "test": [{"0": example(8), "1": example(7)}]}
    result = compare(before, after)
    assert result.totals["moved"] == 0
    assert keys(result, "removed") == ["1"]
    assert keys(result, "added") == ["1"]


def test_without_bytes_a_key_in_two_splits_is_one_example(compare) -> None:
    before = {"train": [{"0": example(1), "1": example(2)}], "test": [{"0": example(8)}]}
    after = {"train": [{"0": example(1)}], "test": [{"0": example(8), "1": example(7)}]}
    assert compare(before, after, keep_bytes=False).totals["moved"] == 1


def test_keys_that_are_positions_do_not_make_changes(compare) -> None:
    """As in MNIST's files: one is taken away at the front, and all that follow move up."""
    before = {"train": [{str(n): example(n) for n in range(5)}]}
    after = {"train": [{str(n): example(n + 1) for n in range(4)}]}
    result = compare(before, after)
    assert (result.totals["removed"], result.totals["changed"]) == (1, 0)
    assert result.totals["renamed"] == 4
    assert result.change.reasons == ["1 example of the split `train` is gone"]
    assert [(each.from_key, each.key) for each in result.examples["renamed"]][:2] == [
        ("1", "0"),
        ("2", "1"),
    ]


def test_the_same_image_under_another_key_in_the_same_split_is_renamed(compare) -> None:
    other = example(2, label=int64_feature(0))
    result = compare(TWO, {**TWO, "train": [{"a": example(1), "c": other}]})
    (renamed,) = result.examples["renamed"]
    assert (renamed.from_key, renamed.key, renamed.features_changed) == ("b", "c", ("label",))
    assert result.change.level == "major"
    assert result.change.reasons == [
        "1 label changed",
        "1 example of the split `train` was changed in key and record",
    ]


def test_examples_that_occur_twice_are_counted(compare) -> None:
    before = {"train": [{"a": example(1), "b": example(1), "c": example(1)}]}
    result = compare(before, {"train": [{"a": example(1), "x": example(1)}]})
    assert (result.totals["removed"], result.totals["renamed"], result.totals["added"]) == (1, 1, 0)


def test_only_the_order_changed_and_it_says_so(compare) -> None:
    result = compare(TWO, {**TWO, "train": [{"b": example(2), "a": example(1)}]})
    assert result.order == "other"
    assert (result.change.level, result.version) == ("patch", "1.0.1")
    assert result.change.reasons == ["only the order changed: the same examples in another order"]
    assert not result.same


def test_another_layout_in_the_same_order_is_no_other_order(compare) -> None:
    result = compare(TWO, {**TWO, "train": [{"a": example(1)}, {"b": example(2)}]})
    assert result.order == "same"
    assert result.change.reasons == ["the same examples in another layout (3 shards)"]


def test_another_compression_keeps_content_and_order(compare, capsys) -> None:
    result = compare(TWO, TWO, compression="gzip")
    assert result.order == "same"
    assert result.change.reasons == ["the same examples in the same order, compression gzip"]
    shards = result.shards
    assert (shards.kept, shards.recoded, shards.new, shards.gone) == (0, 2, 0, 0)
    assert not result.same
    size = si_bytes(shards.new_bytes)
    print_diff(Console(width=200), result)
    assert f"0 unchanged (0 B), 2 recompressed ({size})\n" in capsys.readouterr().out


def test_the_order_is_not_known_where_an_index_is_gone(compare) -> None:
    after = {**TWO, "train": [{"b": example(2), "a": example(1)}]}
    result = compare(TWO, after, keep_bytes=False, keep_indexes=False)
    assert (result.order, result.change.level) == ("unknown", "patch")
    assert "perhaps in another order" in result.change.reasons[0]


def test_payloads_that_are_no_examples_differ_as_a_whole(compare) -> None:
    before = {"train": [{"a": b"\xff\xfe", "b": b"\xff\xfd"}]}
    result = compare(before, {"train": [{"a": b"\xff\xfe", "b": b"\xff\xff"}]})
    assert result.examples["changed"][0].features_changed == ("",)
    assert result.change.level == "major"
    assert result.change.reasons == [
        "1 example of the split `train` was changed, and not all records are `tf.train.Example`s"
    ]


def test_an_example_with_fields_that_no_example_has_is_no_superset(compare) -> None:
    strange = encode(example(2, width=int64_feature(1))) + b"\x12\x00"
    result = compare(TWO, {**TWO, "train": [{"a": example(1), "b": strange}]})
    assert result.change.level == "major"


def test_names_of_classes_that_changed_places_are_major(root, compare) -> None:
    result = compare(
        TWO,
        TWO,
        labels={"label": ["cat", "dog", "cow"]},
        first_labels={"label": ["cat", "cow", "dog"]},
    )
    assert not result.same
    assert (result.change.level, result.version) == ("major", "2.0.0")
    assert result.change.reasons == [
        "class 1 of `label` was `cow` and is `dog` now, and 1 more changed",
        "the same examples in the same order",
    ]
    registry = open_registry(root)
    parent, build = (resolve(registry, each) for each in ("d@1.0.0", "d"))
    assert classify(parent, build)[0] == result.change


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (None, "the classes of `label` have no names now"),
        ({"label": ["cat"]}, "class 1 of `label` was `dog` and has no name now"),
    ],
)
def test_names_of_classes_that_were_lost_are_major(compare, labels, reason: str) -> None:
    result = compare(TWO, TWO, labels=labels, first_labels={"label": ["cat", "dog"]})
    assert result.change.level == "major"
    assert result.change.reasons[0] == reason


def test_names_that_changed_beside_new_examples_are_major(compare) -> None:
    more = {**TWO, "train": [*TWO["train"], {"c": example(3)}]}
    names = {"first_labels": {"label": ["cat", "dog"]}, "labels": {"label": ["dog", "cat"]}}
    result = compare(TWO, more, **names)
    assert result.change.level == "major"
    assert result.change.reasons == [
        "class 0 of `label` was `cat` and is `dog` now, and 1 more changed"
    ]


def test_names_that_only_repeat_the_number_are_no_names(compare) -> None:
    result = compare(TWO, TWO, first_labels={"label": ["0", "1", "2"]})
    assert (result.same, result.change.level) == (True, "patch")


def test_the_schema_is_told_and_asks_for_no_number(compare) -> None:
    schema = SCHEMA.replace("type: INT", "type: INT presence { min_count: 1 }")
    result = compare(TWO, TWO, schema=schema)
    assert result.change.level == "patch"
    assert result.change.reasons[1:] == ["the schema's text was changed"]
    assert [(each.name, each.field) for each in result.schema or ()] == [
        ("label", "presence.min_count")
    ]


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (
            "time_domain { integer_format: UNIX_SECONDS }",
            "time_domain { integer_format: UNIX_MILLISECONDS }",
            "`label` should be read differently: `time_domain.integer_format` was UNIX_SECONDS and "
            "is now UNIX_MILLISECONDS",
        ),
        (
            "shape { dim { size: 1 } }",
            "shape {}",
            "`label` should be read differently: `shape` was 1 and is now scalar",
        ),
        ("shape { dim { size: 1 } }", "shape { dim {} }", None),
        ("shape {}", "", None),
        ("", "time_domain { integer_format: UNIX_SECONDS }", None),
    ],
)
def test_a_schema_that_reads_the_values_otherwise_is_major(
    compare, before: str, after: str, reason: str | None
) -> None:
    first, second = (SCHEMA.replace("INT", f"INT {each}") for each in (before, after))
    result = compare(TWO, TWO, first_schema=first, schema=second)
    assert result.change.level == ("major" if reason else "patch")
    assert reason is None or result.change.reasons[0] == reason


def test_classes_that_were_added_are_minor(compare) -> None:
    more = {"label": ["cat", "dog"]}
    result = compare(TWO, TWO, labels=more, first_labels={"label": ["cat"]})
    assert (result.same, result.change.level) == (False, "minor")
    assert result.change.reasons == [
        "`label` has 1 more class",
        "the same examples in the same order",
    ]


def test_names_where_there_were_none_are_minor(compare) -> None:
    result = compare(TWO, TWO, labels={"label": ["cat", "dog"]})
    assert result.change.level == "minor"
    assert result.change.reasons[0] == "the classes of `label` have names now"


def test_a_schema_that_does_not_parse_is_not_compared(compare) -> None:
    result = compare(TWO, TWO, schema="feature {")
    assert result.schema is None


def test_the_first_twenty_are_shown_and_all_can_be_listed(compare) -> None:
    after = {**TWO, "train": [*TWO["train"], {f"n{n:03d}": example(100 + n) for n in range(50)}]}
    result = compare(TWO, after)
    assert keys(result, "added") == [f"n{n:03d}" for n in range(20)]
    assert [each.key for each in result.records()] == [f"n{n:03d}" for n in range(50)]


def damaged(shard: Path) -> None:
    flip(shard, 16 + int.from_bytes(shard.read_bytes()[:8], "little") + 20)


def replaced_by_a_folder(shard: Path) -> None:
    shard.unlink()
    shard.mkdir()


def replaced_by_another(shard: Path) -> None:
    """A shard of the same sizes: the index shows that the records are others."""
    root = shard.parents[3]
    put_build(root, {"train": [{"a": example(1), "b": example(5)}]}, name="other")
    shard.write_bytes((root / "data/other/other-train.tfrecord-00000-of-00001").read_bytes())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (damaged, "record 1 of `d-train.tfrecord-00000-of-00001`, at byte "),
        (replaced_by_a_folder, "it is not a regular file"),
        (replaced_by_another, "does not match its index"),
    ],
)
def test_an_unreadable_record_is_not_compared(root, compare, capsys, change, reason) -> None:
    after = {**TWO, "train": [{"a": example(1), "b": example(2, width=int64_feature(1))}]}
    compare(TWO, after)
    change(root / "versions/d/1.0.0/d-train.tfrecord-00000-of-00001")
    result = diff("d@1.0.0", "d", registry=root)
    assert (result.compared, result.unread) == (0, 1)
    assert reason in result.unread_reason
    assert result.change.level == "major"
    assert f"1 example could not be compared: {result.unread_reason}" in result.change.reasons
    print_diff(Console(width=1000), result)
    assert f"  1 example not compared: {result.unread_reason}\n" in capsys.readouterr().out


def test_two_datasets_can_be_compared_and_have_no_next_number(root, compare) -> None:
    compare(TWO, TWO)
    put_build(root, {"train": [{"a": example(1)}]}, name="other")
    result = diff("d@1.0.0", "other", registry=root)
    assert result.version is None
    assert result.change.level == "major"


def test_a_build_has_no_next_number(root, compare) -> None:
    compare(TWO, TWO)
    assert diff("d", "d@1.0.0", registry=root).version is None


def test_a_release_is_judged_as_the_diff_judges(root, compare) -> None:
    more = {"width": int64_feature(28)}
    cases = [
        TWO,
        {**TWO, "train": [*TWO["train"], {"c": example(3)}]},
        {**TWO, "train": [{"a": example(1, **more), "b": example(2, **more)}]},
        {**TWO, "train": [{"a": example(1)}]},
        {**TWO, "train": [{"a": example(1), "c": example(2, label=int64_feature(0))}]},
        {"train": [{"a": example(1)}], "test": [{"a": example(9), "z": example(2)}]},
        {**TWO, "train": [{"b": example(2), "a": example(1)}]},
    ]
    compare(TWO, TWO)
    for after in cases:
        put_build(root, after)
        registry = open_registry(root)
        change = classify(resolve(registry, "d@1.0.0"), resolve(registry, "d"))[0]
        shown = diff("d@1.0.0", "d", registry=root).change
        assert (change.level, change.reasons) == (shown.level, shown.reasons)
        assert change.counts == shown.counts


def test_a_release_counts_all_labels_that_changed(root) -> None:
    before = {"train": [{str(n): example(n) for n in range(10_001)}]}
    after = {"train": [{str(n): example(n, label=int64_feature(-1)) for n in range(10_001)}]}
    put_build(root, before)
    put_release(root, "1.0.0")
    put_build(root, after)
    registry = open_registry(root)
    change = classify(resolve(registry, "d@1.0.0"), resolve(registry, "d"))[0]
    assert change.level == "major"
    assert change.reasons[0] == "10001 labels changed"


@pytest.mark.parametrize("listed", [True, False], ids=["index", "no index"])
def test_a_manifest_that_promises_too_many_records_takes_no_memory(root, compare, listed) -> None:
    after = {**TWO, "train": [{"a": example(1), "b": example(3)}]}
    compare(TWO, after)
    path = root / "data/d/manifest.json"
    found = parse_manifest(path.read_bytes(), "it")
    shards = [replace(each, records=2**50) for each in found.shards]
    files = [each for each in found.files if listed]
    path.write_bytes(render_manifest(seal(replace(found, shards=shards, files=files))))
    result = diff("d@1.0.0", "d", registry=root)
    assert not any(split.known for split in result.splits if split.name == "train")
    assert result.change.level == "major"
