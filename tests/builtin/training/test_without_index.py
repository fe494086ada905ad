"""A build that is opened without its index, or with another one, is judged by its manifest."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests_support import flip

import tfrecreg
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import IndexBuilder, load_index
from tfrecreg.core.records.reading.offsets import kept_offsets
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import DamagedRecordError, ManifestError

Open = Callable[[Path], tfrecreg.DataSource]
FOLDER = "data/digits"
FIRST, SECOND = (f"digits-train.tfrecord-{number:05d}-of-00002" for number in range(2))


def open_build(registry: Path) -> tfrecreg.DataSource:
    return tfrecreg.data_source("digits", "train", registry=registry, raw=True)


def open_folder(registry: Path) -> tfrecreg.DataSource:
    return tfrecreg.data_source(registry / FOLDER, "train", raw=True)


def copy_record(shard: Path) -> None:
    """Put a copy of some record in the place of another one of the same length."""
    index = load_index(LocalStorage(shard.parent), f"index/{shard.name}.index")
    starts, lengths = index.offsets(), index.lengths
    kinds, counts = np.unique(lengths, return_counts=True)
    first, second, *_ = np.flatnonzero(lengths == kinds[counts.argmax()]).tolist()
    data = bytearray(shard.read_bytes())
    size = int(lengths[first]) + 16
    at, other = int(starts[first]), int(starts[second])
    assert data[at : at + size] != data[other : other + size]
    data[at : at + size] = data[other : other + size]
    shard.write_bytes(data)
    os.utime(shard, (1e9, 1e9))


def index_again(shard: Path) -> None:
    """Give a shard an index that fits it and is another than the one that the manifest names."""
    made = IndexBuilder()
    for number, payload in enumerate(tfrecreg.Records(shard)):
        made.add(record_digest(canonical(payload)), len(payload), f"key {number}")
    (shard.parent / "index" / f"{shard.name}.index").write_bytes(made.render())


def pickled(source: tfrecreg.DataSource) -> list[bytes]:
    return list(pickle.loads(pickle.dumps(source)))


def certified(source: tfrecreg.DataSource) -> str:
    certificate = source.certificate()
    certificate.add_payloads(source)
    return str(source.report(certificate))


@pytest.mark.parametrize("index", ["missing", "damaged", "another"])
@pytest.mark.parametrize("opened", [open_build, open_folder])
def test_a_record_in_the_place_of_another_is_found(
    digits_registry: Path, opened: Open, index: str
) -> None:
    shard = digits_registry / FOLDER / FIRST
    copy_record(shard)
    path = shard.parent / "index" / f"{FIRST}.index"
    if index == "missing":
        path.unlink()
    elif index == "damaged":
        flip(path, 60)
    else:
        index_again(shard)
    for _ in range(2):
        source = opened(digits_registry)
        assert len(list(source[100:])) == 100  # the other shard
        for read in (list, certified, lambda each: each[3], pickled):
            with pytest.raises(ManifestError) as caught:
                read(source)
            assert caught.value.message.startswith(
                f"`{shard}` is not the shard that the manifest names: the digest of its records "
                "should be "
            )
            assert caught.value.hint == f"tfrecreg check {shard}"


def test_a_shard_with_the_index_of_another_is_found(digits_registry: Path) -> None:
    """Both in the place of the first ones: they fit each other, and not the manifest."""
    folder = digits_registry / FOLDER
    source = open_build(digits_registry)
    index_again(folder / FIRST)  # the same rows with other keys
    with pytest.raises(ManifestError) as caught:
        source.report(source.certificate())
    assert caught.value.message.startswith(
        f"`index/{FIRST}.index` is not the index that the manifest names: its digest should be "
    )


def test_what_is_whole_is_read_and_certified(digits_registry: Path, cache: Path) -> None:
    shutil.rmtree(digits_registry / FOLDER / "index")
    for name in (FIRST, SECOND):
        os.utime(digits_registry / FOLDER / name, (1e9, 1e9))
    for _ in range(2):
        source = open_build(digits_registry)
        assert certified(source) == "all 200 records of digits, each once"
        assert len([each for each in cache.rglob("*") if each.is_file()]) == 2


def test_offsets_that_were_kept_of_the_same_bytes_as_bare_files_prove_nothing(
    digits_registry: Path, cache: Path
) -> None:
    shard = digits_registry / FOLDER / FIRST
    copy_record(shard)
    shutil.rmtree(shard.parent / "index")
    # As it was read before there was a manifest.
    assert len(kept_offsets(LocalStorage(shard.parent), FIRST, FIRST).offsets) == 100
    assert len([each for each in cache.rglob("*") if each.is_file()]) == 1
    with pytest.raises(ManifestError, match="is not the shard that the manifest names"):
        list(open_build(digits_registry))


def test_damage_is_told_as_damage(digits_registry: Path) -> None:
    shard = digits_registry / FOLDER / FIRST
    at = int(load_index(LocalStorage(shard.parent), f"index/{FIRST}.index").offsets()[7])
    flip(shard, at + 20)
    shutil.rmtree(shard.parent / "index")
    source = open_build(digits_registry)
    assert len(source) == 200
    with pytest.raises(DamagedRecordError, match=rf"record 7 of `{shard}`, .* CRC002"):
        list(source)


def test_gzip_is_read_at_any_place(digits_registry: Path) -> None:
    digits = tfrecreg.open(digits_registry)["digits"]
    digits.build(compression="gzip", shards=2, base="none")
    expected = list(open_build(digits_registry))
    shutil.rmtree(digits_registry / FOLDER / "index")
    source = open_build(digits_registry)
    assert [source[number] for number in range(199, -1, -1)] == expected[::-1]
    assert certified(source) == "all 200 records of digits, each once"
