"""Items, examples, labels and sizes of good folders; one error for a bad one."""

from __future__ import annotations

import gzip
import io
import os
import tracemalloc
import zlib
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tfrecreg.core.build.sources.interface import Item, RawFile, Remark
from tfrecreg.core.example.model import encode
from tfrecreg.core.schema.definition import IntDomain
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import RawDataError


def test_one_item_an_image_known_by_its_number(raw: Any) -> None:
    raw.put_pair("train", 3)
    raw.put_pair("t10k", 2)
    items = list(raw.source().items())
    assert [(item.split, item.key) for item in items] == [
        ("train", "00000"),
        ("train", "00001"),
        ("train", "00002"),
        ("test", "00000"),
        ("test", "00001"),
    ]
    assert {item.state for item in items} == {b""}


def test_keys_above_five_digits_stay_unique(raw: Any) -> None:
    raw.put("train-images-idx3-ubyte.gz", raw.idx((100_002, 1, 1), bytes(100_002)))
    raw.put("train-labels-idx1-ubyte.gz", raw.idx((100_002,), bytes(100_002)))
    source = raw.source()
    keys = [item.key for item in source.items()]
    assert len(set(keys)) == 100_002
    assert keys[99_999:] == ["99999", "100000", "100001"]
    assert source.example(Item("train", keys[-1], 0))["image/class/label"].values == (0,)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("encoding", ["png", "raw"])
def test_examples_hold_image_and_label(raw: Any, suffix: str, encoding: str) -> None:
    raw.put_pair("train", 5, suffix)
    source = raw.source(encoding=encoding)
    for index, item in enumerate(source.items()):
        example = {key: feature.values for key, feature in source.example(item).items()}
        if encoding == "raw":
            assert example.pop("image/raw") == (raw.pixels(5)[index * 12 : index * 12 + 12],)
        else:
            assert example.pop("image/format") == (b"png",)
            assert example.pop("image/encoded")
        assert example == {
            "image/height": (4,),
            "image/width": (3,),
            "image/class/label": (index,),
        }


def test_examples_do_not_depend_on_their_order_or_on_gzip(raw: Any) -> None:
    raw.put_pair("train", 50)
    plain = raw.source()
    items = list(plain.items())
    forwards = [encode(plain.example(item)) for item in items]
    for path in list(raw.path.iterdir()):
        raw.put(path.name + ".gz", path.read_bytes())
        path.unlink()
    zipped = raw.source()
    assert list(zipped.items()) == items
    backwards = [encode(zipped.example(item)) for item in reversed(items)]
    assert backwards[::-1] == forwards


@pytest.mark.parametrize(("encoding", "slack"), [("raw", 0.02), ("png", 0.6)])
def test_estimated_size_is_near_the_payload(raw: Any, encoding: str, slack: float) -> None:
    # 28 × 28 in stripes of noise and nothing: as compressible as real images are.
    count, noise = 20, raw.pixels(20, 28, 28)
    data = b"".join(noise[at : at + 7] + bytes(21) for at in range(0, len(noise), 28))
    raw.put("train-images-idx3-ubyte", raw.idx((count, 28, 28), data))
    raw.put("train-labels-idx1-ubyte", raw.labels(count))
    source = raw.source(encoding=encoding)
    for item in source.items():
        assert item.size == pytest.approx(len(encode(source.example(item))), rel=slack)


def test_raw_files_are_those_used_with_both_their_sizes(raw: Any) -> None:
    raw.put_pair("train", 5)
    raw.put_pair("t10k", 4, ".gz")
    raw.put("LICENSE", b"free")
    raw.put("batches.meta.txt", b"0\n1\n")
    files = list(raw.source().raw_files())
    stored = {path.name: path.stat().st_size for path in raw.path.iterdir()}
    assert files == [
        RawFile("train-images-idx3-ubyte", 76, 76),
        RawFile("train-labels-idx1-ubyte", 13, 13),
        RawFile("t10k-images-idx3-ubyte.gz", stored["t10k-images-idx3-ubyte.gz"], 64),
        RawFile("t10k-labels-idx1-ubyte.gz", stored["t10k-labels-idx1-ubyte.gz"], 12),
    ]


def test_label_names_reach_to_the_largest_label_of_all_splits(raw: Any) -> None:
    for word, largest in (("train", 3), ("t10k", 12)):
        raw.put(f"{word}-images-idx3-ubyte", raw.images(3))
        raw.put(f"{word}-labels-idx1-ubyte.gz", raw.idx((3,), bytes((0, largest, 1))))
    assert raw.source().labels() == {"image/class/label": [str(number) for number in range(13)]}


