"""Shards come whole and verified, or not at all."""

from __future__ import annotations

import errno
import gzip
import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from tests_support import flip

from tfrecreg.builtin.export.formats.tfds import PlainShards
from tfrecreg.core.example.encode import encode
from tfrecreg.core.example.features import bytes_feature, int64_feature
from tfrecreg.core.plugins.exporters.shards import ShardToExport, export_plain, numbered
from tfrecreg.core.records.writer import ShardWriter
from tfrecreg.core.registry.manifest.model import ShardEntry
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


def stream(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def test_a_plain_shard_becomes_a_hard_link(tmp_path: Path) -> None:
    todo = pickle.loads(pickle.dumps(task(tmp_path)))
    done = export_plain(todo)
    assert done.how == "linked"
    assert (tmp_path / "stage" / NAME).samefile(tmp_path / "source/s/shard")
    assert pickle.loads(pickle.dumps(done)) == done


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM])
def test_where_links_are_refused_it_is_copied(tmp_path, monkeypatch, number) -> None:
    todo = task(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

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


def test_a_gzip_shard_is_decompressed_to_the_byte(tmp_path: Path) -> None:
    values = [os.urandom(700_000) for _ in range(5)]
    todo = task(tmp_path, "gzip", values)
    assert export_plain(todo).how == "decompressed"
    target = tmp_path / "stage" / NAME
    assert target.read_bytes() == stream(tmp_path / "source/s/shard")


def test_an_empty_shard_comes_too(tmp_path: Path) -> None:
    for compression in ("none", "gzip"):
        todo = task(tmp_path / compression, compression, ())
        export_plain(todo)
        assert (tmp_path / compression / "stage" / NAME).read_bytes() == b""


def test_images_are_looked_at_wherever_they_are(tmp_path: Path) -> None:
    gif = b"GIF89a\x07\0\x05\0" + b"\0" * 9
    todo = task(tmp_path, values=(gif, b"none", [gif, gif]))
    seen = PlainShards(("x", "n", "y"))(todo).seen.images
    assert (seen["x"].count, seen["x"].strange) == (3, 1)
    assert seen["x"].where == "record 1 of `s/shard`"
    assert (seen["x"].heights, seen["x"].widths) == ({5}, {7})
    assert seen["n"].count == seen["y"].count == 0


REFUSED = r"^`s/shard` is not what `things@1\.0\.0` has registered: "


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


def test_a_refusal_says_what_to_do(tmp_path: Path) -> None:
    todo = task(tmp_path)
    flip(tmp_path / "source/s/shard", 20)
    with pytest.raises(RefusedError, match=REFUSED + "CRC002 at byte 0: ") as caught:
        export_plain(todo)
    assert caught.value.hint == "tfrecreg check things@1.0.0"


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("values", [(b"a",), (b"a", b"c"), (b"b", b"a"), (b"a", b"b", b"c")])
def test_another_shard_is_refused(tmp_path: Path, compression: str, values) -> None:
    todo = task(tmp_path, compression)
    task(tmp_path, compression, values)
    with pytest.raises(RefusedError, match="its records should have the digest"):
        export_plain(todo)


def test_gzip_that_was_declared_plain_is_refused(tmp_path: Path) -> None:
    todo = replace(task(tmp_path, "gzip"), compression="none")
    with pytest.raises(RefusedError, match="CRC006 at byte 0: compression should be `none`"):
        export_plain(todo)


def test_a_stream_that_does_not_end_is_cut_and_refused(tmp_path: Path) -> None:
    todo = task(tmp_path, "gzip")
    task(tmp_path, "gzip", [bytes(1 << 20)] * 64)  # 64 MiB in some kB
    with pytest.raises(RefusedError):
        export_plain(todo)
    assert (tmp_path / "stage" / NAME).stat().st_size <= 2 << 20


def test_a_missing_shard_is_refused(tmp_path: Path) -> None:
    todo = task(tmp_path)
    (tmp_path / "source/s/shard").unlink()
    with pytest.raises(RefusedError, match=REFUSED + r"it is missing\n"):
        export_plain(todo)


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    todo = task(tmp_path)
    (tmp_path / "source/s/shard").unlink()
    (tmp_path / "source/s/shard").symlink_to(tmp_path / "cache that was cleared")
    with pytest.raises(RefusedError, match=REFUSED + r"it is missing\n"):
        export_plain(todo)


def test_shards_are_numbered_by_split(tmp_path: Path) -> None:
    entry = task(tmp_path).entry
    shards = [replace(entry, split=split) for split in ("a", "b", "a", "a")]
    assert [(e.split, n, of) for e, n, of in numbered(shards)] == [
        ("a", 0, 3),
        ("b", 0, 1),
        ("a", 1, 3),
        ("a", 2, 3),
    ]
