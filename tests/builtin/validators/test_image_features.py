"""Which features are images, and digests that are made once."""

from __future__ import annotations

import pytest
from blake3 import blake3
from image_support import jpeg, png

from tfrecreg.core.example.encode import encode
from tfrecreg.core.example.features import bytes_feature, int64_feature
from tfrecreg.core.example.model import Example
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.schema.roles import image_features
from tfrecreg.core.schema.roles.image_features import ImageFeatures
from tfrecreg.core.schema.roles.payload_kinds import value_digest

IMAGE = bytes_feature(png() + bytes(64))


@pytest.mark.parametrize(
    ("named", "example", "names"),
    [
        ((), {"image/encoded": IMAGE, "mask": IMAGE}, ("image/encoded",)),
        ((), {"image": IMAGE, "label": int64_feature(1)}, ("image",)),
        ((), {"right": IMAGE, "left": IMAGE}, ("left", "right")),
        ((), {"image": bytes_feature(b"x" * 100)}, ()),
        ((), {"image": bytes_feature([png() + bytes(64)] * 2)}, ()),
        ((), {"image/encoded": int64_feature(1)}, ()),
        ((), {"image/encoded": bytes_feature([])}, ()),
        (("mask",), {"image/encoded": IMAGE, "mask": IMAGE}, ("mask",)),
        (
            ("image/encoded", "mask"),
            {"image/encoded": IMAGE, "mask": IMAGE},
            ("image/encoded",),
        ),
        (("mask",), {"image": IMAGE}, ()),
    ],
)
def test_images_are_where_somebody_says_or_where_bytes_begin_as_one(
    named: tuple[str, ...], example: Example, names: tuple[str, ...]
) -> None:
    assert ImageFeatures(named).of(example) == names


def test_what_was_learnt_holds_for_later_records() -> None:
    images = ImageFeatures()
    assert images.of({"image": IMAGE}) == ("image",)
    assert images.of({"image": bytes_feature(b"no image")}) == ("image",)
    assert images.of({"other": IMAGE}) == ()


def test_where_there_are_none_nobody_looks_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    monkeypatch.setattr(image_features, "_is_image", lambda feature: looked.append(feature))
    images = ImageFeatures()
    for _ in range(100):
        images.of({"a": int64_feature(1)})
    assert len(looked) == 16


def test_a_digest_is_made_once_for_all_who_ask() -> None:
    payload = encode({"image": bytes_feature(jpeg())})
    batch = RecordBatch(0, [0], [len(payload)], [0], payload)
    (example,) = batch.examples
    assert example is not None
    digest = value_digest(batch, 0, "image", example["image"])
    assert digest == blake3(jpeg()).digest(16)
    assert value_digest(batch, 0, "image", bytes_feature(b"asked again")) is digest


def test_values_of_a_list_are_told_apart_by_where_they_end() -> None:
    batch = RecordBatch(0, [0], [0], [0], b"")
    one = value_digest(batch, 0, "x", bytes_feature([b"a", b"bc"]))
    other = value_digest(batch, 1, "x", bytes_feature([b"ab", b"c"]))
    assert one != other
