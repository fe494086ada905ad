"""Samples that become items, and remarks on all other members and files."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest
from raw_source_support import Made

from tfrecreg_webdataset import samples

from .conftest import Raw, tar


def codes(made: Made) -> dict[str, str]:
    return {place: code for place, (code, _) in made.skipped.items()}


def remarks(made: Made) -> list[tuple[str, str, int]]:
    return [(each.key, each.code, each.times) for each in made.remarks]


@pytest.mark.parametrize(
    ("files", "splits"),
    [
        (["train-000000.tar", "val-000000.tar"], ["train", "validation"]),
        (["train/0.tar", "test/0.tar"], ["train", "test"]),
        (["0000.tar", "0001.tar"], ["train", "train"]),
        (["data/extra-00000-of-00002.tar", "data/train-00000-of-00002.tar"], ["extra", "train"]),
        (["data/_train-00000-of-00001.tar"], ["train"]),
    ],
)
def test_names_of_files_give_the_splits(raw: Raw, files: list[str], splits: list[str]) -> None:
    for number, name in enumerate(files):
        raw.put(name, {f"{number}.txt": b"x"})
    expected = [f"{split}/{number}" for number, split in enumerate(splits)]
    assert sorted(raw.made().written) == sorted(expected)


def test_files_of_which_some_name_no_split_are_refused(raw: Raw) -> None:
    raw.put("train-0.tar", {"1.txt": b""})
    raw.put("more.tar", {"2.txt": b""})
    raw.error()


def test_the_option_splits_decides_by_the_first_pattern(raw: Raw) -> None:
    for name in ("a/1.tar", "a/2.tar", "b/3.tar", "c/4.tar"):
        raw.put(name, {f"{name[2]}.txt": b""})
    made = raw.made("splits=test=a/2*,train=a/*,extra=b/*")
    assert sorted(made.written) == ["extra/3", "test/2", "train/1"]
    assert remarks(made) == [("c/4.tar", "SRC117", 1)]
    raw.error("splits=train=x*")


def test_neighbors_with_one_key_are_a_sample(raw: Raw) -> None:
    raw.put("a.tar", {"./x/1.B.txt": b"b", "x/1.c": b"c", "y/1.c": b"d", "x.y/1.c": b"e"})
    assert raw.made().written == {
        "train/x/1": {"b.txt": b"b", "c": b"c"},
        "train/y/1": {"c": b"d"},
        "train/x.y/1": {"c": b"e"},
    }


def test_a_key_that_occurs_again_skips_the_later_sample(raw: Raw) -> None:
    raw.put("a.tar", {"1.a": b"1", "2.a": b"2", "1.b": b"3"})
    raw.put("b.tar", {"2.b": b"4", "3.a": b"5"})
    made = raw.made()
    assert sorted(made.written) == ["train/1", "train/2", "train/3"]
    assert codes(made) == {"train/1#a.tar": "SRC114", "train/2#b.tar": "SRC114"}


def test_shards_that_count_anew_have_keys_with_their_paths(raw: Raw) -> None:
    raw.put("x/a.tar", {"1.a": b"1"})
    raw.put("x/b.tar", {"1.a": b"2"})
    made = raw.made("keys=shard")
    assert sorted(made.written) == ["train/x/a/1", "train/x/b/1"]
    assert not made.skipped


def test_a_sample_with_a_suffix_twice_is_skipped(raw: Raw) -> None:
    raw.put("a.tar", {"1.jpg": b"1", "1.JPG": b"2", "2.a": b""})
    made = raw.made()
    assert codes(made) == {"train/1": "SRC114"}
    assert list(made.written) == ["train/2"]


def test_what_has_no_key_is_counted(raw: Raw) -> None:
    names = ["1.a", "README", ".hidden", "b/.x.txt", "end.", "__meta__/x.a", "__x__", "2.b"]
    data = tar(dict.fromkeys(names, b""))
    folder = tarfile.TarInfo("b")
    folder.type = tarfile.DIRTYPE
    raw.put("a.tar", folder.tobuf() + data)
    made = raw.made("suffixes=a")
    assert list(made.written) == ["train/1"]
    assert remarks(made) == [("a.tar", "SRC117", times) for times in (1, 5, 1, 1)]


def test_a_link_skips_its_sample(raw: Raw) -> None:
    link = tarfile.TarInfo("1.jpg")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    raw.put("a.tar", tar({"1.cls": b"1"})[:1024] + link.tobuf() + tar({"2.cls": b"2"}))
    made = raw.made()
    assert codes(made) == {"train/1": "SRC111"}
    assert list(made.written) == ["train/2"]


def test_a_damaged_header_ends_an_archive(raw: Raw) -> None:
    whole = bytearray(tar({"1.a": b"x", "2.a": b"y"}))
    whole[1024] ^= 1
    raw.put("a.tar", bytes(whole))
    raw.put("b.tar", {"3.a": b""})
    raw.put("c.tar", b"")
    made = raw.made()
    assert sorted(made.written) == ["train/1", "train/3"]
    assert codes(made) == {"train/a.tar": "SRC110", "train/c.tar": "SRC110"}


@pytest.mark.parametrize(
    ("stop", "written", "skipped", "is_noted"),
    [
        (512 * 4, "1", "", True),  # before the header of `2.a`
        (512 * 5 + 5, "1", "a.tar", False),  # inside the data of `2.a`
        (512 * 5 + 100, "1", "2", False),  # inside its padding
        (512 * 6, "1", "2", True),  # `2.b` is gone
        (512 * 7 + 5, "1", "2", False),  # inside the data of `2.b`
        (512 * 8 - 1, "1", "2", False),  # inside its padding
        (512 * 8, "12", "", True),
        (512 * 11, "12", "a.tar", False),  # `3.a` has an extended header, and nothing else
    ],
)
def test_a_cut_archive_skips_the_cut_sample(
    raw: Raw, stop: int, written: str, skipped: str, is_noted: bool
) -> None:
    members = {f"{n}.{each}": b"x" * 10 for n in (1, 2) for each in "ab"}
    raw.put("a.tar", tar({**members, "3" * 150 + ".a": b"x"})[:stop])
    made = raw.made()
    assert sorted(made.written) == [f"train/{each}" for each in written]
    assert codes(made) == ({f"train/{skipped}": "SRC110"} if skipped else {})
    assert remarks(made) == ([("a.tar", "SRC014", 1)] if is_noted else [])


def test_a_compressed_archive_is_refused_by_its_name_or_its_bytes(raw: Raw) -> None:
    path = raw.put("a.tar", gzip.compress(tar({"1.a": b"x"})))
    for name in ("a.tar", "a.tar.gz", "a.tgz"):
        path = path.rename(raw.path / name)
        assert "compress" in str(raw.error())


@pytest.mark.parametrize(("name", "data"), [("a.tar", b"PK\3\4" + b"x" * 1000), ("a.zip", b"")])
def test_a_folder_without_tar_files_is_refused(raw: Raw, name: str, data: bytes) -> None:
    raw.put(name, data)
    raw.error()


def test_links_to_files_and_folders_are_followed(raw: Raw, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "x.tar").write_bytes(tar({"1.a": b"x"}))
    (raw.path / "train").symlink_to(store)
    (raw.path / "test-0.tar").symlink_to(store / "x.tar")
    assert sorted(raw.made().written) == ["test/1", "train/1"]
    (raw.path / "val-0.tar").symlink_to(store / "none")
    raw.error()


def test_a_hidden_archive_is_left_out(raw: Raw) -> None:
    raw.put("a.tar", {"1.a": b"x"})
    raw.put("._a.tar", b"AppleDouble")
    made = raw.made()
    assert list(made.written) == ["train/1"]
    assert remarks(made) == [("._a.tar", "SRC117", 1)]


def test_keys_with_dots_are_refused(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "_MAX_SUFFIXES", 3)
    raw.put("a.tar", {f"img{number}.{number}.jpg": b"" for number in range(5)})
    assert "suffixes=" in str(raw.error().hint)


def test_a_sample_is_bounded(raw: Raw) -> None:
    raw.put("a.tar", {"2.a": b""})
    huge = tarfile.TarInfo("3.a")
    huge.size = samples.MAX_SAMPLE_BYTES + 1
    with (raw.path / "b.tar").open("wb") as file:
        file.write(huge.tobuf(tarfile.GNU_FORMAT))
        file.truncate(samples.MAX_SAMPLE_BYTES + 2048)
    made = raw.made()
    assert codes(made) == {"train/3": "SRC113"}
    assert list(made.written) == ["train/2"]


def test_a_tar_file_that_a_numbered_set_lacks_is_skipped(raw: Raw) -> None:
    raw.put("train-1-of-2.tar", {"a.txt": b"t"})
    assert codes(raw.made()) == {"train/train-0-of-2.tar": "SRC112"}


def test_describe_says_what_is_there(raw: Raw) -> None:
    raw.put("train-0.tar", {"1.jpg": b"", "1.cls": b""})
    raw.put("train-1.tar", {"2.jpg": b""})
    raw.put("val-0.tar", {"2.jpg": b""})
    assert raw.source().describe() == {
        "split train": "2 tar files, from train-0.tar",
        "split validation": "val-0.tar",
        "suffixes": "jpg (3), cls (1)",
    }
