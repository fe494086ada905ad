"""TFRecords of any tool as a sequence: no registry, no index, plain or gzip."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import pickle
import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests_support import flip

import tfrecreg
from tfrecreg.builtin.training import selection
from tfrecreg.core.records.reading import shards
from tfrecreg.core.values.errors import (
    DamagedRecordError,
    NoSuchRecordError,
    RefusedError,
    StorageError,
    UsageError,
)

from .conftest import Write, payload


def found(source: Sequence[Any]) -> list[int]:
    return [int(element["number"][0]) for element in source]


# --- a sequence


def test_a_folder_is_one_sequence_a_split(numbers: Path) -> None:
    source = tfrecreg.data_source(numbers, "train")
    assert len(source) == 100
    assert found(source) == list(range(100))
    assert found([source[0], source[30], source[31], source[-1]]) == [0, 30, 31, 99]
    assert source[3]["point"].tolist() == [3, 1.5]
    assert source[3]["words"].tolist() == [b"word"] * 3
    assert found(tfrecreg.data_source(numbers, "test+train[:2]")) == [*range(500, 510), 0, 1]
    assert found(tfrecreg.data_source(numbers, "train[2shard:3shard]")) == [30]
    assert repr(source) == f"<DataSource 100 records of {numbers}>"


def test_a_batch_comes_in_the_order_asked_for(numbers: Path) -> None:
    source = tfrecreg.data_source(numbers, "train")
    wanted = random.Random(1).choices(range(-100, 100), k=300)
    assert found(source.__getitems__(wanted)) == [each % 100 for each in wanted]
    assert found(source.__getitems__(source.order(5)[:40])) == source.order(5)[:40].tolist()
    assert source.__getitems__([]) == []
    assert found([source[np.int64(7)]]) == [7]


@pytest.mark.parametrize("record", [100, -101, 10**30])
def test_a_number_that_is_not_there(numbers: Path, record: int) -> None:
    source = tfrecreg.data_source(numbers, "train")
    for read in (source.__getitem__, lambda each: source.__getitems__([each])):
        with pytest.raises(NoSuchRecordError, match=f"there is no record {record}") as caught:
            read(record)
        assert isinstance(caught.value, IndexError)


BOUND = st.none() | st.integers(-70, 70)


@given(
    ranges=st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 20), st.sampled_from([1, 2, -1, -3])),
        max_size=4,
    ),
    slices=st.lists(
        st.tuples(BOUND, BOUND, st.none() | st.integers(-5, 5).filter(bool)), max_size=3
    ),
)
def test_slices_of_slices_are_those_of_a_list(
    ranges: list[tuple[int, int, int]], slices: list[tuple[Any, Any, Any]]
) -> None:
    chosen = selection.Selection([range(*each) for each in ranges])
    expected = [number for each in ranges for number in range(*each)]
    for bounds in slices:
        chosen, expected = chosen.part(slice(*bounds)), expected[slice(*bounds)]
    assert len(chosen) == len(expected)
    assert chosen.numbers(np.arange(len(expected))).tolist() == expected
    assert [chosen.number(at) for at in range(len(chosen))] == expected
    assert [number for each in chosen.ranges for number in each] == expected


def test_slices_are_sources(numbers: Path) -> None:
    source = tfrecreg.data_source(numbers, "train+test")
    part = source[95:105][::-2]
    assert isinstance(part, tfrecreg.DataSource)
    expected = [*range(100), *range(500, 510)][95:105][::-2]
    assert found(part) == expected
    assert found(part.__getitems__(range(len(part)))) == expected
    assert part.identity != source.identity


def test_even_splits_divide_every_part(numbers: Path) -> None:
    source = tfrecreg.data_source(numbers, "train[:7]+test[:5]")
    parts = source.even_splits(3)
    assert [found(part) for part in parts] == [
        [0, 1, 2, 500, 501],
        [3, 4, 502, 503],
        [5, 6, 504],
    ]
    assert [len(part) for part in source.even_splits(3, drop_remainder=True)] == [3, 3, 3]
    with pytest.raises(UsageError, match="cannot be divided into 0 parts"):
        source.even_splits(0)


def test_more_shards_than_files_are_held_open(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        write(f"s/x-{number:05d}-of-00009.tfrecord", [payload(number)])
    monkeypatch.setattr(shards, "_OPEN", 2)
    source = tfrecreg.data_source(write("s/y-00000-of-00001.tfrecord", []).parent, "unnamed")
    assert found(source) == list(range(9))
    assert found(source.__getitems__([8, 0, 4, 8])) == [8, 0, 4, 8]
    assert len(source._shards._open) == 2


def test_files_whose_names_say_no_split_are_one(write: Write) -> None:
    """Otherwise all of them would be the training data and the test data."""
    path = write("data.tfrecord", [payload(number) for number in range(4)])
    assert found(tfrecreg.data_source(path, "whatever")) == [0, 1, 2, 3]
    assert found(tfrecreg.data_source(path, "train[:1]+train[-1:]")) == [0, 3]
    first, second = tfrecreg.data_source(path, ["train[:75%]", "train[75%:]"])
    assert (found(first), found(second)) == ([0, 1, 2], [3])
    for split in ("train+test", ["train", "test"], ["train[:50%]", "validaton"]):
        for opened in (tfrecreg.data_source, tfrecreg.load):
            with pytest.raises(UsageError, match="would each contain all records"):
                opened(path, split)


@pytest.mark.parametrize("zipped", [False, True])
def test_no_records_at_all(write: Write, zipped: bool) -> None:
    source = tfrecreg.data_source(write("x.tfrecord", [], zipped=zipped))
    assert (len(source), list(source), list(source[:3])) == (0, [], [])
    assert list(source.order(3)) == []
    assert [len(part) for part in source.even_splits(2)] == [0, 0]
    assert list(source.from_state(source.order(3).state(), hosts=2)) == []


# --- what elements are


def test_payloads_that_are_no_examples_come_raw(write: Write) -> None:
    path = write("x.tfrecord", [b"one", b"", b"three"])
    assert list(tfrecreg.data_source(path, raw=True)) == [b"one", b"", b"three"]
    with pytest.raises(RefusedError) as caught:
        tfrecreg.data_source(path)[2]
    assert caught.value.message == f"record 2 of `{path}` is not a `tf.train.Example`"


def test_a_schema_may_be_named(numbers: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema.pbtxt"
    schema.write_text(
        'feature { name: "number" type: INT presence { min_fraction: 1 } shape {} }\n'
    )
    source = tfrecreg.data_source(numbers, "train", schema=schema)
    assert source[4] == {"number": 4}
    assert pickle.loads(pickle.dumps(source))[4] == {"number": 4}
    schema.write_text(
        'feature { name: "point" type: FLOAT presence { min_fraction: 1 } shape {} }\n'
    )
    with pytest.raises(RefusedError) as caught:
        tfrecreg.data_source(numbers, "test", schema=schema)[3]
    path = numbers / "test-00000-of-00001.tfrecord"
    assert caught.value.message == (
        f"record 3 of `{path}` does not fit the schema: `point` should be float of shape (), "
        "found 2 values"
    )


# --- processes and threads


def test_a_pickle_holds_paths_and_no_data(numbers: Path) -> None:
    source = tfrecreg.data_source(numbers, "train")
    paths = sum(len(str(path)) for path in numbers.glob("train*"))
    assert len(pickle.dumps(source)) - paths < 1000
    for part in (source, source[5:40:3], source[::-1]):
        copy = pickle.loads(pickle.dumps(part))
        assert found(copy) == found(part)
        assert (copy.identity, repr(copy)) == (part.identity, repr(part))


def _read(source: tfrecreg.DataSource, wanted: list[int]) -> list[int]:
    return found(source.__getitems__(wanted))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_processes_read_the_same_source(numbers: Path, way: str) -> None:
    source = tfrecreg.data_source(numbers, "train")
    assert found([source[50]]) == [50]  # open before the fork
    wanted = [list(source.order(1, host=host, hosts=4)) for host in range(4)]
    with multiprocessing.get_context(way).Pool(2) as pool:
        results = pool.starmap(_read, [(source, each) for each in wanted])
    assert results == wanted


def test_threads_read_the_same_source(numbers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "_OPEN", 1)
    source = tfrecreg.data_source(numbers, "train")
    wrong: list[object] = []

    def read(seed: int) -> None:
        try:
            wanted = source.order(seed)[:60].tolist()
            if found(source.__getitems__(wanted)) != wanted:
                wrong.append(wanted)
            if found([source[each] for each in wanted]) != wanted:
                wrong.append(wanted)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# --- the index that is made once


def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The shards whose records are looked for in the shard itself, from now on."""
    from tfrecreg.core.records.reading import offsets as kept_offsets

    looked: list[str] = []
    really = kept_offsets.find_offsets

    def watched(storage: Any, path: str, *more: Any, **named: Any) -> Any:
        looked.append(path.rpartition("/")[2])
        return really(storage, path, *more, **named)

    monkeypatch.setattr(kept_offsets, "find_offsets", watched)
    return looked


