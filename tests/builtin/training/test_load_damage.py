"""Whoever trains gets every record, or an error that says which one is wanting."""

from __future__ import annotations

import shutil
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from registry_support import empty_registry, put_build, write

from tfrecreg.builtin.python_data.build import build
from tfrecreg.builtin.training.load import load
from tfrecreg.core.build.request import BuildRequest
from tfrecreg.core.records.index import read_index
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.registry.manifest import ShardEntry, SplitEntry
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.errors import RefusedError, UsageError
from tfrecreg.core.values.shards import ShardPolicy

SHARD = "digits-train.tfrecord-00000-of-00002"
OTHER = "digits-train.tfrecord-00001-of-00002"


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")


def refusal(root: Path, kind: type[Exception] = RefusedError) -> str:
    with pytest.raises(kind) as caught:
        load("digits", "train", registry=root)
    return str(caught.value)


def stopped(tf: Any, dataset: Any, count: int | None = None) -> str:
    """What the epoch ends with; `count` records came before."""
    came: list[Any] = []
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        came.extend(dataset)
    assert count is None or len(came) == count
    return str(caught.value.message)


def entry_of(root: Path, name: str = SHARD) -> ShardEntry:
    manifest = open_registry(root).dataset("digits").build_manifest()
    assert manifest is not None
    return next(each for each in manifest.shards if each.path == name)


def start_of(root: Path, record: int, name: str = SHARD) -> int:
    with Records(root / "data/digits" / name) as records:
        return int(records.offsets[record])


def key_of(root: Path, record: int, name: str = SHARD) -> str:
    path = root / "data/digits/index" / f"{name}.index"
    return read_index(path.read_bytes(), name).key(record)


def unknown(size: int) -> bytes:
    """An unknown field of an Example, which every reader passes over, of so many bytes."""
    return b"\x7a" + bytes([(size - 3) & 127 | 128, (size - 3) >> 7]) + bytes(size - 3)


ENTRY = ShardEntry(
    path="",
    bytes=48,
    blake3="",
    sha256="",
    split="all",
    records=3,
    payload_bytes=0,
    stream_blake3="",
    index="",
)


# Before the first record, whatever TensorFlow would make of it.


def test_a_longer_shard_is_refused(digits_registry: Path) -> None:
    folder = digits_registry / "data/digits"
    for name in (SHARD, OTHER):
        (folder / name).write_bytes((folder / name).read_bytes() * 2)
    assert refusal(digits_registry).startswith(
        "2 of 2 shards of the split `train` of `digits` differ"
    )


# While the records come.


@pytest.mark.medium
def test_a_damaged_record_is_named(tf: Any, digits_registry: Path) -> None:
    path, at = digits_registry / "data/digits" / OTHER, start_of(digits_registry, 30, OTHER)
    data = bytearray(path.read_bytes())
    data[at + 50] ^= 1
    path.write_bytes(data)
    message = stopped(tf, load("digits", "train", registry=digits_registry, decode=True))
    assert f"record 30 of `{OTHER}` of digits is damaged: CRC002: data checksum should" in message
    assert f"; its key is `{key_of(digits_registry, 30, OTHER)}`" in message


@pytest.mark.medium
def test_damaged_gzip_is_named(tf: Any, digits_registry: Path) -> None:
    build(
        open_registry(digits_registry),
        BuildRequest(name="digits", compression="gzip", policy=ShardPolicy(shards=2)),
    )
    path = digits_registry / "data/digits" / SHARD
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    message = stopped(tf, load("digits", "train", registry=digits_registry))
    assert f" of `{SHARD}` of digits is damaged: CRC00" in message


@pytest.mark.medium
def test_a_shard_with_fewer_records_in_as_many_bytes_is_named(
    tf: Any, digits_registry: Path
) -> None:
    """Two records became one: the size is the same, and every checksum holds."""
    path = digits_registry / "data/digits" / SHARD
    begin, end = start_of(digits_registry, 0), start_of(digits_registry, 2)
    with Records(path) as records:
        payload = records[0]
    merged = path.parent / "merged"
    with tf.io.TFRecordWriter(str(merged)) as writer:
        writer.write(payload + unknown(end - begin - 16 - len(payload)))
    path.write_bytes(merged.read_bytes() + path.read_bytes()[end:])
    merged.unlink()
    entry = entry_of(digits_registry)
    assert path.stat().st_size == entry.bytes
    message = stopped(tf, load("digits", "train", registry=digits_registry))
    assert (
        f"`{SHARD}` of digits should have {entry.records} records, but it has {entry.records - 1}: "
        "`tfrecreg check digits`"
    ) in message


@pytest.mark.parametrize("long", ["0", "1"])
def test_a_shard_with_more_records_than_registered_is_named(
    tf: Any, tmp_path: Path, long: str
) -> None:
    shards = []
    for number in "01":
        path = tmp_path / f"data/odd/odd-all.tfrecord-0000{number}-of-00002"
        path.parent.mkdir(parents=True, exist_ok=True)
        with tf.io.TFRecordWriter(str(path)) as writer:
            for _ in range(3):
                writer.write(b"")
        entry = replace(ENTRY, path=path.name, records=2 if number == long else 3)
        shards.append(entry)
    empty_registry(tmp_path)
    split = SplitEntry(name="all", records=5, payload_bytes=0, content="")
    put_build(tmp_path, "odd", splits=[split], shards=shards)
    write(tmp_path / "schemas/odd.pbtxt", 'feature { name: "text" type: BYTES }')
    message = stopped(tf, load("odd", registry=tmp_path))
    assert (
        f"`odd-all.tfrecord-0000{long}-of-00002` of odd should have 2 records, but it has more"
        in message
    )


