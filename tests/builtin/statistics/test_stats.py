from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from check_support import framed
from package_support import CHECKOUT, Interpreter, plain_environment
from statistics_support import IMAGES, alike_examples, dealt, odd_examples, write
from tests_support import flip

from tfrecreg.builtin.statistics.make import stats
from tfrecreg.core.values.errors import FailureError, UsageError
from tfrecreg.core.values.text import json_data


def cached(root: Path) -> list[Path]:
    return sorted((root / ".tfrecreg/cache/statistics").glob("*"))


def test_a_release_has_statistics_of_each_split_which_are_remembered(digits_registry: Path) -> None:
    found = stats("digits@1.0.0", registry=digits_registry)
    assert found.target == "digits@1.0.0"
    assert [each.statistics.split for each in found.splits] == ["test", "train"]
    assert [each.statistics.examples for each in found.splits] == [60, 200]
    assert [each.cached for each in found.splits] == [False, False]
    names = [feature.name for feature in found.splits[0].features]
    assert names == sorted(names)
    assert "image/encoded" in names
    assert len(cached(digits_registry)) == 2
    again = stats("digits", registry=digits_registry)  # the same content
    assert [each.cached for each in again.splits] == [True, True]
    assert again.pbtxt() == found.pbtxt()
    assert again.splits[0].features == found.splits[0].features


def test_a_split_whose_shards_are_no_neighbours_is_one(digits_registry: Path) -> None:
    folder = digits_registry / "data/digits"
    extra = folder / "digits-test.tfrecord-00002-of-00003"  # the manifest does not list it
    shutil.copy(folder / "digits-test.tfrecord-00000-of-00002", extra)
    found = stats([str(each) for each in sorted(folder.glob("*.tfrecord*"))])
    assert [(each.statistics.split, each.statistics.examples) for each in found.splits] == [
        ("test", 90),
        ("train", 200),
    ]


def test_splits_are_remembered_one_by_one(digits_registry: Path) -> None:
    (one,) = stats("digits", registry=digits_registry, split="test").splits
    assert (one.statistics.split, one.cached) == ("test", False)
    both = stats("digits", registry=digits_registry)
    assert [each.cached for each in both.splits] == [True, False]


def test_bytes_that_are_not_those_of_the_manifest_are_not_remembered(digits_registry: Path) -> None:
    shards = sorted((digits_registry / "data/digits").glob("digits-test.tfrecord-*"))
    shards[0].unlink()
    shutil.copy(shards[1], shards[0])
    found = stats("digits", registry=digits_registry)
    assert [each.statistics.examples for each in found.splits] == [60, 200]
    assert len(cached(digits_registry)) == 1
    shards[0].unlink()
    found = stats("digits", registry=digits_registry)
    assert [(each.statistics.examples, each.cached) for each in found.splits] == [
        (30, False),
        (200, True),
    ]
    assert len(cached(digits_registry)) == 1


def test_damaged_records_are_left_out_and_nothing_is_remembered(digits_registry: Path) -> None:
    flip(next((digits_registry / "data/digits").glob("digits-test.tfrecord-*")), 100)
    (found,) = stats("digits", registry=digits_registry, split="test").splits
    assert (found.statistics.examples, found.statistics.left_out.damaged) == (59, 1)
    assert cached(digits_registry) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data.partition(b"\n")[0],
        lambda data: b"[]\n" + data.partition(b"\n")[2],
        lambda data: data.replace(b'"kinds": {', b'"kinds": {"cake": 1', 1),
        lambda data: b"[" * 100_000,
    ],
)
def test_a_damaged_file_of_the_cache_is_made_again(
    digits_registry: Path, damage: Callable[[bytes], bytes]
) -> None:
    first = stats("digits", registry=digits_registry, split="test")
    (path,) = cached(digits_registry)
    good = path.read_bytes()
    path.write_bytes(damage(good))
    (again,) = stats("digits", registry=digits_registry, split="test").splits
    assert (again.cached, again.features) == (False, first.splits[0].features)
    assert path.read_bytes() == good


def test_files_need_no_registry_and_are_not_remembered(tmp_path: Path) -> None:
    pattern = write(tmp_path, *dealt(alike_examples(30), 2))
    found = stats(pattern)
    (split,) = found.splits
    assert (split.statistics.split, split.statistics.examples) == ("train", 30)
    assert [feature.type for feature in split.features] == ["float", "bytes", "int64", "bytes"]
    schema = tmp_path / "schema.pbtxt"
    schema.write_text(IMAGES, encoding="utf-8")
    (split,) = stats(pattern, schema=str(schema), features=["im*", "label"]).splits
    assert [(each.name, each.type) for each in split.features] == [
        ("image", "picture"),
        ("label", "int64"),
    ]


def test_json_has_no_nan_and_no_infinity(tmp_path: Path) -> None:
    pattern = write(tmp_path, *dealt(odd_examples(100), 1))
    plain = json_data(stats(pattern))
    text = json.dumps(plain, allow_nan=False)
    (number,) = [each for each in plain["splits"][0]["features"] if each["name"] == "float"]
    assert number["detail"]["max"] == "inf"
    assert number["detail"]["mean"] is None
    assert json.loads(text)["splits"][0]["left_out"] == {"damaged": 0, "too_large": 0}


class TestRefusals:
    def test_a_feature_that_no_split_has(self, tmp_path: Path) -> None:
        write(tmp_path, *dealt(alike_examples(3), 1))
        (tmp_path / "x-test.tfrecord-00000-of-00001").write_bytes(framed(b""))  # without labels
        found = stats(str(tmp_path), features=["label"]).splits
        assert [[each.name for each in split.features] for split in found] == [[], ["label"]]
        with pytest.raises(UsageError) as caught:
            stats(str(tmp_path), features=["lable"])
        assert "matches `lable`" in caught.value.message
        assert "`box`, `image`, `label` and `name`" in caught.value.message

    def test_what_is_no_examples(self, tmp_path: Path) -> None:
        event = b"\x09" + bytes(8) + b"\x1a\x0dbrain.Event:2"
        path = tmp_path / "events"
        path.write_bytes(framed(event) * 3)
        with pytest.raises(UsageError) as caught:
            stats(str(path))
        assert caught.value.message == (
            f"`{path}` has no Examples to compute statistics from: 3 events"
        )

    def test_a_shard_that_cannot_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "x").symlink_to(tmp_path / "nowhere")
        with pytest.raises(FailureError, match="was not read completely: "):
            stats(str(tmp_path / "x"))


RUN = """
import sys
from collections.abc import Callable
from tfrecreg.cli.main import main
code = main(sys.argv[1:])
heavy = {"tensorflow", "tensorflow_data_validation", "tfx_bsl", "pyarrow", "pandas", "apache_beam"}
print(code, *sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.medium
def test_neither_making_nor_showing_them_imports_anything_heavy(
    digits_registry: Path, tmp_path: Path
) -> None:
    path = f"{CHECKOUT}:{CHECKOUT / 'plugins'}"
    python = Interpreter(sys.executable, plain_environment(tmp_path, PYTHONPATH=path))
    for cached in (False, True):
        done = python.run("-c", RUN, "-C", digits_registry, "stats", "digits", "--json")
        assert done.err.split() == ["0"]
        assert [each["cached"] for each in json.loads(done.out)["splits"]] == [cached, cached]
