"""The first records of a target, described: nothing in them can mislead who reads it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from check_support import framed
from image_support import bmp, gif, jpeg, png, webp
from scan_support import Watched, shard, target
from tests_support import flip

from tfrecreg.builtin.look.head import Choice, ShownFeature, ShownRecord, head
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.registry.find import bare_files, find_target, target_of
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import (
    DamagedRecordError,
    NoSuchRecordError,
    StorageError,
    UsageError,
)
from tfrecreg.core.values.text import json_data

TENSOR = b"\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x03\x22\x18" + bytes(24)
"""tf.io.serialize_tensor(tf.zeros([2, 3]))"""
SCALAR = b"\x08\x03\x12\x00\x22\x04\x05\x00\x00\x00"


def put(folder: Path, *payloads: bytes | Example) -> Path:
    data = [each if isinstance(each, bytes) else encode(each) for each in payloads]
    path = folder / "a.tfrecord"
    path.write_bytes(b"".join(map(framed, data)))
    return path


def shown(folder: Path, *payloads: bytes | Example, count: int = 5) -> list[ShownRecord]:
    return list(head(find_target(str(put(folder, *payloads))), Choice(count)))


def described(folder: Path, example: Example) -> dict[str, ShownFeature]:
    (record,) = shown(folder, example)
    assert record.features is not None
    return {feature.name: feature for feature in record.features}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (jpeg(640, 480, scan=bytes(22_896)), "JPEG image, 640x480, 23.0 kB"),
        (png(28, 27, colour=0), "PNG image, 28x27, "),
        (gif(5, 4), "GIF image, 5x4, 43 B"),
        (gif(5, 4, frames=3), "GIF image, 5x4, 89 B, animated"),
        (webp(7, 9), "WebP image, 7x9, "),
        (bmp(3, 2), "BMP image, 3x2, 78 B"),
        ("ü\n\tb\r\n0".encode(), '"ü\\x0a\\x09b\\x0d\\x0a0"'),
        (jpeg(640, 480, scan=bytes(900), end=b""), "JPEG image, 640x480, 953 B, cut short"),
        (
            b"\xff\xd8\xff\xe0" + bytes(1500),
            "JPEG image, 1.5 kB, unreadable: a JPEG with a segment of length 0 at byte 2",
        ),
        (
            b"\x89PNG\r\n\x1a\n" + bytes(42),
            "PNG image, 50 B, unreadable: a PNG that does not begin with the chunk IHDR",
        ),
        (
            b"RIFF\x10\0\0\0WEBPVP8 ",
            "WebP image, 16 B, unreadable: a WebP that ends after 16 bytes, inside its header",
        ),
        (TENSOR, "serialized tensor, float32[2, 3], 38 B"),
        (SCALAR, "serialized tensor, int32[], 10 B"),
        (b"BMW and Mercedes-Benz", '"BMW and Mercedes-Benz"'),
        (b"a cat", '"a cat"'),
        ("zwölf Boxkämpfer 猫".encode(), '"zwölf Boxkämpfer 猫"'),
        (b"", '""'),
        (b"\x00\x01\xfe\xff" * 10, "40 B: 00 01 fe ff 00 01 fe ff 00 01 fe ff 00 01 fe ff …"),
        (b"\x00\x01\x02", "3 B: 00 01 02"),
        (b"x" * 300, f'"{"x" * 99}…"'),
    ],
)
def test_bytes_are_described_by_what_they_are(tmp_path: Path, value: bytes, expected: str) -> None:
    expected += f"{len(value)} B" if expected.endswith(", ") else ""  # zlib has a say in these
    assert described(tmp_path, {"x": bytes_feature(value)})["x"].shown == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[/] [bold]x[/bold] :skull:", '"[/] [bold]x[/bold] :skull:"'),
        ("red \x1b[31malert and more", r'"red \x1b[31malert and more"'),
        ("two lines of text\nin one caption", r'"two lines of text\x0ain one caption"'),
        ("an image: \u202egnp.exe", r'"an image: \u202egnp.exe"'),
        ("\x1b\x9b\u202e", "6 B: 1b c2 9b e2 80 ae"),
    ],
)
def test_hostile_strings_are_escaped(tmp_path: Path, text: str, expected: str) -> None:
    feature = described(tmp_path, {text: bytes_feature(text.encode())})
    (name,) = feature
    assert feature[name].shown == expected
    for character in ("\x1b", "\n", "\x9b", "\u202e"):
        assert character not in name + feature[name].shown


def test_numbers_are_shown_and_long_lists_cut(tmp_path: Path) -> None:
    found = described(
        tmp_path,
        {
            "floats": float_feature([0.1, 1e30, float("nan"), float("-inf"), -0.0]),
            "ints": int64_feature(range(-3, 17)),
            "eight": int64_feature(range(8)),
            "none": int64_feature([]),
            "unset": unset_feature(),
        },
    )
    assert list(found) == ["eight", "floats", "ints", "none", "unset"]
    floats, ints, unset = found["floats"], found["ints"], found["unset"]
    assert (floats.kind, floats.count) == ("float", 5)
    assert floats.shown == "0.1, 1e+30, nan, -inf, -0"
    assert (ints.kind, ints.count) == ("int64", 20)
    assert ints.shown == "-3, -2, -1, 0, 1, 2, 3, 4, … 12 more"
    assert found["eight"].shown == "0, 1, 2, 3, 4, 5, 6, 7"
    assert (found["none"].kind, found["none"].count, found["none"].shown) == ("int64", 0, "")
    assert (unset.kind, unset.count, unset.shown) == ("unset", 0, "")


def test_a_record_has_its_place(tmp_path: Path) -> None:
    first, second = shown(tmp_path, {"x": int64_feature(1)}, {"y": int64_feature(2)})
    assert (first.record, first.offset) == (0, 0)
    assert (second.record, second.offset) == (1, first.length + 16)
    assert first.shard == str(tmp_path / "a.tfrecord")
    assert (first.key, first.start) == (None, "")


@pytest.mark.parametrize(("count", "numbers"), [(0, []), (2, [0, 1]), (3, [0, 1, 2]), (99, None)])
def test_so_many_are_shown_over_the_shards_in_order(
    digits_original: Path, count: int, numbers: Sequence[int] | None
) -> None:
    records = list(head(find_target("digits", registry=digits_original), Choice(count)))
    if numbers is None:
        assert len(records) == 99
        assert [each.shard for each in records][::30] == [
            "digits-test.tfrecord-00000-of-00002",
            "digits-test.tfrecord-00001-of-00002",
            "digits-train.tfrecord-00000-of-00002",
            "digits-train.tfrecord-00000-of-00002",
        ]
    else:
        assert [each.record for each in records] == numbers
    assert all(each.key is not None and each.key.isdigit() for each in records)


def test_an_index_that_is_damaged_costs_the_keys(digits_registry: Path) -> None:
    for index in (digits_registry / "data/digits/index").iterdir():
        flip(index, 20)
    (record,) = head(find_target("digits", registry=digits_registry), Choice(1))
    assert record.key is None
    assert record.features is not None


def test_damaged_records_are_passed_over(tmp_path: Path) -> None:
    path = put(tmp_path, *({"x": int64_feature(number)} for number in range(4)))
    flip(path, 14)
    records = list(head(find_target(str(path))))
    assert [each.record for each in records] == [1, 2, 3]


def test_gzip_is_read_as_well(tmp_path: Path) -> None:
    path = put(tmp_path, {"x": int64_feature(7)})
    packer = zlib.compressobj(wbits=31)
    path.write_bytes(packer.compress(path.read_bytes()) + packer.flush())
    (record,) = head(find_target(str(path)))
    assert record.features is not None
    assert record.features[0].shown == "7"


def test_what_is_no_tfrecord_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b.tfrecord"
    path.write_bytes(b"this is no record")
    with pytest.raises(UsageError) as caught:
        list(head(find_target(str(path))))
    assert rf"{tmp_path}/a\x1b.tfrecord` is not a TFRecord: " in caught.value.message


def test_names_of_shards_are_escaped(tmp_path: Path) -> None:
    path = put(tmp_path, {"x": int64_feature(7)}).rename(tmp_path / "a\u202eb.tfrecord")
    (record,) = head(find_target(str(path)))
    assert record.shard == rf"{tmp_path}/a\u202eb.tfrecord"


def test_a_shard_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    storage = Watched(LocalStorage(tmp_path), {"a.tfrecord": -1})
    put(tmp_path, {"x": int64_feature(7)})
    with pytest.raises(StorageError, match="Permission denied"):
        list(head(target(shard(storage, "a.tfrecord"))))


def test_a_record_too_large_to_be_held_says_how_large(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(bytes((64 << 20) + 1)) + framed(encode({"x": int64_feature(7)})))
    large, small = head(find_target(str(path)))
    assert (large.features, large.start) == (None, "67.1 MB, too large to be shown")
    assert small.features is not None
    assert "<td>x<td>int64<td>7" in small._repr_html_()


NUMBERED = [{"x": int64_feature(number)} for number in range(20)]


def numbers(records: Iterable[ShownRecord]) -> list[int]:
    return [each.record for each in records]


@pytest.mark.parametrize(
    ("at", "count", "expected"),
    [
        (0, 1, [0]),
        (7, 3, [7, 8, 9]),
        (18, 5, [18, 19]),
        (-1, 1, [19]),
        (-2, 9, [18, 19]),
        (3, 0, []),
    ],
)
def test_records_from_any_number_on(
    tmp_path: Path, at: int, count: int, expected: list[int]
) -> None:
    found = list(head(find_target(str(put(tmp_path, *NUMBERED))), Choice(count, at=at)))
    assert numbers(found) == expected
    for each in found:
        assert each.features is not None
        assert each.features[0].shown == str(each.record)


@pytest.mark.parametrize(
    ("split", "expected"),
    [("train[:1]+test[2:4]", [0, 2, 3]), ("a[:1]+all", [0, *range(20)]), ("a+b", range(20))],
)
def test_any_split_fits_files_that_name_none(
    tmp_path: Path, split: str, expected: Sequence[int]
) -> None:
    target = find_target(str(put(tmp_path, *NUMBERED)))
    assert numbers(head(target, Choice(99, split=split))) == list(expected)


def test_a_record_is_the_same_however_it_is_found(digits_original: Path) -> None:
    target = find_target("digits", registry=digits_original)
    name = "digits-train.tfrecord-00001-of-00002"
    found = [each for each in head(target, Choice(999)) if each.shard == name]
    assert list(head(target, Choice(999, shard=name))) == found
    assert list(head(target, Choice(1, shard=name, at=17))) == [found[17]]
    assert found[17].key is not None


def test_of_several_shards_one_has_to_be_named(digits_original: Path) -> None:
    target = find_target("digits", registry=digits_original)
    with pytest.raises(UsageError) as caught:
        list(head(target, Choice(at=3, split="test")))
    assert caught.value.message == "`digits` has 2 shards, and `--at` counts within one shard"
    hint = "name one of them: --shard digits-test.tfrecord-00000-of-00002"
    assert caught.value.hint == hint
    with pytest.raises(UsageError) as caught:
        list(head(target, Choice(shard="digits-test.tfrecord-00000-of-00003")))
    assert caught.value.message.startswith(
        "`digits` has no shard `digits-test.tfrecord-00000-of-00003`; did you mean "
    )
    assert caught.value.hint.startswith("available: `digits-test.tfrecord-00000-of-00002`")


def test_a_file_name_will_do_while_only_one_shard_has_it(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        put(tmp_path / folder, {"x": bytes_feature(folder)})
    put(tmp_path / "b", {"x": int64_feature(1)}).rename(tmp_path / "b/c.tfrecord")
    put(tmp_path / "b", {"x": int64_feature(2)})
    target = target_of(bare_files([str(tmp_path)]))
    (record,) = head(target, Choice(shard="c.tfrecord"))
    assert record.shard == f"{tmp_path}/b/c.tfrecord"
    (record,) = head(target, Choice(shard=f"{tmp_path}/a/a.tfrecord"))
    assert record.shard == f"{tmp_path}/a/a.tfrecord"
    with pytest.raises(UsageError) as caught:
        list(head(target, Choice(shard="a.tfrecord")))
    assert " has 2 shards named `a.tfrecord`" in caught.value.message


def test_a_record_that_there_is_not(tmp_path: Path) -> None:
    target = find_target(str(put(tmp_path, *NUMBERED)))
    with pytest.raises(NoSuchRecordError) as caught:
        list(head(target, Choice(at=20)))
    assert caught.value.message == (
        f"there is no record 20 in `{tmp_path}/a.tfrecord`: the shard has 20 records"
    )


@pytest.mark.parametrize("byte", [3, 14], ids=["header", "data"])
def test_a_damaged_record_is_refused_where_it_is_asked_for_and_else_passed_over(
    tmp_path: Path, byte: int
) -> None:
    path = put(tmp_path, *NUMBERED)
    (size,) = {each.length + 16 for each in head(find_target(str(path)), Choice(20))}
    flip(path, 5 * size + byte)
    target = find_target(str(path))
    with pytest.raises(DamagedRecordError, match=f"record 5 of `{path}`, at byte {5 * size}, is"):
        list(head(target, Choice(at=5)))
    assert numbers(head(target, Choice(4, at=3))) == [3, 4, 6, 7]
    assert numbers(head(target, Choice(7))) == [0, 1, 2, 3, 4, 6, 7]


def test_a_record_too_large_to_be_held_can_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(b"") + framed(bytes((64 << 20) + 1)))
    (large,) = head(find_target(str(path)), Choice(at=1))
    assert (large.payload, large.start) == (None, "67.1 MB, too large to be shown")


def test_images_come_as_they_are(tmp_path: Path) -> None:
    one, two = png(4, 3), jpeg(2, 2)
    (record,) = shown(
        tmp_path, {"b": bytes_feature([b"x", one]), "a": bytes_feature(two), "n": int64_feature(1)}
    )
    found = [(each.feature, each.value, each.format, each.data) for each in record.images]
    assert found == [("a", 0, "jpeg", two), ("b", 1, "png", one)]
    assert repr(one)[2:30] not in repr(record)


def test_the_json_has_everything_but_their_bytes(tmp_path: Path) -> None:
    (record,) = shown(
        tmp_path, {"p\x1b": bytes_feature([png(4, 3), b"BM" + bytes(12) + b"\x28\0\0\0"])}
    )
    document = json.loads(json.dumps(json_data(record)))
    assert document["pictures"] == [
        {
            "feature": "p\\x1b",
            "value": 0,
            "format": "png",
            "width": 4,
            "height": 3,
            "bytes": len(png(4, 3)),
        },
        {
            "feature": "p\\x1b",
            "value": 1,
            "format": "bmp",
            "width": None,
            "height": None,
            "bytes": 18,
        },
    ]
    assert document["saved"] == []
    assert document["payload"] == "example"
    assert document["features"][0]["count"] == 2
    (other,) = shown(tmp_path, b"\xffno example at all")
    assert json_data(other)["features"] is None
    assert json_data(other)["payload"] == "other"
