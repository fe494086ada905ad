"""Batches of NumPy arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from training.conftest import Write

import tfrecreg
from tfrecreg.errors import UsageError
from tfrecreg.example.encode import encode
from tfrecreg.example.features import bytes_feature, float_feature, int64_feature


def test_features_of_fixed_shape_are_stacked(digits_original: Path) -> None:
    source = tfrecreg.data_source(
        "digits", "train", registry=digits_original, decode=True, with_key=True, with_digest=True
    )
    batches = list(source.batches(64))
    assert [len(batch["image/class/label"]) for batch in batches] == [64, 64, 64, 8]
    first = batches[0]
    assert (first["image/encoded"].shape, first["image/encoded"].dtype) == (
        (64, 28, 28, 1),
        np.uint8,
    )
    assert first["image/class/label"].dtype == np.int64
    assert first["image/format"].tolist() == [b"png"] * 64
    assert first["record/key"] == [source.key(number) for number in range(64)]
    assert first["record/digest"].shape == (64, 16)
    assert len(list(source.batches(64, drop_remainder=True))) == 3
    assert len(list(source.batches(50, drop_remainder=True))) == 4


def test_an_order_chooses_the_records(digits_original: Path) -> None:
    source = tfrecreg.data_source("digits", "train", registry=digits_original, with_digest=True)
    certificate = source.certificate()
    for host in range(3):
        for batch in source.batches(16, source.order(5, host=host, hosts=3)):
            certificate.add(batch["record/digest"])
    assert source.report(certificate).is_complete
    share = source.order(5)
    (batch,) = source.batches(4, share[:4])
    expected = [source[number]["image/class/label"] for number in share[:4]]
    assert batch["image/class/label"].tolist() == expected


SCHEMA = """
feature { name: "label" type: INT presence { min_fraction: 1 } shape {} }
feature { name: "point" type: FLOAT presence { min_fraction: 1 } shape { dim { size: 2 } } }
feature { name: "image" type: BYTES presence { min_fraction: 1 } shape {} image_domain {} }
feature { name: "boxes" type: FLOAT shape { dim {} dim { size: 4 } } }
"""


def test_what_varies_is_a_list(write: Write, tmp_path: Path) -> None:
    import io

    image = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")

    def png(width: int) -> bytes:
        stream = io.BytesIO()
        image.new("L", (width, 2)).save(stream, "PNG")
        return stream.getvalue()

    payloads = [
        encode(
            {
                "label": int64_feature(number),
                "point": float_feature([number, 1]),
                "image": bytes_feature(png(3 if number < 2 else number + 3)),
                "boxes": float_feature([0] * 4 * number),
            }
        )
        for number in range(4)
    ]
    (tmp_path / "schema.pbtxt").write_text(SCHEMA)
    path = write("x.tfrecord", payloads)
    source = tfrecreg.data_source(path, schema=tmp_path / "schema.pbtxt", decode=True)
    same, other = source.batches(2)
    assert (same["image"].shape, other["image"][1].shape) == ((2, 2, 3, 1), (2, 6, 1))
    assert isinstance(other["image"], list)
    assert other["point"].tolist() == [[2, 1], [3, 1]]
    assert [each.shape for each in other["boxes"]] == [(2, 4), (3, 4)]


def test_what_makes_no_batches(numbers: Path, digits_original: Path) -> None:
    with pytest.raises(UsageError, match="no schema says which features"):
        tfrecreg.data_source(numbers, "train").batches(3)
    with pytest.raises(UsageError, match="no schema says which features"):
        tfrecreg.data_source("digits", "train", registry=digits_original, raw=True).batches(3)
    with pytest.raises(UsageError, match="the batch size should be at least 1, found 0"):
        tfrecreg.data_source("digits", "train", registry=digits_original).batches(0)
