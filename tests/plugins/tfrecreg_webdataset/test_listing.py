"""Which samples are items, and what is said of all else."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest
from made_support import Made

from tfrecreg_webdataset import listing
from tfrecreg_webdataset.listing import MAX_SAMPLE_BYTES

from .conftest import Raw, tar


def codes(made: Made) -> dict[str, str]:
    return {place: code for place, (code, _) in made.skipped.items()}


@pytest.mark.medium
@pytest.mark.parametrize(
    ("files", "splits"),
    [
        (["train-000000.tar", "val-000000.tar"], ["train", "validation"]),
        (["imagenet-train-0.tar", "imagenet-test-0.tar"], ["train", "test"]),
        (["train/0.tar", "test/0.tar"], ["train", "test"]),
        (["a_train_000.tar", "a_validation_000.tar"], ["train", "validation"]),
        (["0000.tar", "0001.tar"], ["train", "train"]),
        (["data/extra-00000-of-00002.tar", "data/train-00000-of-00002.tar"], ["extra", "train"]),
        (["val-0.tar", "dev-0.tar"], ["val", "dev"]),
        (["constrain-0.tar"], ["train"]),
        (["test/train-0.tar"], ["train"]),
    ],
)
def test_names_of_files_give_the_splits(raw: Raw, files: list[str], splits: list[str]) -> None:
    for number, name in enumerate(files):
        raw.put(name, {f"{number}.txt": b"x"})
    made = raw.made()
    assert sorted(made.written) == sorted(
        f"{split}/{number}" for number, split in enumerate(splits)
    )
    assert not made.remarks


def test_files_of_which_some_name_no_split_are_refused(raw: Raw) -> None:
    raw.put("train-0.tar", {"1.txt": b""})
    raw.put("more.tar", {"2.txt": b""})
    error = raw.error()
    assert error.message == "`train-0.tar` names the split `train`, and `more.tar` names none"
    assert error.hint == "assign all files: `--option 'splits=train=PATTERN,test=PATTERN'`"


def test_the_option_splits_decides_by_the_first_pattern(raw: Raw) -> None:
    for name in ("a/1.tar", "a/2.tar", "b/3.tar", "c/4.tar"):
        raw.put(name, {f"{name[2]}.txt": b""})
    made = raw.made("splits=test=a/2*,train=a/*,extra=b/*")
    assert sorted(made.written) == ["extra/3", "test/2", "train/1"]
    (remark,) = made.remarks
    assert (remark.code, remark.detail) == ("SRC070", "1 tar file is left out, `c/4.tar`")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("splits=train", "`splits` expects SPLIT=PATTERN, found `train`"),
        ("splits=a b=*", "`splits` expects SPLIT=PATTERN, found `a b=*`"),
        ("splits=train=x*", "no file matches `x*` of the option `splits`"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(raw: Raw, option: str, message: str) -> None:
    raw.put("0.tar", {"1.txt": b""})
    assert raw.error(option).message == message


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
    assert made.skipped == {
        "train/1#a.tar": (
            "SRC071",
            "another sample has this key already; this one is in `a.tar`",
        ),
        "train/2#b.tar": (
            "SRC071",
            "another sample has this key already; this one is in `b.tar`",
        ),
    }


def test_shards_that_count_anew_have_keys_with_their_paths(raw: Raw) -> None:
    raw.put("x/a.tar", {"1.a": b"1"})
    raw.put("x/b.tar", {"1.a": b"2"})
    made = raw.made("keys=shard")
    assert sorted(made.written) == ["train/x/a/1", "train/x/b/1"]
    assert not made.skipped


def test_a_sample_with_a_suffix_twice_is_skipped(raw: Raw) -> None:
    raw.put("a.tar", {"1.jpg": b"1", "1.JPG": b"2", "2.a": b""})
    made = raw.made()
    assert made.skipped == {"train/1": ("SRC071", "it has two members `jpg`, in `a.tar`")}
    assert list(made.written) == ["train/2"]


def test_what_has_no_key_is_counted(raw: Raw) -> None:
    names = ["1.a", "README", ".hidden", "b/.x.txt", "end.", "__meta__/x.a", "__x__", "2.b"]
    data = tar(dict.fromkeys(names, b""))
    folder = tarfile.TarInfo("b")
    folder.type = tarfile.DIRTYPE
    raw.put("a.tar", folder.tobuf() + data)
    made = raw.made("suffixes=a")
    assert list(made.written) == ["train/1"]
    assert {each.code for each in made.remarks} == {"SRC070"}
    assert [each.detail for each in made.remarks] == [
        "`a.tar`: 1 folder is left out, `b`",
        "`a.tar`: 5 members without a key are left out, the first `README`",
        "`a.tar`: 1 member with metadata is left out, `__meta__/x.a`",
        "`a.tar`: 1 member with another suffix is left out, `2.b`",
    ]


def test_a_link_skips_its_sample(raw: Raw) -> None:
    link = tarfile.TarInfo("1.jpg")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    raw.put("a.tar", tar({"1.cls": b"1"})[:1024] + link.tobuf() + tar({"2.cls": b"2"}))
    made = raw.made()
    assert made.skipped == {"train/1": ("SRC072", "`1.jpg` is a symbolic link, in `a.tar`")}
    assert list(made.written) == ["train/2"]


def test_a_cut_archive_skips_the_cut_sample_and_says_so(raw: Raw) -> None:
    whole = tar({"1.a": b"x" * 600, "2.a": b"y", "2.b": b"z" * 600})
    raw.put("a.tar", whole[: 512 * 3 + 1024 + 600])
    made = raw.made()
    assert list(made.written) == ["train/1"]
    assert made.skipped == {
        "train/2": (
            "SRC074",
            "`a.tar`: it ends at byte 3160, and a member should end at 3672; what follows is "
            "not read",
        )
    }


def test_a_damaged_header_ends_an_archive(raw: Raw) -> None:
    whole = bytearray(tar({"1.a": b"x", "2.a": b"y"}))
    whole[1024] ^= 1
    raw.put("a.tar", bytes(whole))
    raw.put("b.tar", {"3.a": b""})
    raw.put("c.tar", b"")
    made = raw.made()
    assert sorted(made.written) == ["train/1", "train/3"]
    assert codes(made) == {"train/a.tar": "SRC074", "train/c.tar": "SRC074"}


def test_an_archive_without_its_end_is_remarked(raw: Raw) -> None:
    raw.put("a.tar", tar({"1.a": b"x"})[:1024])
    made = raw.made()
    assert list(made.written) == ["train/1"]
    (remark,) = made.remarks
    assert remark.code == "SRC075"
    assert remark.detail == "`a.tar`: it ends without the blocks that end an archive"


@pytest.mark.parametrize(
    ("stop", "written"),
    [
        (512 * 5 + 100, ["train/1"]),  # inside the padding of `2.a`
        (512 * 5 + 511, ["train/1"]),
        (512 * 6, ["train/1"]),  # `2.b` is gone
        (512 * 8 - 1, ["train/1"]),  # inside the padding of `2.b`
        (512 * 8, ["train/1", "train/2"]),
        (512 * 11, ["train/1", "train/2"]),  # `3.a` has an extended header, and nothing else
    ],
)
def test_a_cut_behind_the_data_of_a_member_is_damage(
    raw: Raw, stop: int, written: list[str]
) -> None:
    members = {f"{n}.{each}": b"x" * 10 for n in (1, 2) for each in "ab"}
    raw.put("a.tar", tar({**members, "3" * 150 + ".a": b"x"})[:stop])
    made = raw.made()
    assert sorted(made.written) == written
    whole, told = stop == 512 * 8, stop in (512 * 6, 512 * 8)
    assert {code for code, _ in made.skipped.values()} == (set() if whole else {"SRC074"})
    assert [each.code for each in made.remarks] == (["SRC075"] if told else [])


def test_a_compressed_archive_is_refused_by_its_name_or_its_bytes(raw: Raw) -> None:
    path = raw.put("a.tar", gzip.compress(tar({"1.a": b"x"})))
    for name in ("a.tar", "a.tar.gz", "a.tgz"):
        path = path.rename(raw.path / name)
        error = raw.error()
        assert error.message.startswith(f"`{name}` is compressed")
        assert error.hint.startswith("decompress the shards first: `gunzip *.tar.gz`")


def test_a_file_of_another_kind_is_refused(raw: Raw) -> None:
    raw.put("a.tar", b"PK\3\4" + b"x" * 1000)
    error = raw.error()
    assert error.message.startswith("`a.tar` is not a tar file: the header at byte 0 is damaged")


def test_a_folder_without_tar_files_is_refused(raw: Raw) -> None:
    raw.put("a.zip", b"")
    assert raw.error().message == f"`{raw.path}` holds no file `*.tar`"


def test_links_to_files_and_folders_are_followed(raw: Raw, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "x.tar").write_bytes(tar({"1.a": b"x"}))
    (raw.path / "train").symlink_to(store)
    (raw.path / "test-0.tar").symlink_to(store / "x.tar")
    assert sorted(raw.made().written) == ["test/1", "train/1"]
    (raw.path / "val-0.tar").symlink_to(store / "none")
    assert raw.error().message == "`val-0.tar` is a link that leads to no file"


def test_a_hidden_archive_is_left_out(raw: Raw) -> None:
    raw.put("a.tar", {"1.a": b"x"})
    raw.put("._a.tar", b"AppleDouble")
    made = raw.made()
    assert list(made.written) == ["train/1"]
    assert [each.detail for each in made.remarks] == ["1 tar file is left out, `._a.tar`"]


def test_keys_with_dots_are_told_before_they_fill_the_memory(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_MAX_SUFFIXES", 3)
    raw.put("a.tar", {f"img.{number}.jpg": b"" for number in range(5)})
    message = raw.error().message
    assert message.startswith("the samples have more than 3 suffixes, the last is `3.jpg`")


def test_a_sample_is_bounded(raw: Raw) -> None:
    raw.put("a.tar", {"2.a": b""})
    huge = tarfile.TarInfo("3.a")
    huge.size = MAX_SAMPLE_BYTES + 1
    with (raw.path / "b.tar").open("wb") as file:
        file.write(huge.tobuf(tarfile.GNU_FORMAT))
        file.truncate(MAX_SAMPLE_BYTES + 2048)
    made = raw.made()
    assert made.skipped["train/3"][1].startswith(f"its members have {MAX_SAMPLE_BYTES + 1} bytes")
    assert list(made.written) == ["train/2"]


def test_describe_says_what_is_there(raw: Raw) -> None:
    raw.put("train-0.tar", {"1.jpg": b"", "1.cls": b""})
    raw.put("train-1.tar", {"2.jpg": b""})
    raw.put("val-0.tar", {"2.jpg": b""})
    assert raw.source().describe() == {
        "split train": "2 tar files, from train-0.tar",
        "split validation": "val-0.tar",
        "suffixes": "jpg (3), cls (1)",
    }
