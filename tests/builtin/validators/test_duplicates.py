"""DUP001, DUP002 and DUP004: planted, counted, and nothing else found."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from check_support import Digits, framed
from duplicates_support import codes, image, look, record, write
from image_support import jpeg, png

from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.images import decoder
from tfrecreg.core.values.errors import ConfigError


def test_what_was_planted_is_counted_exactly(tmp_path: Path) -> None:
    """The numbers of Fashion-MNIST: 43 too many in train, 1 in test, 10 in both."""
    dice = random.Random(7)
    train = [record(image(number), number % 10) for number in range(1500)]
    test = [record(image(number), number % 10) for number in range(2000, 2400)]
    # Another label, and so another record: the images are what is compared.
    train += [record(image(dice.randrange(500)), 11) for _ in range(40)]
    train += [record(image(900), 11)] * 3
    test += [record(image(2100), 3)]  # another one, too
    test += [record(image(number), 12) for number in range(1000, 1010)]
    twice = len(set(train[1500:])) + 1 + 10
    dice.shuffle(train)
    dice.shuffle(test)
    write(tmp_path, "train", train, shards=3)
    write(tmp_path, "test", test, shards=2)
    found = look(tmp_path)
    assert codes(found) == [
        ("DUP001", "test", 1),
        ("DUP001", "train", 43),
        ("DUP002", "test::train", 10),
        ("DUP005", "", twice),
    ]
    assert found["status"] == "fail"
    assert found["measures"] == {
        "duplicates.compared": 1543 + 411,
        "duplicates.extra": 44,
        "duplicates.common": 10,
    }
    by_code = {each["code"]: each for each in found["findings"]}
    assert by_code["DUP002"]["message"] == (
        "a record of `test` has the same image as one of `train`: 10 of 410 different ones of "
        "`test` are shared (2.44 %), which is above the limit of 1 %"
    )
    assert (by_code["DUP001"]["severity"], by_code["DUP002"]["severity"]) == ("warning", "error")
    assert len(by_code["DUP002"]["locations"]) == 10
    assert {place["split"] for place in by_code["DUP002"]["locations"]} == {"test"}


@pytest.mark.parametrize(
    ("common", "share", "found"),
    [
        (1, None, ("warning", "pass")),  # exactly 1 % of the smaller split
        (2, None, ("error", "fail")),
        (2, 0.02, ("warning", "pass")),
        (100, None, ("error", "fail")),
        (100, 1, ("warning", "pass")),
        (1, 0, ("error", "fail")),
    ],
)
def test_a_leak_of_a_share_of_the_smaller_split_is_an_error(
    tmp_path: Path, common: int, share: float | None, found: tuple[str, str]
) -> None:
    test = [record(image(number)) for number in range(100)]
    train = [record(image(number)) for number in [*range(common), *range(1000, 1300)]]
    write(tmp_path, "train", train)
    write(tmp_path, "test", [*test, *test], shards=2)  # copies are not of more weight
    seen = look(tmp_path, **({} if share is None else {"most_shared": share}))
    (leak,) = [each for each in seen["findings"] if each["code"] == "DUP002"]
    assert (leak["severity"], seen["status"], leak["count"]) == (*found, common)
    limit = "1" if share is None else f"{100 * share:g}"
    more = (
        f": {common} of 100 different ones of `test` are shared ({common} %), which is "
        f"above the limit of {limit} %"
    )
    assert leak["message"] == "a record of `test` has the same image as one of `train`" + (
        more if found[0] == "error" else ""
    )
    assert leak["fingerprint"] == "DUP002::test::train"


def test_a_smaller_training_split_in_the_test_split_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "train", [record(image(number)) for number in range(5)])
    write(tmp_path, "test", [record(image(number)) for number in range(600)])
    (leak,) = look(tmp_path)["findings"]
    assert leak["message"].endswith(
        ": 5 of 5 different ones of `train` are shared (100 %), which is above the limit of 1 %"
    )
    assert leak["severity"] == "error"


def test_the_first_20_pairs_are_named_with_place_and_key(digits: Digits) -> None:
    """A release of digits whose test split was built from some of its train images."""
    from tfrecreg.builtin.python_data.build import build
    from tfrecreg.core.build.request import BuildRequest
    from tfrecreg.core.registry.registry import open_registry

    raw = digits.root / "images"
    for number in range(60):
        for split, name in (("train", number), ("test", number + 30)):
            path = raw / split / "cat" / f"{name:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(9, 7, seed=name))
    request = BuildRequest(name="pets", source="imagefolder", raw=str(raw))
    build(open_registry(digits.root), request)
    found = digits.check("duplicates", target="pets")
    assert codes(found) == [("DUP002", "pets:test::train", 30)]
    (finding,) = found["findings"]
    assert finding["fingerprint"] == "DUP002:pets:test::train"
    assert len(finding["locations"]) == 20
    for place in finding["locations"]:
        assert place["offset"] >= 0
        assert place["detail"].startswith("the same as record ")
        assert place["detail"].endswith(f", key {place['key']}")
        assert " of pets-train.tfrecord-" in place["detail"]


def test_records_without_an_image_are_compared_whole_whatever_the_order(tmp_path: Path) -> None:
    one = {"b": int64_feature([1, 2]), "a": float_feature(0.5)}
    pieces = [encode({name: feature}) for name, feature in one.items()]
    swapped = b"\n" + bytes([sum(len(each) - 2 for each in pieces)])
    swapped += b"".join(each[2:] for each in pieces)
    assert swapped != encode(one)
    write(tmp_path, "train", [encode(one), swapped, encode({**one, "c": int64_feature(1)})])
    found = look(tmp_path)
    assert codes(found) == [("DUP001", "train", 1)]
    assert found["findings"][0]["message"] == (
        "a record of `train` has the same content as an earlier one"
    )


def test_payloads_that_are_no_examples_are_compared_as_bytes(tmp_path: Path) -> None:
    write(tmp_path, "", [b"\xff\xff", b"\xff\xfe", b"\xff\xff", b"\xff\xff"])
    found = look(tmp_path)
    assert [(each["code"], each["count"]) for each in found["findings"]] == [("DUP001", 2)]
    assert [place["record"] for place in found["findings"][0]["locations"]] == [2, 3]


def test_images_are_found_by_what_they_begin_with(tmp_path: Path) -> None:
    """Features of TFDS: no `image/encoded`, and no schema to say it."""

    def tfds(number: int, label: int) -> bytes:
        return encode({"image": bytes_feature(image(number)), "label": int64_feature(label)})

    write(tmp_path, "train", [tfds(1, 0), tfds(2, 0), tfds(1, 5)])
    found = look(tmp_path)
    assert codes(found) == [("DUP001", "train", 1), ("DUP005", "", 1)]
    assert "image" in found["findings"][0]["message"]


def test_several_splits_are_compared_two_by_two(tmp_path: Path) -> None:
    for split, numbers in {
        "test": [1, 2, 3],
        "train": [2, 3, 4],
        "validation": [3, 5],
    }.items():
        write(tmp_path, split, [record(image(number)) for number in numbers])
    assert codes(look(tmp_path)) == [
        ("DUP002", "test::train", 2),
        ("DUP002", "test::validation", 1),
        ("DUP002", "validation::train", 1),
    ]


def test_a_set_without_duplicates_is_clean(digits: Digits) -> None:
    found = digits.check("duplicates")
    assert (found["status"], found["findings"]) == ("pass", [])
    assert found["measures"]["duplicates.compared"] == 260


class TestOptions:
    def test_a_feature_that_is_named_is_all_that_is_compared(self, tmp_path: Path) -> None:
        def row(number: int, value: float) -> bytes:
            return encode({"id": int64_feature(number), "pixels": float_feature([value] * 9)})

        write(tmp_path, "train", [row(1, 0.5), row(2, 0.5), row(3, 1.5), encode({})])
        assert codes(look(tmp_path)) == []
        found = look(tmp_path, feature="pixels")
        assert codes(found) == [("DUP001", "train", 1)]
        assert "`pixels`" in found["findings"][0]["message"]
        assert found["measures"]["duplicates.compared"] == 3

    def test_a_patient_in_two_splits_is_found_by_a_feature(self, tmp_path: Path) -> None:
        def slices(patients: Iterable[int], first: int) -> list[bytes]:
            return [
                record(image(first + number), patient=bytes_feature(f"p{patient}"))
                for number, patient in enumerate(patients)
            ]

        write(tmp_path, "train", slices([1, 1, 2, 3, 3, 3], 0), shards=2)
        write(tmp_path, "test", [*slices([3, 4, 4, 2], 100), record(image(300))])
        assert codes(look(tmp_path)) == []
        found = look(tmp_path, group="more/patient")
        assert codes(found) == [("DUP004", "test::train", 2)]
        (finding,) = found["findings"]
        assert finding["severity"] == "error"
        assert finding["message"] == (
            "a record of `test` is in a group of `train`, according to `more/patient`"
        )
        assert [place["record"] for place in finding["locations"]] == [0, 3]
        assert found["measures"]["duplicates.ungrouped"] == 1

    def test_a_patient_in_two_splits_is_found_by_keys(self, digits: Digits) -> None:
        from tfrecreg.builtin.python_data.build import build
        from tfrecreg.core.build.request import BuildRequest
        from tfrecreg.core.registry.registry import open_registry

        raw = digits.root / "images"
        for number, (split, name) in enumerate(
            [("train", "p1_a"), ("train", "p2_a"), ("test", "p2_b"), ("test", "odd")]
        ):
            path = raw / split / "cat" / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(9, 7, seed=number))
        build(
            open_registry(digits.root),
            BuildRequest(name="scans", source="imagefolder", raw=str(raw)),
        )
        with (digits.root / "tfrecreg.toml").open("a", encoding="utf-8") as config:
            config.write("\n[gates.scans.limits.duplicates]\ngroup_key = '(p\\d+)_'\n")
        found = digits.check("duplicates", target="scans")
        assert codes(found) == [("DUP004", "scans:test::train", 1)]
        (place,) = found["findings"][0]["locations"]
        assert place["key"] == "cat/p2_b.png"
        assert place["detail"].startswith("`p2`: in the same group as record ")
        assert place["detail"].endswith(", key cat/p2_a.png")
        assert found["measures"]["duplicates.ungrouped"] == 1
        # A record behind those of the index has no key.
        (shard,) = (digits.root / "data/scans").glob("*-test.tfrecord-*")
        shard.write_bytes(shard.read_bytes() + framed(record(image(5))))
        found = digits.check("duplicates", target="scans")
        assert codes(found) == [("DUP004", "scans:test::train", 1)]
        assert found["measures"]["duplicates.ungrouped"] == 2

    def test_pixels_are_compared_across_formats(self, tmp_path: Path) -> None:
        image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
        data = png(8, 6, seed=5)
        with image.open(io.BytesIO(data)) as opened:
            made = io.BytesIO()
            opened.save(made, "BMP")
        broken = jpeg()
        write(
            tmp_path,
            "train",
            [record(data), record(made.getvalue()), record(png(8, 6, seed=6)), record(broken)],
        )
        write(tmp_path, "test", [record(broken)])
        assert codes(look(tmp_path)) == [("DUP002", "test::train", 1)]
        found = look(tmp_path, pixels=True)
        assert codes(found) == [("DUP001", "train", 1), ("DUP002", "test::train", 1)]
        messages = {each["message"] for each in found["findings"]}
        assert "a record of `train` has the same pixels as an earlier one" in messages

    def test_pixels_without_pillow_are_an_incomplete_check(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(tmp_path, "train", [record(image(1))])
        monkeypatch.setattr(decoder, "find_spec", lambda name: None)
        found = look(tmp_path, pixels=True)
        assert found["status"] == "error"
        assert found["errors"] == [
            "the validator `duplicates` failed: `pixels` of the validator `duplicates` needs the "
            "extra `images`, which is not installed"
        ]

    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            (
                {"pixel": True},
                "`tfrecreg.toml`: `limits.duplicates.pixel` is not known; did you mean `pixels`?",
            ),
            (
                {"pixels": 3},
                "`tfrecreg.toml`: `limits.duplicates.pixels` should be `true` or `false`, found "
                "`3`",
            ),
            (
                {"most_shared": 2},
                "`tfrecreg.toml`: `limits.duplicates.most_shared` should be a number >= 0 and <= "
                "1, found `2`",
            ),
            (
                {"group": "a", "group_key": "b"},
                "`tfrecreg.toml`: `limits.duplicates` cannot have both `group` and `group_key`",
            ),
            (
                {"group_key": "(a"},
                "`tfrecreg.toml`: `limits.duplicates` `group_key` is not a regular expression: "
                "missing ), unterminated subpattern at position 0",
            ),
        ],
    )
    def test_an_option_that_makes_no_sense_is_refused(
        self, tmp_path: Path, options: dict[str, Any], complaint: str
    ) -> None:
        write(tmp_path, "train", [record(image(1))])
        with pytest.raises(ConfigError) as caught:
            look(tmp_path, **options)
        assert caught.value.message == complaint
        assert caught.value.exit_code == 2
