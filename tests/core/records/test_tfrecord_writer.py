"""Records written by hand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

import tfrecreg
from tfrecreg import TFRecordWriter
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.records.index import read_index
from tfrecreg.core.values.errors import UsageError


def write(path: Path, **records: Any) -> None:
    with TFRecordWriter(path) as writer:
        for key, record in records.items():
            writer.write(record, key=key)


@pytest.mark.parametrize(("name", "compression"), [("a.tfrecord", ""), ("a.tfrecord.gz", "GZIP")])
def test_tensorflow_reads_what_was_written(tmp_path: Path, name: str, compression: str) -> None:
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    path = tmp_path / "new" / name
    with TFRecordWriter(path) as writer:
        for number in range(3):
            writer.write({"n": number, "text": f"number {number}"})
        writer.write(b"any bytes")
        assert writer.records == 4
        assert not path.exists()
    found = [each.numpy() for each in tf.data.TFRecordDataset(str(path), compression)]
    assert found[3] == b"any bytes"
    example = tf.train.Example.FromString(found[2])
    assert list(example.features.feature["n"].int64_list.value) == [2]
    assert list(example.features.feature["text"].bytes_list.value) == [b"number 2"]
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == bool(compression)


def test_with_an_index_records_have_keys(tmp_path: Path) -> None:
    path = tmp_path / "train.tfrecord"
    with TFRecordWriter(path, index=True) as writer:
        writer.write({"n": 1}, key="one")
        writer.write({"n": 2}, key="two")
    report = tfrecreg.check(path)
    assert (report.status, report.records) == ("pass", 2)
    assert (tmp_path / "index/train.tfrecord.index").is_file()
    with tfrecreg.Records(path) as records:
        assert tfrecreg.decode(records[1])["n"].values == (2,)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_index_has_the_digest_of_each_canonical_payload(
    tmp_path: Path, compression: Any
) -> None:
    ordered = encode({"a": bytes_feature(b"x"), "b": int64_feature(1)})
    # The same entries the other way round: protobuf writes them in the order of insertion.
    first, second = ordered[2 : 2 + 12], ordered[2 + 12 :]
    swapped = ordered[:2] + second + first
    assert canonical(swapped) == ordered != swapped
    payloads = [ordered, swapped, b"any bytes", b"", encode({"n": int64_feature(5)})]
    path = tmp_path / "train.tfrecord"
    with TFRecordWriter(path, compression=compression, index=True) as writer:
        for payload in payloads:
            writer.write(payload)
        writer.write({"n": 5})
    index = read_index((tmp_path / "index/train.tfrecord.index").read_bytes(), "train")
    expected = [ordered, ordered, b"any bytes", b"", payloads[4], payloads[4]]
    assert [bytes(each) for each in index.digests] == [
        blake3(each).digest()[:16] for each in expected
    ]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^record `second`: feature `n`: an empty list has no"):
        write(tmp_path / "a", first={"n": 1}, second={"n": []})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(UsageError):
        write(path, first=b"new", second={"n": []})
    assert path.read_bytes() == b"old"
    write(path, first=b"new")
    assert b"new" in path.read_bytes()


def test_what_cannot_be_begun_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`none` or `gzip`, found `zip`"):
        TFRecordWriter(tmp_path / "a.tfrecord", compression="zip")  # type: ignore[arg-type]
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(UsageError, match="` is not a regular file"):
            TFRecordWriter(path)
    assert (tmp_path / "pipe").is_fifo()


def test_a_key_is_used_once_where_there_is_an_index(tmp_path: Path) -> None:
    writer = TFRecordWriter(tmp_path / "a", index=True)
    writer.write(b"1", key="x")
    with pytest.raises(UsageError) as caught:
        writer.write(b"2", key="x")
    writer.close()
    assert caught.value.message == "the key `x` is taken by an earlier record"


@pytest.mark.parametrize(
    ("record", "key", "message"),
    [
        ("text", None, "record `0` is an object of type `str`, expected bytes or a dictionary"),
        (3, None, "record `0` is an object of type `int`, expected bytes or a dictionary"),
        ([1], "k", "record `k` is an object of type `list`, expected bytes or a dictionary"),
        (None, None, "record `0` is None, expected bytes or a dictionary"),
        (b"x", 5, "a key is a string, found an object of type `int`"),
        (
            {"\ud800": 1},
            "k",
            "record `k`: 'utf-8' codec can't encode character '\\ud800' in position 0: surrogates "
            "not allowed",
        ),
        (bytes(101), None, "the record of `0` has 101 bytes, but at most 100 fit"),
    ],
)
def test_what_is_no_record_is_refused(
    tmp_path: Path, record: Any, key: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrecreg.core.records.writer.MAX_LENGTH", 100)
    with TFRecordWriter(tmp_path / "a.tfrecord", index=True) as writer:
        with pytest.raises(UsageError) as caught:
            writer.write(record, key=key)
        assert caught.value.message == message
        writer.write(bytearray(b"a"))
        writer.write(memoryview(b"b"))
        assert writer.records == 2
    assert list(tfrecreg.Records(tmp_path / "a.tfrecord")) == [b"a", b"b"]
