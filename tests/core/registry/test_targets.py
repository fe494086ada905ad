"""The words of a user become shards. No shard is lost without a note."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from foreign_support import example, put

from tfrecreg import check, data_source, digest, head
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.find import bare_files, find_target, target_of
from tfrecreg.core.registry.manifest import RawTotals
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.errors import UsageError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def named(*patterns: str) -> list[str]:
    return [shard.name for shard in target_of(bare_files(patterns)).shards]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path.resolve() / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_shards_come_by_split_and_name_and_are_numbered_in_their_split(here: Path) -> None:
    names = [
        f"mnist-{split}.tfrecord-{number:05d}-of-00002"
        for split in ("train", "test")
        for number in (1, 0)
    ]
    touch(here, *names, "other")
    found = target_of(bare_files([*names, "other"]))
    assert [(shard.split, shard.number, shard.name) for shard in found.shards] == [
        ("", 0, "other"),
        ("test", 0, "mnist-test.tfrecord-00000-of-00002"),
        ("test", 1, "mnist-test.tfrecord-00001-of-00002"),
        ("train", 0, "mnist-train.tfrecord-00000-of-00002"),
        ("train", 1, "mnist-train.tfrecord-00001-of-00002"),
    ]
    assert (found.kind, found.dataset, found.manifest, found.storage) == ("files", "", None, None)
    assert all(shard.declared is shard.entry is shard.index is None for shard in found.shards)


def test_shards_are_found_wherever_the_process_goes(here: Path) -> None:
    (here / "a.tfrecord").write_bytes(b"12345")
    (shard,) = target_of(bare_files(["a.tfrecord"])).shards
    os.chdir("/")
    assert shard.storage.read(shard.path) == b"12345"


def test_a_folder_is_every_shard_below_it(here: Path) -> None:
    touch(
        here,
        "data/train-00000-of-00002",
        "data/sub/train-00001-of-00002",
        "data/x.tfrecord.gz",
        "data/manifest.json",
        "data/labels.txt",
        "data/index/train-00000-of-00002.index",
        "data/.hidden.tfrecord",
        "data/.stage/a.tfrecord",
    )
    expected = [
        "data/x.tfrecord.gz",
        "data/sub/train-00001-of-00002",
        "data/train-00000-of-00002",
    ]
    assert named("data") == named("data/") == expected
    assert named(str(here / "data")) == [str(here / name) for name in expected]


@pytest.mark.parametrize("pattern", ["folder", "folder/*"])
def test_what_cannot_be_read_is_kept_so_that_the_check_says_so(here: Path, pattern: str) -> None:
    touch(here, "folder/a.tfrecord")
    os.mkfifo(here / "folder/b.tfrecord")
    (here / "folder/c.tfrecord").symlink_to("nowhere")
    (here / "folder/d.tfrecord").symlink_to("a.tfrecord")
    assert named(pattern) == [f"folder/{letter}.tfrecord" for letter in "abcd"]


def test_globs_and_sharded_specs(here: Path) -> None:
    touch(here, "x-00000-of-00003", "x-00001-of-00003", "x-00002-of-00003", "x-00000-of-00002")
    touch(here, "sub/deep/y.tfrecord", "odd[1]-00000-of-00001")
    assert named("x-*-of-00003") == [f"x-0000{number}-of-00003" for number in range(3)]
    assert named("x@3") == [f"x-0000{number}-of-00003" for number in range(3)]
    assert named("**/*.tfrecord") == ["sub/deep/y.tfrecord"]
    assert named("odd[1]@1") == named("odd[1]-00000-of-00001") == ["odd[1]-00000-of-00001"]


def test_a_file_is_scanned_once_however_often_it_is_named(here: Path) -> None:
    touch(here, "sub/a.tfrecord")
    (here / "link").symlink_to("sub")
    assert named(
        "sub/a.tfrecord", "./sub/../sub/a.tfrecord", "sub", "link/a.tfrecord", "sub/*"
    ) == ["sub/a.tfrecord"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("no/such/file", "no file matches `no/such/file`"),
        ("none-*", "no file matches `none-*`"),
        ("x@3", "no file matches `x@3`"),
        ("a\x1b*", r"no file matches `a\x1b*`"),
        ("empty", "there is no TFRecord file below the folder `empty`"),
        ("sub*", "no file matches `sub*`"),
    ],
)
def test_what_names_nothing_is_refused(here: Path, pattern: str, message: str) -> None:
    (here / "empty").mkdir()
    touch(here, "sub/a.txt", "empty/notes.txt")
    with pytest.raises(UsageError) as caught:
        named(pattern)
    assert caught.value.message == message
    assert caught.value.hint


def test_files_with_a_schema_and_raw_data(here: Path) -> None:
    touch(here, "a.tfrecord")
    (here / "s.pbtxt").write_text("# a schema")
    (here / "raw").mkdir()
    (here / "raw/x").write_bytes(bytes(10))
    found = target_of(bare_files(["a.tfrecord"]), schema="s.pbtxt", raw="raw")
    assert (found.schema, found.schema_path) == ("# a schema", "s.pbtxt")
    assert found.raw == RawTotals(files=1, stored=10, decoded=10)
    with pytest.raises(UsageError, match="the schema `none` cannot be read: No such file"):
        target_of(bare_files(["a.tfrecord"]), schema="none", raw=None)


def of(root: Path, reference: str, **options: str | None) -> Target:
    values: dict[str, str | None] = {"schema": None, "raw": None, **options}
    return target_of(resolve(open_registry(root), reference), **values)


def test_a_build_is_what_its_manifest_says(digits_original: Path) -> None:
    found = of(digits_original, "digits")
    assert (found.name, found.kind, found.dataset) == ("digits", "build", "digits")
    assert [(shard.split, shard.number) for shard in found.shards] == [
        ("test", 0),
        ("test", 1),
        ("train", 0),
        ("train", 1),
    ]
    first = found.shards[0]
    assert first.name == first.path == "digits-test.tfrecord-00000-of-00002"
    assert first.declared == "none"
    assert first.entry is not None
    assert first.index == first.entry.index
    assert found.schema_path == "schemas/digits.pbtxt"
    assert found.raw is not None
    assert found.raw.stored < found.raw.decoded


def test_a_release_has_its_own_schema_and_the_folder_of_its_bytes(digits_original: Path) -> None:
    found = of(digits_original, "digits@latest")
    assert (found.name, found.kind) == ("digits@1.0.0", "release")
    assert found.schema_path == "registry/digits/1.0.0/schema.pbtxt"
    assert found.storage is not None
    assert found.storage.root == str(digits_original / "data/digits")


def test_missing_shards_and_indexes_are_left_out(digits_registry: Path) -> None:
    folder = digits_registry / "data/digits"
    (folder / "digits-test.tfrecord-00000-of-00002").unlink()
    found = of(digits_registry, "digits")
    assert [(shard.split, shard.number) for shard in found.shards] == [
        ("test", 1),
        ("train", 0),
        ("train", 1),
    ]
    for path in (folder / "index").iterdir():
        path.unlink()
    assert all(shard.index is None for shard in of(digits_registry, "digits").shards)


def test_one_argument_is_a_reference_or_files(
    digits_registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(digits_registry)
    assert find_target("digits").kind == "build"
    assert find_target("digits@1.0.0").kind == "release"
    assert find_target("data/digits") == find_target("digits")
    named = find_target("data/digits/digits-test.tfrecord@2")
    assert (named.kind, named.partial, len(named.shards)) == ("build", True, 2)
    for path in Path("data/digits").glob("*test*"):
        shutil.copy(path, digits_registry)
    assert find_target("digits-test.tfrecord@2").kind == "files"


def test_a_dataset_comes_before_a_folder_of_its_name(
    digits_registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(digits_registry / "data")  # where there is a folder `digits`
    assert find_target("digits").kind == "build"
    assert find_target("./digits") == find_target("digits")
    touch(digits_registry, "data/other/a.tfrecord", "data/digits@1.0.0")
    assert find_target("other").kind == "files"
    assert find_target("digits@1.0.0").kind == "release"
    monkeypatch.chdir("/")
    with pytest.raises(UsageError, match="no registry here"):
        find_target("digits")
    assert find_target("digits", registry=digits_registry).kind == "build"


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (("train/x.tfrecord", "valid/x.tfrecord"), ["train", "validation"]),
        (("train/images/x.tfrec", "test/images/x.tfrec"), ["train", "test"]),
        (("pets_train/x.tfrec", "pets_test/x.tfrec"), ["train", "test"]),
        (("train-192/x.tfrec", "val-192/x.tfrec"), ["train", "validation"]),
        (("val/x.tfrec", "dev/x.tfrec"), ["val", "dev"]),
        (("split=train/part-00000-a-c000.tfrecord", "split=test/b.tfrecord"), ["train", "test"]),
        (("Split-eval/x.tfrecord",), ["eval"]),
        (("train/x-test.tfrecord", "test/b.tfrecord"), ["test", "test"]),
        (("train/x.tfrecord", "loose.tfrecord"), ["train", ""]),
        (("test/x.tfrecord", "test/y.tfrecord"), ["test", "test"]),
        (("my_test/x.tfrecord", "test/data/x.tfrecord"), ["", ""]),
        (("python/test/data/x.tfrecord", "scala/x.tfrecord"), ["", ""]),
        (("testdata/a/x.tfrecord", "testdata/b/x.tfrecord"), ["", ""]),
    ],
)
def test_folders_say_the_splits_of_files_whose_names_do_not(
    here: Path, names: tuple[str, ...], splits: list[str]
) -> None:
    touch(here, *names)
    found = {shard.name: shard.split for shard in find_target(".").shards}
    assert [found[name] for name in names] == splits


def test_a_split_of_folders_is_read_counted_and_digested_alone(here: Path) -> None:
    for split, first in (("train", 0), ("test", 10)):
        put(here / split / "x.tfrecord", *(example(first + each) for each in range(3)))
    put(here / "test/copies.tfrecord", example(1))
    source = data_source(".", split="test")
    assert (len(source), len(data_source(".", split="train"))) == (4, 3)
    with pytest.raises(UsageError):
        data_source(".", split="validation")
    digests = digest(".")
    assert {each.split: each.records for each in digests.splits} == {"test": 4, "train": 3}
    assert [each.shard.split("/")[0] for each in head(".", split="test")] == ["test"] * 4
    report = check(".")
    leaks = [each for each in report.findings if each.code == "DUP002"]
    assert [(each.severity.value, each.count) for each in leaks] == [("error", 1)]


def test_parts_of_spark_are_shards_where_they_hold_records(here: Path) -> None:
    for number in range(2):
        put(here / f"records/part-r-{number:05d}", example(number))
    touch(here, "records/part-r-00002", "records/_SUCCESS", "records/.part-r-00000.crc")
    (here / "text").mkdir()
    (here / "text/part-r-00000").write_text("1,2\n")
    put(here / "packed/part-00000-ab-c000.gz", example(7), packed=True)
    target = find_target(".")
    assert [shard.name for shard in target.shards] == [
        "packed/part-00000-ab-c000.gz",
        *(f"records/part-r-{number:05d}" for number in range(3)),
    ]
    (note,) = target.notes
    assert ("1 file" in note, "`part-r-00000`" in note) == (True, True)


def test_files_that_a_folder_has_besides_are_counted_by_kind(here: Path) -> None:
    touch(here, "a.tfrecord", "b.zst", "LICENSE", "label_map.pbtxt", "c", ".hidden")
    touch(here, *(f"{number}.jpg" for number in range(1000)))
    report = check(".")
    (note,) = report.notes
    assert note.startswith("1,002 files ")
    assert [kind in note for kind in ("`*.jpg`", "`b.zst`", "`c`", "LICENSE")] == [True] * 3 + [
        False
    ]
    assert find_target("a.tfrecord").notes == ()
