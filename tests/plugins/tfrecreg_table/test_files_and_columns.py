"""The mapping of columns, columns that name files, keys, splits, and the tables of a folder."""

from __future__ import annotations

import hashlib
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from image_support import png
from media_support import wav

from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.shards import named_classes


def test_a_csv_beside_images_is_one_line(raw) -> None:
    raw.put("images/a.png", png(5, 4, seed=1))
    raw.put("images/b.png", png(5, 4, seed=2)[:-6])
    raw.put("train.csv", "id,breed,age\na,tabby,3\nb,Zoë,4\n")
    made = raw.made("columns=id:file(images/{}.png),breed:label,age:int64")
    data = png(5, 4, seed=1)
    assert made.written["train", "a"] == {
        "image/encoded": [data],
        "image/format": [b"png"],
        "image/height": [4],
        "image/width": [5],
        "image/filename": [b"a.png"],
        "image/key/sha256": [hashlib.sha256(data).hexdigest().encode()],
        "image/class/label": [1],
        "image/class/text": [b"tabby"],
        "age": [3],
    }
    assert [(each.code, each.key) for each in made.remarks] == [("SRC014", "b")]
    source = raw.source("columns=id:file(images/{}.png),breed:label,age:int64")
    assert source.labels() == {"image/class/label": ["Zoë", "tabby"]}
    assert source.raw_path("train", "a") == "images/a.png"
    assert {file.path for file in source.raw_files()} == {
        "train.csv",
        "images/a.png",
        "images/b.png",
    }


def test_only_the_files_of_items_are_raw_files(raw) -> None:
    raw.put("a.txt", "a")
    raw.put("b.txt", "b")
    raw.put("train.csv", "id,f\n1,a.txt\n1,b.txt\n")
    options = "columns=f:file", "key=id"
    assert raw.made(*options).codes() == ["SRC114"]
    assert {file.path for file in raw.source(*options).raw_files()} == {"train.csv", "a.txt"}


def test_features_have_the_names_of_columns_in_any_script(raw) -> None:
    raw.put("a.png", png(2, 2))
    raw.put("train.csv", "größe,年齢,写真\n1,x,a.png\n")
    options = "columns=größe,年齢,写真:image=写真"
    (found,) = raw.made(options).written.values()
    assert (found["größe"], found["年齢"], found["写真/width"]) == ([1], [b"x"], [2])
    names = {each.name for each in parse_schema(raw.source(options).schema()).features}
    assert names == found.keys()


def test_sounds_and_other_files_are_read_by_their_suffix(raw) -> None:
    raw.put("s/1.wav", wav(0.5))
    raw.put("n.bin", b"\0\1")
    raw.put("train.csv", "s,b\n1,./n.bin\n")
    made = raw.made("columns=s:file(s/{}.wav),b:file=blob")
    assert list(made.written) == [("train", "00000001")]
    (found,) = made.written.values()
    assert found["blob/bytes"] == [b"\0\1"]
    assert found["s/duration"] == [0.5]
    assert raw.source("columns=s:file(s/{}.wav),b:file=blob").raw_path("train", "00000001") is None


def test_rows_whose_files_cannot_be_used_are_skipped(raw) -> None:
    raw.put("a.png", png(2, 2))
    raw.put("empty.png", b"")
    (raw.path / "folder.png").mkdir()
    raw.put(
        "train.csv",
        "f,n\na.png,1\n,2\n/etc/passwd,3\n../x.png,4\ngone.png,5\nfolder.png,6\nempty.png,7\n"
        "a.png,8\nC:\\x.png,9\n",
    )
    made = raw.made("columns=f:image,n")
    assert list(made.written) == [("train", "a.png")]
    assert {key: code for (_, key), (code, _) in made.skipped.items()} == {
        "train.csv:3": "SRC112 missing",
        "train.csv:4": "SRC111",
        "train.csv:5": "SRC111",
        "train.csv:6": "SRC112 missing",
        "train.csv:7": "SRC112 missing",
        "empty.png": "SRC110 empty",
        "train.csv:9": "SRC114",
        "train.csv:10": "SRC111",
    }


def test_columns_are_named_left_out_or_taken_by_a_star(raw) -> None:
    raw.put("train.csv", "a,b,c,d\n1,2,3,4\n")
    made = raw.made("columns=a:text,b:skip")
    assert made.written["train", "00000001"] == {"a": [b"1"]}
    assert [(each.code, each.key, each.times) for each in made.remarks] == [("SRC117", "c", 2)]
    made = raw.made("columns=*,b:skip,a:float=x/y")
    assert made.written["train", "00000001"] == {"x/y": [1.0], "c": [3], "d": [4]}
    assert not made.remarks
    assert raw.made("columns=*:text").values("c") == [[b"3"]]


def test_classes_are_numbered_by_their_numbers_or_their_names(raw) -> None:
    raw.put("train.csv", "label,b\n10,x\n9,Y\n10,x\n")
    source = raw.source("columns=label:label,b:label")
    assert source.labels() == {"label": ["9", "10"], "b": ["Y", "x"]}
    assert named_classes(source.labels()["b"]) == {0: "Y", 1: "x"}
    made = raw.made("columns=label:label")
    assert made.values("class/label") == [[1], [0], [1]]
    assert made.values("class/text") == [[b"10"], [b"9"], [b"10"]]
    raw.put("train.csv", "a,b\n10.0,10\n2.0,2\n-1.5,02\n2,2\n")  # `02` is no decimal
    labels = raw.source("columns=a:label,b:label").labels()
    assert labels == {"a": ["-1.5", "2", "2.0", "10.0"], "b": ["02", "10", "2"]}