@pytest.mark.parametrize("encoding", ["png", "raw"])
def test_schema_names_exactly_the_features_written(raw: Any, encoding: str) -> None:
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    raw.put_pair("train")
    source = raw.source(encoding=encoding)
    example = source.example(next(source.items()))
    schema = text_format.Parse(source.schema(), schema_pb2.Schema())
    kinds = {schema_pb2.BYTES: "BYTES", schema_pb2.INT: "INT64"}
    assert {each.name: kinds[each.type] for each in schema.feature} == {
        name: feature.kind.name for name, feature in example.items()
    }
    for each in schema.feature:
        assert (each.presence.min_fraction, each.presence.min_count) == (1, 1)
        assert each.HasField("shape")
        assert not each.shape.dim
    (label,) = (each for each in schema.feature if each.name == "image/class/label")
    assert (label.int_domain.min, label.int_domain.max) == (0, 255)
    assert label.int_domain.is_categorical


def sides(text: str) -> dict[str, tuple[int, int | None]]:
    """Lowest and highest height and width that a schema allows."""
    domains = {each.name: each.domain for each in parse_schema(text).features}
    return {
        side: (domain.min, domain.max)
        for side in ("height", "width")
        if isinstance(domain := domains[f"image/{side}"], IntDomain) and domain.min is not None
    }


@pytest.mark.parametrize("encoding", ["png", "raw"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_schema_has_the_sides_of_all_splits(raw: Any, encoding: str, suffix: str) -> None:
    raw.put_pair("train", suffix=suffix)
    raw.put_pair("t10k", suffix=suffix)
    assert sides(raw.source(encoding=encoding).schema()) == {"height": (4, 4), "width": (3, 3)}


def test_a_side_in_which_splits_differ_stays_open(raw: Any) -> None:
    raw.put_pair("train")
    raw.put("t10k-images-idx3-ubyte", raw.images(5, height=4, width=2))
    raw.put("t10k-labels-idx1-ubyte", raw.labels(5))
    assert sides(raw.source().schema()) == {"height": (4, 4), "width": (1, None)}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:8d42\nsize 1648877\n",
        gzip.compress(gzip.compress(b"x")),
        b"\x03\x08\0\0" + bytes(30),
        b"\0\0\x08\x03\0\0\0\x05\0\0\0\x04",
        b"\0\0\x0c\x03" + bytes(12),
        b"\0\0\x08\x01\0\0\0\x05" + bytes(5),
        b"\0\0\x08\x03\0\0\0\x05\0\0\0\0\0\0\0\x03",
        b"\0\0\x08\x03\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\0\0\x08\x03\xff\xff\xff\xff\0\0\0\x04\0\0\0\x03" + bytes(60),
        b"\0\0\x08\x03\0\0\0\x05\0\0\0\x04\0\0\0\x03" + bytes(59),
        b"\0\0\x08\x03\0\0\0\x05\0\0\0\x04\0\0\0\x03" + bytes(61),
    ],
    ids=[
        "empty",
        "git-lfs",
        "gzip-in-gzip",
        "little-endian",
        "cut-header",
        "int32",
        "labels-for-images",
        "no-rows",
        "huge-images",
        "absurd-count",
        "one-byte-short",
        "one-byte-long",
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_that_is_not_idx_is_one_error(raw: Any, data: bytes, suffix: str) -> None:
    raw.put_pair("train", 5)
    raw.put_pair("t10k", 5)
    (raw.path / "t10k-images-idx3-ubyte").unlink()
    raw.put("t10k-images-idx3-ubyte" + suffix, data)
    assert raw.refusal().startswith(f"cannot read `t10k-images-idx3-ubyte{suffix}` as IDX: ")
    source = raw.source()
    for listing in (source.items, source.raw_files, source.labels):
        with pytest.raises(RawDataError):
            list(listing())


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_every_cut_is_found(raw: Any, suffix: str) -> None:
    raw.put_pair("train", 5, suffix)
    path = raw.path / f"train-images-idx3-ubyte{suffix}"
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        raw.refusal()
    path.write_bytes(data + b"junk")
    raw.refusal()


@settings(max_examples=200)
@given(st.data())
def test_damage_is_never_read_as_something_else(raw: Any, data: st.DataObject) -> None:
    raw.put_pair("train", 5)
    (raw.path / "train-images-idx3-ubyte").unlink(missing_ok=True)
    whole = gzip.compress(raw.images(5), mtime=0)
    place = data.draw(st.integers(0, len(whole) - 1))
    bad = bytearray(whole)
    bad[place] ^= data.draw(st.integers(1, 255))
    (raw.path / "train-images-idx3-ubyte.gz").write_bytes(bytes(bad))
    source = raw.source(encoding="raw")
    # Time and system in gzip's header and the last bits of deflate say nothing about the content:
    # damage to them is harmless. All other must be refused.
    with suppress(RawDataError):
        pixels = [source.example(item)["image/raw"].values[0] for item in source.items()]
        assert b"".join(pixels) == raw.pixels(5)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 76), max_size=4), st.integers(0, 9), st.integers(0, 9))
