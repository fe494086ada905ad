"""What the tests of data sources share: a cache of their own, and shards of other tools."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from check_support import framed

from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, empty at first."""
    folder = tmp_path / "user-cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def payload(number: int) -> bytes:
    """An Example whose `number` is the argument, of a size that varies."""
    return encode(
        {
            "number": int64_feature(number),
            "point": float_feature([number, number / 2]),
            "words": bytes_feature([b"word"] * (number % 4)),
        }
    )


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Makes a shard such as another tool writes; it is old enough to be remembered."""

    def make(name: str, payloads: Sequence[bytes], *, zipped: bool = False) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = framed(*payloads)
        path.write_bytes(gzip.compress(data) if zipped else data)
        os.utime(path, (1e9, 1e9))
        return path

    return make


@pytest.fixture
def numbers(write: Write) -> Path:
    """The folder of 100 numbered records in four shards, two of them gzip and one empty."""
    cuts = [0, 30, 30, 31, 100]
    for shard in range(4):
        part = [payload(number) for number in range(cuts[shard], cuts[shard + 1])]
        write(f"numbers/train-{shard:05d}-of-00004.tfrecord", part, zipped=shard > 1)
    path = write("numbers/test-00000-of-00001.tfrecord", [payload(n) for n in range(500, 510)])
    return path.parent
