"""IMG008: the few images that are far larger or smaller than the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from check_support import document, framed
from image_support import jpeg, png

from tfrecreg.builtin.validators.images import unusual_sizes
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature
from tfrecreg.core.values.codes import IMG008
from tfrecreg.core.values.findings import MAX_LOCATIONS, Location


def sizes_of(*counts: tuple[int, int], shard: str) -> Tally:
    """So many images of so many pixels each."""
    made = Tally()
    for pixels, count in counts:
        for record in range(count):
            place = Location(shard=shard, record=record, feature="image")
            made.add(IMG008, "", place, feature="image", subject=str(pixels.bit_length()))
    return made


def test_shards_merge_in_any_order() -> None:
    one = sizes_of((10_000, 2000), (10, 15), shard="a")
    two = sizes_of((10_000, 2000), (10, 15), shard="b")
    there, back = Tally(), Tally()
    for made, parts in ((there, (one, two)), (back, (two, one))):
        for each in parts:
            made.merge(each)
    found = list(unusual_sizes(there, "x"))
    assert found == list(unusual_sizes(back, "x"))
    (finding,) = found
    assert (finding.count, len(finding.locations)) == (30, MAX_LOCATIONS)
    assert [each.shard for each in finding.locations] == ["a"] * 15 + ["b"] * 5
    assert finding.message == "`image` should have at least 1/64 of the pixels of the median image"


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
    assert "should have at most 64 times the pixels of the median" in finding["message"]
    (place,) = finding["locations"]
    assert place["shard"].endswith("/x-train.tfrecord-00000-of-00002")
    assert (place["record"], place["detail"]) == (70, "300 × 200 pixels")
    assert document([tmp_path], only=("images",))["status"] == "pass"