def test_any_members_and_padding_give_the_same(
    raw: Any, cuts: list[int], between: int, after: int
) -> None:
    data = raw.images(5)
    edges = [0, *sorted(cuts), len(data)]
    members = [gzip.compress(data[a:b]) for a, b in pairwise(edges)]
    raw.put("train-labels-idx1-ubyte", raw.labels(5))
    # Not the suffix but the first bytes tell gzip.
    path = raw.path / "train-images-idx3-ubyte"
    path.write_bytes((b"\0" * between).join(members) + b"\0" * after)
    source = raw.source(encoding="raw")
    pixels = [source.example(item)["image/raw"].values[0] for item in source.items()]
    assert b"".join(pixels) == raw.pixels(5)


@pytest.mark.medium
def test_bomb_takes_neither_memory_nor_time(raw: Any) -> None:
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = deflate.compress(raw.idx((5, 28, 28), b""))
    zeros = bytes(1 << 20)
    data += b"".join(deflate.compress(zeros) for _ in range(256)) + deflate.flush()
    raw.put_pair("train")
    (raw.path / "train-images-idx3-ubyte").write_bytes(data)
    tracemalloc.start()
    try:
        raw.refusal()
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_file_too_large_for_memory_is_read_the_same(
    raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw.put_pair("train", 5, ".gz")
    expected = [encode(raw.source().example(item)) for item in raw.source().items()]
    monkeypatch.setattr("tfrecreg_mnist.source._HELD", 10)
    source = raw.source()
    items = list(source.items())
    assert [encode(source.example(item)) for item in items] == expected
    with pytest.raises(RawDataError, match="no entry 5"):
        source.example(Item("train", "00005", 0))
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    raw.refusal()


def test_counts_that_differ_are_refused(raw: Any) -> None:
    raw.put("train-images-idx3-ubyte.gz", raw.images(5))
    raw.put("train-labels-idx1-ubyte", raw.labels(4))
    raw.refusal()


@pytest.mark.parametrize(
    ("images", "labels", "split"),
    [
        ("train-images.idx3-ubyte", "train-labels.idx1-ubyte", "train"),
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte", "train"),
        ("t10k-images.idx3-ubyte", "t10k-labels-idx1-ubyte.gz", "test"),
        ("test-images-idx3-ubyte", "test-labels-idx1-ubyte", "test"),
        ("val-images-idx3-ubyte", "validation-labels-idx1-ubyte", "validation"),
        (
            "emnist-letters-train-images-idx3-ubyte.gz",
            "emnist-letters-train-labels-idx1-ubyte.gz",
            "train",
        ),
    ],
)
def test_usual_names_are_known(raw: Any, images: str, labels: str, split: str) -> None:
    raw.put(images, raw.images())
    raw.put(labels, raw.labels())
    raw.put("train-images-idx3-ubyte/train-images-idx3-ubyte", raw.images())
    assert {item.split for item in raw.source().items()} == {split}
    assert [file.path for file in raw.source().raw_files()] == [images, labels]


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["LICENSE", "raw/train-images-idx3-ubyte"],
        ["train-images-idx3-ubyte"],
        ["train-labels-idx1-ubyte.gz"],
        ["t10k", "test"],
        ["train", "train-images.idx3-ubyte"],
        ["emnist-digits-train", "emnist-letters-train"],
        ["[red]\x1b-train-images-idx3-ubyte"],
        [os.fsdecode(b"\xff\xfe")],
    ],
)
def test_a_folder_without_whole_pairs_of_one_set_is_refused(raw: Any, names: list[str]) -> None:
    for name in names:
        if "-images" in name or "-labels" in name:
            raw.put(name, raw.images())
        elif (name.isalnum() and name.islower()) or name.startswith("emnist"):
            raw.put_pair(name)
        else:
            raw.put(name, b"x")
    raw.refusal()


