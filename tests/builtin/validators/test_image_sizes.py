"""IMG008: the few images that are far larger or smaller than the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from check_support import document, framed
from image_support import jpeg, png

from tfrecreg.builtin.validators.images import ImageSizes
from tfrecreg.core.example.encode import encode
from tfrecreg.core.example.features import bytes_feature
from tfrecreg.core.values.findings import MAX_LOCATIONS, Location


def told(sizes: ImageSizes) -> list[tuple[str, int, int, str]]:
    """Message, count, number of places and first detail of each finding."""
    found = list(sizes.findings("x"))
    assert all((each.code, each.severity.value) == ("IMG008", "info") for each in found)
    return [
        (each.message, each.count, len(each.locations), each.locations[0].detail or "")
        for each in found
    ]


def sizes_of(*counts: tuple[int, int], feature: str = "image", shard: str = "a") -> ImageSizes:
    """So many images of so many pixels each."""
    made = ImageSizes()
    record = 0
    for pixels, count in counts:
        for _ in range(count):
            if made.add(feature, pixels):
                place = Location(shard=shard, record=record, feature=feature, detail=f"{pixels}")
                made.place(feature, pixels, place)
            record += 1
    return made


LARGE = "`image` should have at most 64 times the pixels of the median image"
SMALL = "`image` should have at least 1/64 of the pixels of the median image"


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([(100, 199), (100 * 128, 1)], [(LARGE, 1, 1, "12800")]),
        ([(100, 198), (100 * 64, 2)], []),
        ([(64, 99), (64 * 128 - 1, 1)], []),  # twice 64 times and one pixel less
        ([(64, 99), (64 * 128, 1)], [(LARGE, 1, 1, "8192")]),
        ([(127, 99), (127 * 64, 1)], []),
        ([(64, 98), (64 * 128, 1)], []),  # 99 images
        ([(64, 98), (64 * 128, 2)], []),  # two of 100
        ([(64, 198), (1 << 20, 1), (1 << 21, 1)], [(LARGE, 2, 2, str(1 << 20))]),
        ([(1 << 20, 199), (1, 1)], [(SMALL, 1, 1, "1")]),
        ([(1 << 20, 198), (1, 1), (1 << 30, 1)], [(LARGE, 1, 1, str(1 << 30)), (SMALL, 1, 1, "1")]),
        ([(1 << 10, 50), (1 << 20, 50)], []),
        ([], []),
    ],
)
def test_few_images_far_from_the_median_are_told(
    counts: list[tuple[int, int]], expected: list[tuple[str, int, int, str]]
) -> None:
    assert told(sizes_of(*counts)) == expected


def test_counts_are_exact_and_places_bounded() -> None:
    assert told(sizes_of((10, 9970), (10_000, 30))) == [(LARGE, 30, MAX_LOCATIONS, "10000")]


def test_features_have_sizes_of_their_own() -> None:
    sizes = sizes_of((10, 200))
    sizes.merge(sizes_of((10_000, 200), feature="other"))
    assert told(sizes) == []
    sizes.merge(sizes_of((10_000, 1)))
    assert told(sizes) == [(LARGE, 1, 1, "10000")]


def test_shards_merge_in_any_order() -> None:
    one = sizes_of((10, 2000), (10_000, 15), shard="a")
    two = sizes_of((10, 2000), (10_000, 15), shard="b")
    there, back = ImageSizes(), ImageSizes()
    for made, parts in ((there, (one, two)), (back, (two, one))):
        for each in parts:
            made.merge(each)
    assert there.plain() == back.plain()
    (finding,) = there.findings("x")
    assert (finding.count, len(finding.locations)) == (30, MAX_LOCATIONS)
    assert [each.shard for each in finding.locations] == ["a"] * 15 + ["b"] * 5
    assert ImageSizes.of_plain(there.plain()).plain() == there.plain()


def test_the_validator_names_the_record(tmp_path: Path) -> None:
    small, large = jpeg(8, 8), png(300, 200)
    payloads = [encode({"image/encoded": bytes_feature(small)}) for _ in range(150)]
    payloads[70] = encode({"image/encoded": bytes_feature(large)})
    # Two images in one record, which are looked at one by one.
    payloads[99] = encode({"image/encoded": bytes_feature([small, large])})
    for shard in range(2):
        path = tmp_path / f"x-train.tfrecord-0000{shard}-of-00002"
        path.write_bytes(framed(*payloads[shard * 75 : shard * 75 + 75]))
    checked: dict[str, Any] = document([tmp_path], only=("images",))
    assert checked["errors"] == []
    assert checked["findings"] == []  # two of 151
    payloads[99] = encode({"image/encoded": bytes_feature([small, small])})
    path.write_bytes(framed(*payloads[75:]))
    (finding,) = document([tmp_path], only=("images",))["findings"]
    assert finding["code"] == "IMG008"
    (place,) = finding["locations"]
    assert place["shard"].endswith("/x-train.tfrecord-00000-of-00002")
    assert (place["record"], place["detail"]) == (70, "300 × 200 pixels")
    assert document([tmp_path], only=("images",))["status"] == "pass"
