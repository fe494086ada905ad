"""TensorFlow, which stops at damage, reads all of the clean shard without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from salvage_support import filler, make, put, rescue


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


@pytest.mark.parametrize("compression", ["", "GZIP"])
@pytest.mark.parametrize("at", [0.2, 0.5, 0.8])
def test_clean_shards_read_without_an_error(
    tf: Any, tmp_path: Path, compression: str, at: float
) -> None:
    payloads = [filler(number) for number in range(400)]
    made = make(payloads, member_bytes=2000 if compression else None)
    data = bytearray(made.data)
    data[int(at * len(data))] ^= 0xFF
    path = put(tmp_path, bytes(data), made.index)
    with pytest.raises(tf.errors.DataLossError):
        list(tf.data.TFRecordDataset(str(path), compression_type=compression))
    shard = rescue(path, tmp_path / "out")
    clean = tf.data.TFRecordDataset(str(tmp_path / "out/x.tfrecord"), compression_type=compression)
    found = list(clean.as_numpy_iterator())
    lost = {int(key[1:]) for key in shard.lost_keys or ()}
    assert found == [payload for number, payload in enumerate(payloads) if number not in lost]
    assert 300 < len(found) < 401