@pytest.mark.parametrize("prefix", ["emnist-digits-", "emnist-digits"])
def test_prefix_chooses_the_set(raw: Any, prefix: str) -> None:
    raw.put_pair("emnist-digits-train", count=4)
    raw.put_pair("emnist-letters-train", count=6)
    source = raw.source(prefix=prefix)
    assert len(list(source.items())) == 4
    assert all(file.path.startswith(prefix) for file in source.raw_files())
    assert "emnist-digits-train" in raw.refusal(prefix="kmnist-")
    assert "emnist-letters-train" in raw.refusal()


def test_links_are_followed_and_what_is_no_file_is_refused(raw: Any, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(raw.images())
    raw.put("train-labels-idx1-ubyte", raw.labels())
    path = raw.path / "train-images-idx3-ubyte"
    path.symlink_to(tmp_path / "elsewhere")
    assert sum(isinstance(each, Item) for each in raw.source().items()) == 5
    for target in ("gone", "/dev/zero"):
        path.unlink()
        path.symlink_to(target)
        assert "`train-images-idx3-ubyte`" in raw.refusal()
    path.unlink()
    os.mkfifo(path)
    assert "`train-images-idx3-ubyte`" in raw.refusal()


def test_a_file_that_is_plain_and_in_gzip_is_read_once(raw: Any) -> None:
    raw.put_pair("train")
    raw.put_pair("train", suffix=".gz")
    names = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"]
    remarks = [each for each in raw.source().items() if isinstance(each, Remark)]
    assert [(each.key, each.code, each.detail) for each in remarks] == [
        (f"{name}.gz", "SRC116", f"`{name}` holds the same data and is read instead")
        for name in names
    ]
    assert [each.path for each in raw.source().raw_files()] == names
    assert sum(isinstance(each, Item) for each in raw.source().items()) == 5
    for other in (raw.images(4), raw.images(5, 3, 4), raw.images()[:-1] + b"\0"):
        raw.put("train-images-idx3-ubyte.gz", other)
        assert "`train-images-idx3-ubyte.gz`" in raw.refusal()


def test_names_that_are_no_idx_files_are_remarked(raw: Any) -> None:
    raw.put_pair("train")
    for name in (
        "notes.txt",
        "train-images-idx3-ubyte.bz2",
        "z\x1b[31m\nred",
        os.fsdecode(b"\xff"),
    ):
        raw.put(name, b"")
    raw.put("data/mnist/manifest.json", b"")
    (remark,) = (each for each in raw.source().items() if isinstance(each, Remark))
    assert remark[:3] == ("train", "notes.txt", "SRC015")
    assert remark.times == 4


@pytest.mark.skipif("ng" in zlib.ZLIB_RUNTIME_VERSION, reason="zlib-ng deflates in its own way")
def test_the_bytes_of_a_png(raw: Any) -> None:
    raw.put("train-images-idx3-ubyte", raw.idx((1, 2, 3), bytes((0, 255, 128, 0, 0, 7))))
    raw.put("train-labels-idx1-ubyte", raw.labels(1))
    source = raw.source()
    (item,) = source.items()
    assert source.example(item)["image/encoded"].values[0].hex() == (
        "89504e470d0a1a0a0000000d4948445200000003000000020800000000b81f39c6"
        "000000104944415428536360f8dfc0c0c0c00e0008890187dcce2f270000000049454e44ae426082"
    )


@settings(max_examples=60)
@given(st.integers(1, 400), st.integers(1, 40), st.randoms(use_true_random=False))
def test_a_png_holds_the_pixels(raw: Any, height: int, width: int, random: Any) -> None:
    pixels = random.randbytes(height * width)
    raw.put("train-images-idx3-ubyte", raw.idx((1, height, width), pixels))
    raw.put("train-labels-idx1-ubyte", raw.labels(1))
    source = raw.source()
    (item,) = source.items()
    with Image.open(io.BytesIO(source.example(item)["image/encoded"].values[0])) as image:
        assert (image.mode, image.size, image.tobytes()) == ("L", (width, height), pixels)