def test_a_value_of_another_type_skips_its_row(raw) -> None:
    raw.put("train.csv", "a,b\n1,1\nx,2\n9223372036854775808,3\n")
    made = raw.made("columns=a:int64,b:int64")
    assert made.values("b") == [[1]]
    code, detail = made.skipped["train", "00000002"]
    assert code == "SRC113"
    assert detail.startswith("`train.csv`, line 3: the column `a`: ")


def test_a_column_gives_the_keys(raw) -> None:
    raw.put("train.csv", "k,v\na,1\n,2\na,3\n")
    made = raw.made("key=k")
    assert list(made.written) == [("train", "a")]
    assert made.codes() == ["SRC114"] * 2


def test_a_column_gives_the_splits(raw) -> None:
    raw.put("data.csv", "s,v\ntrain,1\nval,2\nTEST,3\n")
    assert {split for split, _ in raw.made("split_column=s").written} == {
        "train",
        "validation",
        "test",
    }
    raw.put("data.jsonl", '{"s": true, "v": 1}\n{"s": false, "v": 2}\n')
    made = raw.made("file=data.jsonl", "split_column=s")
    assert {split for split, _ in made.written} == {"true", "false"}
    assert raw.made("file=./data.jsonl", "split_column=s") == made
    (raw.path / "data.jsonl").unlink()
    raw.put("data.csv", "s,v\ntrain,1\n,2\n")
    assert "`data.csv`, line 3" in raw.error("split_column=s").message
    raw.put("data.csv", "s,v\n" + "".join(f"s{n},1\n" for n in range(101)))
    assert "`data.csv`, line 102" in raw.error("split_column=s").message


def test_each_table_named_after_a_split_is_one(raw) -> None:
    raw.put("train-1.csv", "a,label\n1,x\n")
    raw.put("train-2.csv", "a,label\n2,y\n")
    raw.put("test.csv", "a\n3\n")
    raw.put("sample_submission.csv", "a,b\n1,2\n")
    made = raw.made("columns=a:int64,label:label")
    assert set(made.written) == {
        ("train", "train-1.csv:00000001"),
        ("train", "train-2.csv:00000001"),
        ("test", "00000001"),
    }
    assert made.written["test", "00000001"]["class/label"] == []
    assert {(each.code, each.key) for each in made.remarks} == {
        ("SRC118", "label"),
        ("SRC015", "sample_submission.csv"),
    }


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ([], ()),
        (["a.csv", "b.csv"], ()),
        (["a.csv", "b.csv"], ("file=a.csv,b.csv",)),
        (["a.csv"], ("file=b.csv",)),
        (["a.csv"], ("file=../a.csv",)),
        (["a.xlsx"], ("file=a.xlsx",)),
        (["a.csv"], ("columns=z",)),
        (["a.csv"], ("columns=x:int32",)),
        (["a.csv"], ("columns=x:file(../{})",)),
        (["a.csv"], ("columns=x:int64,y:int64=x",)),
        (["a.csv"], ("key=z",)),
        (["a.csv"], ("split_column=z",)),
        (["a.csv"], ("delimiter=ab",)),
    ],
)
def test_what_does_not_fit_is_refused(raw, files, options) -> None:
    for name in files:
        raw.put(name, "x,y\n1,2")
    raw.error(*options)


CAPTIONS = [{"file_name": f"{n}.png", "text": f"thing {n}"} for n in range(3)]


def metadata(suffix: str, rows: list[dict[str, object]]) -> bytes:
    """The rows as `metadata.csv`, `.jsonl` or `.parquet`."""
    if suffix == "jsonl":
        return "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    if suffix == "csv":
        lines = [rows[0].keys(), *(row.values() for row in rows)]
        return "".join(",".join(map(str, line)) + "\n" for line in lines).encode()
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("folders", [("",), ("train/",), ("train/", "validation/")])
def test_metadata_of_hugging_face_names_the_images_beside_it(raw, suffix, folders) -> None:
    for folder in folders:
        raw.put(f"{folder}metadata.{suffix}", metadata(suffix, CAPTIONS))
        for n in range(4):
            raw.put(f"{folder}{n}.png", png(5, 4, seed=n))
    made = raw.made()
    splits = [folder.rstrip("/") or "train" for folder in folders]
    assert [*made.written] == [(split, f"{n}.png") for split in splits for n in range(3)]
    assert made.values("image/encoded") == [[png(5, 4, seed=n)] for _ in splits for n in range(3)]
    assert made.values("text") == [[f"thing {n}".encode()] for _ in splits for n in range(3)]
    (remark,) = made.remarks
    assert (remark.code, remark.key, remark.times) == (
        "SRC117 image",
        f"{folders[0]}3.png",
        len(folders),
    )
    assert raw.source().raw_path(splits[-1], "1.png") == f"{folders[-1]}1.png"


def test_metadata_above_folders_of_splits_keeps_the_splits(raw) -> None:
    paths = ["train/a/0.png", "test/0.png", "1.png", "train/2.png"]
    rows = [{"file_name": path, "objects": {"bbox": [[1, 2]], "n": 1}} for path in paths]
    raw.put("metadata.jsonl", metadata("jsonl", rows))
    for path in paths[:3]:
        raw.put(path, png(5, 4))
    assert "objects/bbox:skip" in raw.error().hint
    made = raw.made("columns=*,objects/bbox:skip")
    assert {*made.written} == {("train", paths[0]), ("test", paths[1]), ("train", paths[2])}
    assert made.values("objects/n") == [[1]] * 3
    assert made.codes() == ["SRC112 missing"]
