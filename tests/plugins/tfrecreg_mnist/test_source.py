"""Items, examples, labels and sizes of good folders; one clear line for each kind of bad one."""

from __future__ import annotations

import gzip
import pickle
from typing import Any

import pytest

from tfrecreg.core.build.sources.interface import Item, RawFile
from tfrecreg.core.example.encode import encode
from tfrecreg.core.schema.definition import IntDomain
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.typed_values import parse_options
from tfrecreg_mnist import grey_png
from tfrecreg_mnist.source import MnistOptions


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
def test_png_examples_hold_image_and_label(raw: Any, suffix: str) -> None:
    raw.put_pair("train", 5, suffix)
    source = raw.source()
    for index, item in enumerate(source.items()):
        example = source.example(item)
        pixels = raw.pixels(5)[index * 12 : index * 12 + 12]
        assert {key: feature.values for key, feature in example.items()} == {
            "image/encoded": (grey_png.encode_png(pixels, 4, 3),),
            "image/format": (b"png",),
            "image/height": (4,),
            "image/width": (3,),
            "image/class/label": (index,),
        }


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_raw_examples_hold_the_pixels(raw: Any, suffix: str) -> None:
    raw.put_pair("train", 5, suffix)
    source = raw.source(encoding="raw")
    for index, item in enumerate(source.items()):
        example = source.example(item)
        assert {key: feature.values for key, feature in example.items()} == {
            "image/raw": (raw.pixels(5)[index * 12 : index * 12 + 12],),
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


def test_travels_to_another_process_without_its_open_files(raw: Any) -> None:
    raw.put_pair("train", 5, ".gz")
    source = raw.source(encoding="raw")
    items = list(source.items())
    expected = [encode(source.example(item)) for item in items]
    data = pickle.dumps(source)
    assert len(data) < 1000
    twin = pickle.loads(data)
    assert [encode(twin.example(item)) for item in items] == expected


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


def test_without_readable_images_the_schema_fits_any(raw: Any) -> None:
    assert sides(raw.source().schema()) == {"height": (1, None), "width": (1, None)}
    raw.put_pair("train")
    raw.put("t10k-images-idx3-ubyte", b"not IDX")
    assert sides(raw.source().schema()) == {"height": (1, None), "width": (1, None)}


def test_unknown_encoding_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        parse_options(MnistOptions, ["encoding=jpeg\x1b"], of="mnist")
    assert caught.value.message == (
        "the option `encoding` of `mnist` should be `png` or `raw`, found `jpeg\\x1b`"
    )


def test_changed_file_is_verified_again(raw: Any) -> None:
    raw.put_pair("train", 5, ".gz")
    source = raw.source()
    assert len(list(source.raw_files())) == 2
    path = raw.path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RawDataError, match="is truncated"):
        list(source.raw_files())


def test_split_that_went_away_during_the_build_is_an_error(raw: Any) -> None:
    raw.put_pair("train")
    with pytest.raises(RawDataError) as caught:
        raw.source().example(Item("test", "00000", 0))
    assert caught.value.message == f"split `test` is gone from `{raw.path}`"
    assert caught.value.hint == "the raw files changed during the build: build again"


