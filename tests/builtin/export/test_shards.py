"""Shards come whole and verified, or not at all."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests_support import flip

from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.plugins.exporters import ShardToExport, export_plain
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.registry.manifest import ShardEntry
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RefusedError

NAME = "things-train.tfrecord-00000-of-00001"


def task(tmp_path: Path, compression="none", values=(b"a", b"b")) -> ShardToExport:
    source = LocalStorage(tmp_path / "source")
    with ShardWriter(source, "s/shard", compression=compression) as writer:
        for key, value in enumerate(values):
            payload = encode({"x": bytes_feature(value), "n": int64_feature(key)})
            writer.write(payload, digest=bytes(16), key=str(key))
    entry = ShardEntry.of("s/shard", writer.written, split="train", index="")
    return ShardToExport(
        reference="things@1.0.0",
        storage=source,
        entry=entry,
        compression=compression,
        folder=LocalStorage(tmp_path / "stage"),
        name=NAME,
    )


def test_where_links_are_refused_it_is_copied(tmp_path, monkeypatch) -> None:
    todo = task(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refuse)
    assert export_plain(todo).how == "copied"
    source, target = tmp_path / "source/s/shard", tmp_path / "stage" / NAME
    assert not source.samefile(target)
    assert source.read_bytes() == target.read_bytes()


def test_another_file_system_is_copied_to(tmp_path: Path, elsewhere: Path) -> None:
    todo = replace(task(tmp_path), folder=LocalStorage(elsewhere))
    assert export_plain(todo).how == "copied"
    assert (elsewhere / NAME).read_bytes() == (tmp_path / "source/s/shard").read_bytes()


def test_a_link_into_a_cache_is_followed(tmp_path: Path) -> None:
    todo = task(tmp_path)
    shard = tmp_path / "source/s/shard"
    shard.rename(tmp_path / "cached")
    shard.symlink_to(tmp_path / "cached")
    assert export_plain(todo).how == "linked"
    target = tmp_path / "stage" / NAME
    assert not target.is_symlink()
    assert target.samefile(tmp_path / "cached")


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_damaged_shard_is_refused(tmp_path: Path, compression: str) -> None:
    size = task(tmp_path, compression).entry.bytes
    # The first bytes of gzip hold a time and a system, which are no part of the records.
    for at in range(0 if compression == "none" else 20, size, 3):
        todo = task(tmp_path / str(at), compression)
        flip(tmp_path / str(at) / "source/s/shard", at)
        try:
            done = export_plain(todo)
        except RefusedError:
            continue
        # A trailer that is wrong about bytes that are right: the records are what they were.
        assert compression == "gzip", (at, done)
        assert at >= size - 8


def test_a_stream_that_does_not_end_is_cut_and_refused(tmp_path: Path) -> None:
    todo = task(tmp_path, "gzip")
    task(tmp_path, "gzip", [bytes(1 << 20)] * 64)  # 64 MiB in some kB
    with pytest.raises(RefusedError):
        export_plain(todo)
    assert (tmp_path / "stage" / NAME).stat().st_size <= 2 << 20