@pytest.mark.parametrize("change", ["time", "size"])
def test_a_shard_that_changed_is_looked_through_again(
    write: Write, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    looked = opened(monkeypatch)
    path = write("x.tfrecord", [payload(1), payload(2)])
    tfrecreg.data_source(path)
    # Of the same size: only the time tells.
    path = write("x.tfrecord", [payload(2), payload(1), *([payload(3)] * (change == "size"))])
    if change == "time":
        os.utime(path, (1e9, 1e9 + 1))
    source = tfrecreg.data_source(path)
    assert found(source) == ([2, 1] if change == "time" else [2, 1, 3])
    assert len(looked) == 2


def test_a_shard_written_just_now_is_not_remembered(write: Write, cache: Path) -> None:
    path = write("x.tfrecord", [payload(1)])
    os.utime(path)
    assert found(tfrecreg.data_source(path)) == [1]
    assert not list(cache.rglob("*"))


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "other"])
def test_a_damaged_entry_is_as_good_as_none(
    numbers: Path, cache: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tfrecreg.data_source(numbers, "train")
    for path in cache.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if damage == "flipped":
                flip(path, len(data) // 2)
            else:
                path.write_bytes({"cut": data[:-7], "empty": b"", "other": bytes(99)}[damage])
    looked = opened(monkeypatch)
    assert found(tfrecreg.data_source(numbers, "train")) == list(range(100))
    assert len(looked) == 4


def test_without_a_place_for_entries_it_works_as_well(
    numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file/in"))
    assert found(tfrecreg.data_source(numbers, "train")) == list(range(100))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert found(tfrecreg.data_source(numbers, "train")) == list(range(100))
    assert len(list((tmp_path / "home/.cache/tfrecreg/offsets").iterdir())) == 4


# --- what is refused


def test_a_shard_that_changes_while_it_is_open(write: Write) -> None:
    path = write("x.tfrecord", [payload(1), payload(2)])
    source = tfrecreg.data_source(path)
    copy = pickle.dumps(source)
    path.unlink()
    write("x.tfrecord", [payload(3), payload(4)])
    os.utime(path, (1e9, 1e9 + 5))
    for each in (source, pickle.loads(copy)):
        with pytest.raises(StorageError, match=r"was changed since") as caught:
            each[0]
        assert str(path) in caught.value.message


def test_a_folder_without_some_of_its_shards(numbers: Path) -> None:
    (numbers / "train-00001-of-00004.tfrecord").unlink()
    for target in (numbers, numbers / "*.tfrecord", f"{numbers}/train@4"):
        with pytest.raises(RefusedError) as caught:
            tfrecreg.data_source(target, "train")
        assert caught.value.message == (
            f"3 of 4 shards of `{numbers}/train.tfrecord` are present: an incomplete set of "
            "shards is not read"
        )
        assert caught.value.exit_code == 1
    assert len(tfrecreg.data_source(sorted(numbers.glob("train*")), "train")) == 100


def test_a_glob_may_name_a_part_of_what_is_there(numbers: Path) -> None:
    assert len(tfrecreg.data_source(f"{numbers}/train-0000[01]*")) == 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": None}, "has the splits `test` and `train`: name one"),
        ({"split": "validation"}, "has no split `validation`"),
        ({"split": "train[:"}, "`train[:` is not an expression for splits"),
        ({"split": "train[:101]"}, "reaches beyond its split, which has 100 records"),
        ({"decode": True}, "no schema says which features are images"),
        ({"with_key": True}, "has shards without an index, so its records have no keys"),
        ({"raw": True, "decode": True}, "are read as payloads: `schema`, `features`"),
        ({"raw": True, "features": ["n"]}, "are read as payloads: `schema`, `features`"),
        ({"features": ["n"]}, "no schema lists the features of the records"),
        ({"damaged": "ignore"}, "`damaged` should be one of `raise` and `skip`, found `ignore`"),
        ({"damaged": "skip"}, '`damaged="skip"` and `max_damaged` need each other'),
        ({"max_damaged": 3}, '`damaged="skip"` and `max_damaged` need each other'),
        (
            {"damaged": "skip", "max_damaged": "some"},
            "`max_damaged`: expected a number of records such as `10`, or a share such as "
            "`0.5%`, found `some`",
        ),
        ({"schema": "none.pbtxt"}, "the schema `none.pbtxt` cannot be read"),
    ],
)
def test_arguments_that_make_no_source(
    numbers: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        tfrecreg.data_source(numbers, **{"split": "train", **arguments})
    assert message in caught.value.message
    assert caught.value.exit_code == 2


# --- damage


@pytest.fixture
def damaged(numbers: Path) -> Path:
    """The same with a flipped bit in each of two records."""
    path = numbers / "train-00000-of-00004.tfrecord"
    places = tfrecreg.Records(path).offsets
    for record in (3, 17):
        flip(path, int(places[record]) + 14)
    os.utime(path, (1e9, 1e9))
    return path


def test_a_damaged_record_is_named(damaged: Path) -> None:
    source = tfrecreg.data_source(damaged.parent, "train")
    at = int(tfrecreg.Records(damaged).offsets[3])
    for read in (
        lambda: source[3],
        lambda: source.__getitems__([1, 2, 3]),
        lambda: list(source),
    ):
        with pytest.raises(DamagedRecordError) as caught:
            read()
        assert caught.value.message.startswith(
            f"record 3 of `{damaged}`, at byte {at}, is damaged: CRC002: data checksum should be"
        )
        assert caught.value.hint == f"tfrecreg check {damaged}"
    assert found([source[2], source[4]]) == [2, 4]


def test_damaged_records_may_be_skipped_up_to_a_limit(damaged: Path) -> None:
    target = damaged.parent
    source = tfrecreg.data_source(target, "train", damaged="skip", max_damaged="2%")
    expected = [number for number in range(100) if number not in (3, 17)]
    assert found(source) == expected
    assert found(source) == expected  # an epoch later nothing counts twice
    assert found(source.__getitems__([2, 3, 4])) == [2, 4]
    assert found(source[2:5]) == [2, 4]
    assert [(each.shard, each.record) for each in source.skipped] == [
        (str(damaged), 3),
        (str(damaged), 17),
    ]
    assert source.skipped[0].reason.startswith("CRC002: ")
    with pytest.raises(DamagedRecordError):
        source[3]
    strict = tfrecreg.data_source(target, "train", damaged="skip", max_damaged=1)
    with pytest.raises(RefusedError) as caught:
        list(strict)
    assert caught.value.message.startswith(
        f"2 damaged records of `{target}` were left out, but `max_damaged` allows 1; the last: "
        f"record 17 of `{damaged}`"
    )
    assert len(pickle.loads(pickle.dumps(source)).__getitems__([3])) == 0


def test_checksums_may_be_verified_first(damaged: Path) -> None:
    tfrecreg.data_source(damaged.parent, "test", verify=True)
    with pytest.raises(RefusedError) as caught:
        tfrecreg.data_source(damaged.parent, "train", verify=True)
    assert f"record 3 of `{damaged}`" in caught.value.message
    assert "CRC002" in caught.value.message


def test_damage_in_gzip_is_named(numbers: Path) -> None:
    path = numbers / "train-00003-of-00004.tfrecord"
    tfrecreg.data_source(numbers, "train")
    stat = path.stat()
    flip(path, stat.st_size // 2)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # so that the entry is believed
    source = tfrecreg.data_source(numbers, "train")
    with pytest.raises(DamagedRecordError, match="CRC007"):
        source[50]


def test_gzip_of_no_records_whose_members_all_lack_a_trailer_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord.gz"
    path.write_bytes(gzip.compress(random.Random(1).randbytes(2000), mtime=0)[:-6] * 600)
    source = tfrecreg.data_source(path)
    with pytest.raises(DamagedRecordError, match="CRC007: gzip member at byte 0 of the file"):
        source[0]