AGAIN = "fetch it again, and compare its checksum with the publisher's"
READS = "unpack or fetch it again: IDX is read plain or inside gzip"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:8d42\nsize 1648877\n"


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (b"", "`{}` is empty", AGAIN),
        (
            POINTER,
            "`{}` is a git-lfs pointer, not the file it stands for",
            "run `git lfs pull`",
        ),
        (
            b"<!DOCTYPE html>",
            "`{}` is not an IDX file: expected 00 00 08 03 at its start, "
            "found 3c 21 44 4f (an HTML or XML page)",
            READS,
        ),
        (
            b"PK\x03\x04" + bytes(30),
            "`{}` is not an IDX file: expected 00 00 08 03 at its start, "
            "found 50 4b 03 04 (a zip archive)",
            READS,
        ),
        (
            gzip.compress(gzip.compress(b"x")),
            "`{}` is not an IDX file: expected 00 00 08 03 at its start, "
            "found 1f 8b 08 00 (gzip inside gzip)",
            READS,
        ),
        (
            b"\x03\x08\0\0" + bytes(30),
            "`{}` is not an IDX file: expected 00 00 08 03 at its start, found 03 08 00 00",
            READS,
        ),
        (b"\0\0\x08", "`{}` is truncated: it ends inside its header", AGAIN),
        (
            b"\0\0\x08\x03\0\0\0\x05\0\0\0\x04",
            "`{}` is truncated: it ends inside its header",
            AGAIN,
        ),
        (
            b"\0\0\x0c\x03" + bytes(12),
            "`{}` holds int32 (IDX type 0x0C), expected u8 (IDX type 0x08)",
            "convert it to u8, or take it out of the folder: this source reads u8 only",
        ),
        (
            b"\0\0\x0d\x03" + bytes(12),
            "`{}` holds float32 (IDX type 0x0D), expected u8 (IDX type 0x08)",
            "convert it to u8, or take it out of the folder: this source reads u8 only",
        ),
        (
            b"\0\0\x07\x03" + bytes(12),
            "`{}` holds an unknown type (IDX type 0x07), expected u8 (IDX type 0x08)",
            "convert it to u8, or take it out of the folder: this source reads u8 only",
        ),
        (
            b"\0\0\x08\x01\0\0\0\x05" + bytes(5),
            "`{}` has 1 dimension, expected 3",
            "labels have 1 dimension, images have 3: check that this is the right file",
        ),
        (
            b"\0\0\x08\x03" + bytes(12),
            "`{}` holds nothing: its header says 0 × 0 × 0",
            "take it out of the folder, or fetch it again",
        ),
        (
            b"\0\0\x08\x03\0\0\0\x05\0\0\0\0\0\0\0\x03",
            "`{}` holds nothing: its header says 5 × 0 × 3",
            "take it out of the folder, or fetch it again",
        ),
        (
            b"\0\0\x08\x03\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff",
            "`{}` has images of 4294967295 × 4294967295 pixels, more than 67108864",
            "its header is damaged, or such images need another source",
        ),
        (
            b"\0\0\x08\x03\xff\xff\xff\xff\0\0\0\x04\0\0\0\x03" + bytes(60),
            "`{}` is truncated: its header says 4294967295 × 4 × 3, "
            "51539607556 bytes with the header, found 76",
            AGAIN,
        ),
        (
            b"\0\0\x08\x03\0\0\0\x05\0\0\0\x04\0\0\0\x03" + bytes(59),
            "`{}` is truncated: its header says 5 × 4 × 3, 76 bytes with the header, found 75",
            AGAIN,
        ),
        (
            b"\0\0\x08\x03\0\0\0\x05\0\0\0\x04\0\0\0\x03" + bytes(61),
            "`{}` has bytes after its data: its header says 5 × 4 × 3, "
            "76 bytes with the header, found more",
            AGAIN,
        ),
    ],
    ids=[
        "empty",
        "git-lfs",
        "html",
        "zip",
        "gzip-in-gzip",
        "little-endian",
        "cut-magic",
        "cut-header",
        "int32",
        "float32",
        "unknown-type",
        "labels-for-images",
        "no-images",
        "no-rows",
        "huge-images",
        "absurd-count",
        "one-byte-short",
        "one-byte-long",
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_images_that_are_not_what_they_should_be(
    raw: Any, data: bytes, message: str, hint: str, suffix: str
) -> None:
    raw.put_pair("train", 5)
    (raw.path / "train-images-idx3-ubyte").unlink()
    raw.put("train-images-idx3-ubyte" + suffix, data)
    assert raw.refusal() == (message.format("train-images-idx3-ubyte" + suffix), hint)


@pytest.mark.parametrize("data", [POINTER, b"<html>", b"", b"\0\0"])
def test_gz_in_name_only_is_told_by_its_bytes(raw: Any, data: bytes) -> None:
    raw.put_pair("train", 5, ".gz")
    (raw.path / "train-labels-idx1-ubyte.gz").write_bytes(data)
    message, _ = raw.refusal()
    assert message.startswith("`train-labels-idx1-ubyte.gz` is ")


@pytest.mark.parametrize("position", [0, 100, -20, -6])
def test_damaged_gzip_says_what_gzip_says(raw: Any, position: int) -> None:
    raw.put_pair("train", 500, ".gz")
    path = raw.path / "train-images-idx3-ubyte.gz"
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(bytes(data))
    message, _ = raw.refusal()
    if position == 0:
        assert message.startswith("`train-images-idx3-ubyte.gz` is not an IDX file")
    else:
        assert message.startswith("`train-images-idx3-ubyte.gz` is damaged: gzip fails after ")
        assert message.rpartition(": ")[2].startswith(("invalid ", "incorrect "))


def test_gzip_that_ends_early_is_truncated(raw: Any) -> None:
    raw.put_pair("train", 5, ".gz")
    path = raw.path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-3])
    assert raw.refusal() == (
        "`train-images-idx3-ubyte.gz` is truncated: its gzip stream ends after 76 bytes of content",
        AGAIN,
    )


def test_bytes_after_the_gzip_are_damage(raw: Any) -> None:
    raw.put_pair("train", 5, ".gz")
    path = raw.path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes() + b"junk")
    message, _ = raw.refusal()
    assert message == (
        "`train-images-idx3-ubyte.gz` is damaged: gzip fails after 76 bytes of content: "
        "incorrect header check"
    )


def test_labels_of_several_dimensions_are_refused(raw: Any) -> None:
    raw.put("train-images-idx3-ubyte", raw.images(5))
    raw.put("train-labels-idx1-ubyte", raw.idx((5, 8), bytes(40)))
    message, _ = raw.refusal()
    assert message == "`train-labels-idx1-ubyte` has 2 dimensions, expected 1"


def test_counts_that_differ_are_shown_side_by_side(raw: Any) -> None:
    raw.put("train-images-idx3-ubyte.gz", raw.images(5))
    raw.put("train-labels-idx1-ubyte", raw.labels(4))
    assert raw.refusal() == (
        "`train-images-idx3-ubyte.gz` has 5 images, `train-labels-idx1-ubyte` has 4 labels",
        "they do not belong together: fetch both again from the same place",
    )


def test_damage_in_one_split_fails_the_whole(raw: Any) -> None:
    raw.put_pair("train", 5)
    raw.put_pair("t10k", 5, ".gz")
    path = raw.path / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-1])
    source = raw.source()
    for listing in (source.items, source.raw_files, source.labels):
        with pytest.raises(RawDataError, match=r"`t10k-labels-idx1-ubyte\.gz` is truncated"):
            list(listing())