@pytest.mark.medium
@pytest.mark.parametrize(
    ("begins", "why"),
    [
        (b"\xff", "it is not a `tf.train.Example`"),
        (b"", "Feature: image/class/label (data type: int64) is required but could not be found."),
    ],
)
def test_a_record_that_does_not_parse_is_named(
    tf: Any, digits_registry: Path, begins: bytes, why: str
) -> None:
    path = digits_registry / "data/digits" / SHARD
    begin, end = start_of(digits_registry, 7), start_of(digits_registry, 8)
    one = path.parent / "one"
    with tf.io.TFRecordWriter(str(one)) as writer:
        writer.write(begins + unknown(end - begin - 16 - len(begins)))
    data = path.read_bytes()
    path.write_bytes(data[:begin] + one.read_bytes() + data[end:])
    one.unlink()
    message = stopped(tf, load("digits", "train", registry=digits_registry))
    assert f"record 7 of `{SHARD}` of digits does not parse: {why}" in message
    assert f"; its key is `{key_of(digits_registry, 7)}`" in message


@pytest.mark.medium
@pytest.mark.parametrize("is_listed", [False, True], ids=["removed", "not to be opened"])
def test_a_shard_that_vanishes_between_two_epochs_is_named(
    tf: Any, digits_registry: Path, is_listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = load("digits", "train", registry=digits_registry)
    assert len(list(dataset)) == len(dataset) == 200
    shard = digits_registry / "data/digits" / OTHER
    shard.unlink()
    if is_listed:
        monkeypatch.chdir(shard.parent)  # the path of a socket is short
        with socket.socket(socket.AF_UNIX) as nothing_to_open:
            nothing_to_open.bind(OTHER)
    first = entry_of(digits_registry).records
    message = stopped(tf, dataset, first)
    assert f"record 0 of `{OTHER}` of digits cannot be read: " in message


# What the checks do not stand in the way of.


@pytest.mark.medium
@pytest.mark.parametrize("name", ["a*b?", "[x]", "back\\slash", "ünï"])
def test_any_name_of_a_folder_will_do(
    tf: Any, digits_original: Path, tmp_path: Path, name: str
) -> None:
    root = tmp_path / name
    shutil.copytree(digits_original, root)
    assert len(list(load("digits", "test", registry=root))) == 60


@pytest.mark.medium
def test_options_that_give_up_the_order_are_no_damage(tf: Any, digits_original: Path) -> None:
    options = tf.data.Options()
    options.deterministic = False
    dataset = load("digits", "train", registry=digits_original).with_options(options)
    assert sum(1 for _ in dataset.repeat(3)) == 600


@pytest.mark.medium
def test_an_iterator_can_be_saved_and_goes_on(
    tf: Any, digits_original: Path, tmp_path: Path
) -> None:
    dataset = load("digits", "train", registry=digits_original, decode=True)
    expected = [bytes(each["image/encoded"].numpy()) for each in dataset]
    iterator = iter(dataset)
    for _ in range(70):
        next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "state"))
    again = iter(dataset)
    tf.train.Checkpoint(iterator=again).restore(saved)
    assert [bytes(each["image/encoded"].numpy()) for each in again] == expected[70:]


@pytest.mark.medium
def test_workers_share_the_records_and_not_the_files(tf: Any, digits_original: Path) -> None:
    from tensorflow.python.data.experimental.ops.distribute import _AutoShardDataset

    dataset = load("digits", "train", registry=digits_original)
    parts = [sum(1 for _ in _AutoShardDataset(dataset, 3, at)) for at in range(3)]
    assert parts == [67, 67, 66]


def test_an_emptied_shard_is_refused(digits_registry: Path) -> None:
    size = entry_of(digits_registry).bytes
    write(digits_registry / "data/digits" / SHARD, b"")
    assert refusal(digits_registry) == (
        "1 of 2 shards of the split `train` of `digits` differ in size from the manifest; "
        f"one is `{SHARD}`, which should have {size} bytes but has 0\n"
        "hint: `tfrecreg check digits` names them all"
    )


def test_a_shard_that_was_cut_between_two_records_is_refused(digits_registry: Path) -> None:
    path, at = digits_registry / "data/digits" / OTHER, start_of(digits_registry, 30, OTHER)
    path.write_bytes(path.read_bytes()[:at])
    size = entry_of(digits_registry, OTHER).bytes
    assert f"`{OTHER}`, which should have {size} bytes but has {at}\n" in refusal(digits_registry)


def test_a_link_that_leads_nowhere_is_a_missing_shard(digits_registry: Path) -> None:
    path = digits_registry / "data/digits" / SHARD
    path.unlink()
    path.symlink_to("nowhere")
    message = refusal(digits_registry, UsageError)
    assert message.startswith("1 of 2 shards of the split `train` of `digits` are missing; one is")


@pytest.mark.medium
def test_a_damaged_last_record_is_named(tf: Any, digits_registry: Path) -> None:
    path, last = digits_registry / "data/digits" / OTHER, entry_of(digits_registry, OTHER).records
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    message = stopped(tf, load("digits", "train", registry=digits_registry))
    assert f"record {last - 1} of `{OTHER}` of digits is damaged: CRC002" in message


@pytest.mark.medium
def test_a_shard_that_is_emptied_between_two_epochs_is_named(
    tf: Any, digits_registry: Path
) -> None:
    dataset = load("digits", "train", registry=digits_registry)
    write(digits_registry / "data/digits" / OTHER, b"")
    records = entry_of(digits_registry, OTHER).records
    message = stopped(tf, dataset, entry_of(digits_registry).records)
    assert f"`{OTHER}` of digits should have {records} records, but it has 0: `tfrecreg" in message
