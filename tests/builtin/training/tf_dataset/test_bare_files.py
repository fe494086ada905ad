"""`load` of files without a manifest, and the files of its cache: right records, or an error."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecreg as tr
from tfrecreg.api import bytes_feature, encode, float_feature, int64_feature
from tfrecreg.core.values.errors import UsageError


def record(x: int, **more: Any) -> bytes:
    return encode({"x": int64_feature(x), "y": float_feature([1.0, 2.0]), **more})


def write(path: Path, payloads: list[bytes], compression: Any = "none") -> Path:
    with tr.TFRecordWriter(path, compression=compression) as writer:
        for each in payloads:
            writer.write(each)
    return path


def numbers(dataset: Any) -> list[int]:
    return [int(each["x"]) for each in dataset]


@pytest.fixture
def files(tf: Any, tmp_path: Path) -> Path:
    """Two shards, one of them gzip, and another split."""
    write(tmp_path / "d-train-0.tfrecord", [record(each) for each in range(10)])
    write(tmp_path / "d-train-1.tfrecord.gz", [record(each) for each in range(10, 20)], "gzip")
    write(tmp_path / "d-test.tfrecord", [record(each, z=bytes_feature(b"a")) for each in range(3)])
    return tmp_path


@pytest.mark.medium
def test_files_of_any_compression_have_one_drafted_schema(tf: Any, files: Path) -> None:
    train, test = tr.load(files, ["train", "test"], progress=False)
    assert numbers(train) == list(range(20))
    assert numbers(test) == [0, 1, 2]
    assert train.element_spec == test.element_spec
    assert train.element_spec["x"] == tf.TensorSpec((), tf.int64)
    assert train.element_spec["y"] == tf.TensorSpec((2,), tf.float32)
    assert isinstance(train.element_spec["z"], tf.SparseTensorSpec)
    shares = [numbers(tr.load(files, "train", host=each, hosts=3)) for each in range(3)]
    assert [each for share in shares for each in share] == list(range(20))
    assert sorted(numbers(tr.load(files, "train[5:15]", shuffle=True, seed=1))) == [*range(5, 15)]


@pytest.mark.parametrize(
    ("damage", "number"),
    [
        (lambda data: data[:-7], 9),
        (lambda data: data + data[:5], 10),
        (lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:], 1),
    ],
)
def test_damage_raises(tf: Any, files: Path, damage: Callable[[bytes], bytes], number: int) -> None:
    path = files / "d-train-0.tfrecord"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"record {number} of .*is damaged"):
        numbers(tr.load(path))


@pytest.mark.parametrize(
    "misfit", [encode({"x": float_feature(1), "y": float_feature([1.0, 2.0])}), b"\xff\xfe"]
)
def test_a_record_that_does_not_fit_the_draft_raises(tf: Any, files: Path, misfit: bytes) -> None:
    path = write(files / "misfit.tfrecord", [record(0), record(1), misfit])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"record 2 of .* does not parse"):
        numbers(tr.load(path))


def test_files_without_an_example_are_refused(files: Path) -> None:
    for payloads in ([], [b"text"]):
        path = write(files / "none.tfrecord", payloads)
        with pytest.raises(UsageError):
            tr.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("built", [True, False])
def test_a_cache_is_read_for_what_it_was_made_from(tf: Any, files: Path, built: bool) -> None:
    registry = tr.init(files / "registry", with_dvc=False)

    def build(first: int) -> None:
        train = files / "d-train-0.tfrecord"
        if not built:  # in a way that size and time do not show
            before = train.stat()
            write(train, [record(first + each) for each in range(10)])
            os.utime(train, ns=(before.st_atime_ns, before.st_mtime_ns))
            return
        splits = {"train": range(first, first + 10), "test": range(3)}
        registry["d"].build(
            data={
                split: [{"x": np.int64(each), "y": np.float32([1, 2])} for each in values]
                for split, values in splits.items()
            },
            progress=False,
        )

    target: Any = [files / "d-train-0.tfrecord", files / "d-test.tfrecord"]
    asked: list[tuple[str, dict[str, Any]]] = [
        ("train", {}),
        ("test", {}),
        ("train[:4]", {}),
        ("train", {"host": 0, "hosts": 2}),
        ("train", {"host": 1, "hosts": 2}),
        ("train", {"where": "x % 2 = 0"}),
        ("train", {"features": ["x"]}),
        ("train", {"shuffle": True, "seed": 1}),
    ]

    def found(**cache: Any) -> list[Any]:
        sets = [tr.load(target, split, progress=False, **more, **cache) for split, more in asked]
        return [(each.element_spec, sorted(numbers(each))) for each in sets]

    cache = files / "cache" / "elements"
    cache.parent.mkdir()
    for first in (20, 40, 20):
        build(first)
        target = registry["d"].built if built else target
        expected = found()
        assert found(cache=cache) == expected == found(cache=str(cache))
    assert len(list(cache.parent.glob("elements-*.index"))) >= 2 * (len(asked) - 1)
