"""TensorFlow reads what we write, and we read what it writes."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memory_support import see

from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.storage.local import LocalStorage

PAYLOADS = [random.Random(n).randbytes(n * 7 % 300) for n in range(120)]


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")


def tf_reads(tf: Any, path: Path, compression: str) -> Iterator[bytes]:
    kind = {"none": "", "gzip": "GZIP"}[compression]
    for record in tf.data.TFRecordDataset(str(path), compression_type=kind):
        yield record.numpy()


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_tensorflow_reads_what_we_write(tf: Any, tmp_path: Path, compression: Any) -> None:
    storage = LocalStorage(str(tmp_path))
    large = [random.Random(1).randbytes(700_000) for _ in range(4)]
    for payloads in ([], PAYLOADS + large):
        with ShardWriter(storage, "ours", compression=compression) as writer:
            for payload in payloads:
                writer.write(payload, digest=record_digest(payload), key="")
        assert list(tf_reads(tf, tmp_path / "ours", compression)) == payloads


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_we_read_what_tensorflow_writes(tf: Any, tmp_path: Path, compression: Any) -> None:
    options = tf.io.TFRecordOptions(compression_type={"none": "", "gzip": "GZIP"}[compression])
    path = tmp_path / "theirs"
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for payload in PAYLOADS:
            writer.write(payload)
    seen = see(path.read_bytes(), declared=compression)
    assert seen.faults == []
    assert [payload for _, _, payload in seen.records] == PAYLOADS
    assert seen.end.compression == compression
    twice = see(path.read_bytes() * 2, declared=compression)
    assert twice.faults == []
    assert [payload for _, _, payload in twice.records] == PAYLOADS * 2


def test_our_plain_bytes_are_tensorflows(tf: Any, tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    with ShardWriter(storage, "ours") as ours, tf.io.TFRecordWriter(f"{tmp_path}/theirs") as theirs:
        for payload in PAYLOADS:
            ours.write(payload, digest=record_digest(payload), key="")
            theirs.write(payload)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_multi_member_gzip_means_the_same_to_both(tf: Any, tmp_path: Path) -> None:
    from tfrecreg.core.records.framing import frame

    stream = b"".join(b"".join((frame(p)[0], p, frame(p)[1])) for p in PAYLOADS)
    data = b"".join(gzip.compress(stream[at : at + 777]) for at in range(0, len(stream), 777))
    (tmp_path / "many").write_bytes(data)
    assert list(tf_reads(tf, tmp_path / "many", "gzip")) == PAYLOADS
    assert [payload for _, _, payload in see(data).records] == PAYLOADS
