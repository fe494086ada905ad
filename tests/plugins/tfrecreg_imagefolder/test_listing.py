"""Items of folders of classes: labels, splits, groups, and what is counted beside them."""

from __future__ import annotations

import os
from collections import defaultdict

from image_support import jpeg

from tfrecreg.core.build.sources.interface import RawFile


def test_labels_are_positions_among_the_classes_in_the_order_of_their_bytes(raw) -> None:
    raw.puts("b/1.png", "a/1.png", "B/1.png", "10/1.png", "9/1.png", "é/1.png", "z/1.png")
    names = ["10", "9", "B", "a", "b", "z", "é"]
    assert raw.source("twins=apart").labels() == {"image/class/label": names}
    assert raw.made("twins=apart").labels() == {
        f"{name}/1.png": (number, name) for number, name in enumerate(names)
    }


def test_labels_may_count_from_1_and_0_is_then_no_class(raw) -> None:
    raw.puts("cat/1.png", "dog/1.png")
    assert raw.source("labels_from=1").labels() == {"image/class/label": ["", "cat", "dog"]}
    assert raw.made("labels_from=1").labels() == {"cat/1.png": (1, "cat"), "dog/1.png": (2, "dog")}


def test_classes_of_all_splits_are_numbered_together(raw) -> None:
    raw.puts("train/cat/1.png", "train/dog/1.png", "test/bird/1.png", "test/dog/1.png")
    assert raw.source().labels() == {"image/class/label": ["bird", "cat", "dog"]}
    labels = {
        (split, key): found["image/class/label"]
        for (split, key), found in raw.made().written.items()
    }
    assert labels == {
        ("test", "bird/1.png"): 0,
        ("test", "dog/1.png"): 2,
        ("train", "cat/1.png"): 1,
        ("train", "dog/1.png"): 2,
    }


def test_an_empty_class_keeps_its_number_and_is_said(raw) -> None:
    raw.puts("a/1.png", "c/1.png")
    (raw.path / "b").mkdir()
    assert raw.source().labels() == {"image/class/label": ["a", "b", "c"]}
    assert raw.made().labels()["c/1.png"] == (2, "c")
    assert raw.source().describe()["classes without images"] == "1 (`b`)"


def test_what_lies_beside_class_folders_is_counted(raw) -> None:
    raw.puts("cat/1.png", "README", "list.txt", ".DS_Store", "cat/.DS_Store", "cat/Thumbs.db")
    os.mkfifo(raw.path / "fifo")
    made = raw.made()
    assert made.splits() == {"train": 1}
    assert made.skipped == {}
    assert made.remarks == [
        ("train", ".DS_Store", "SRC015", "3 hidden names, the first of them `.DS_Store`", 3),
        ("train", "README", "SRC015", "3 stray names, the first of them `README`", 3),
    ]
    assert raw.source().describe()["left out"] == (
        "3 hidden names, the first of them `.DS_Store`, 3 stray names, the first of them `README`"
    )


def test_other_extensions_are_stray_only_where_some_were_asked_for(raw) -> None:
    raw.puts("cat/1.png", "cat/2.PNG")
    raw.put("cat/notes.txt", "notes")
    assert raw.made().codes() == {"cat/notes.txt": "SRC003"}
    made = raw.made("extensions=png")
    assert made.skipped == {}
    assert made.splits() == {"train": 2}
    assert [remark.detail for remark in made.remarks] == ["1 stray name, `cat/notes.txt`"]


def test_a_class_behind_a_link_out_of_the_folder_is_a_class(raw, tmp_path) -> None:
    raw.puts("cat/1.png")
    (tmp_path / "dogs").mkdir()
    (tmp_path / "dogs/2.png").write_bytes(raw.put("cat/1.png").read_bytes())
    raw.link("dog", "../dogs")
    size = (tmp_path / "dogs/2.png").stat().st_size
    assert raw.made().labels() == {"cat/1.png": (0, "cat"), "dog/2.png": (1, "dog")}
    assert RawFile("dog/2.png", size, size) in list(raw.source().raw_files())


def test_raw_files_are_the_files_of_the_items(raw) -> None:
    first = raw.put("train/cat/1.png").stat().st_size
    second = raw.put("test/dog/2.png", b"twelve bytes").stat().st_size
    raw.puts("train/.hidden", "LICENSE")
    assert list(raw.source().raw_files()) == [
        RawFile("train/cat/1.png", first, first),
        RawFile("test/dog/2.png", second, second),
    ]
    raw.link("train/cat/2.png", "1.png")
    assert RawFile("train/cat/2.png", first, first) in list(raw.source().raw_files())


def test_an_estimate_is_close_to_the_record(raw) -> None:
    from tfrecreg.core.example.model import encode

    raw.puts("cat/1.png", "a class with a long name/an image with a long name.png")
    raw.put("cat/large.jpg", jpeg(5_000, 4_000, scan=bytes(1_000_000)))
    source = raw.source()
    for item in source.items():
        size = len(encode(source.example(item)))
        assert size <= item.size <= size + 40


def test_splits_by_fractions_cover_everything_once(raw) -> None:
    names = [f"{name}/{number}.png" for name in ("cat", "dog") for number in range(60)]
    raw.puts(*names)
    made = raw.made("split=train=0.6,validation=0.2,test=0.2")
    assert sorted(key for _, key in made.written) == sorted(names)
    assert sorted(made.splits()) == ["test", "train", "validation"]
    again = raw.made("split=train=0.6,validation=0.2,test=0.2")
    assert again.written == made.written


def test_a_group_stays_in_one_split_whatever_its_class(raw) -> None:
    names = [
        f"{kind}/patient{number:02}_{view}.png"
        for number in range(40)
        for kind in ("sick", "well")
        for view in range(2)
    ]
    raw.puts(*names)
    apart = defaultdict(set)
    for split, key in raw.made("split=train=0.5,test=0.5").written:
        apart[key.split("/")[1].split("_")[0]].add(split)
    assert any(len(splits) > 1 for splits in apart.values())  # so the option has something to do
    together = defaultdict(set)
    made = raw.made("split=train=0.5,test=0.5", "group=^(patient[0-9]+)_")
    for split, key in made.written:
        together[key.split("/")[1].split("_")[0]].add(split)
    assert all(len(splits) == 1 for splits in together.values())
    assert sorted(made.splits()) == ["test", "train"]


def test_what_is_skipped_has_a_split_too(raw) -> None:
    raw.puts(*(f"cat/{number}.png" for number in range(40)))
    for number in range(40):
        raw.link(f"cat/link{number}", "nowhere")
    made = raw.made("split=a=0.5,b=0.5")
    assert {split for split, _ in made.skipped} == {"a", "b"}
    assert len(made.skipped) == 40
