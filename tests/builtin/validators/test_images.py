"""IMG001 to IMG007, and IMG009: planted, found where they are, and no other one with them."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from check_support import Digits, Document, document, framed
from image_support import bmp, chunk, gif, jpeg, png, segment, webp

from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.images import decoder
from tfrecreg.core.registry.init import init


def record(data: bytes, **declared: bytes | int) -> bytes:
    features: dict[str, Feature] = {"image/encoded": bytes_feature(data)}
    for name, value in declared.items():
        make: Any = bytes_feature if isinstance(value, bytes) else int64_feature
        features[f"image/{name}"] = make(value)
    return encode(features)


def look(folder: Path, payloads: Sequence[bytes], **options: Any) -> Document:
    (folder / "x-train.tfrecord-00000-of-00001").write_bytes(framed(*payloads))
    root = None
    if options:
        root = folder / "registry"
        init(root, with_dvc=False)
        values = ", ".join(
            f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
            for name, value in options.items()
        )
        with (root / "tfrecreg.toml").open("a", encoding="utf-8") as config:
            config.write(f"\n[gates.default]\nlimits.images = {{ {values} }}\n")
    path = folder / "x-train.tfrecord-00000-of-00001"
    return document([path], root, only=("images",))


def found(document: Document) -> list[tuple[str, list[tuple[int, str]]]]:
    """Code, and record and detail of each place."""
    assert document["errors"] == []
    return sorted(
        (each["code"], [(place["record"], place["detail"]) for place in each["locations"]])
        for each in document["findings"]
    )


def test_images_that_are_what_is_declared_are_clean(tmp_path: Path) -> None:
    payloads = [
        record(jpeg(3, 2), format=b"jpeg", height=2, width=3, channels=3),
        record(jpeg(3, 2, channels=1), format=b"JPG", channels=1),
        record(jpeg(), format=b"image/jpeg"),
        record(png(5, 4, colour=6), format=b".png", height=4, width=5, channels=4),
        record(png(5, 4, colour=3, before=[chunk(b"PLTE", bytes(768))]), channels=1),
        record(gif(), format=b"gif", channels=4),
        record(webp(), format=b"webp"),
        record(bmp(), format=b"bmp", channels=3),
        encode({"other": int64_feature(1)}),
        b"\xff",
    ]
    checked = look(tmp_path, payloads)
    assert (checked["status"], found(checked)) == ("pass", [("IMG007", [(6, "a WebP")])])
    assert checked["measures"] == {
        "images.formats": {"bmp": 1, "gif": 1, "jpeg": 3, "png": 2, "webp": 1}
    }


def test_a_format_that_is_another_is_found(tmp_path: Path) -> None:
    checked = look(tmp_path, [record(jpeg(), format=b"jpeg"), record(png(), format=b"jpg\x1b")])
    assert found(checked) == [("IMG001", [(1, r"declared `jpg\x1b`, found `png`")])]
    (finding,) = checked["findings"]
    assert finding["severity"] == "warning"
    assert finding["message"] == "`image/format` should be the format of the image"
    assert finding["fingerprint"] == "IMG001::train:image/format:"


def test_sides_that_are_others_are_found(tmp_path: Path) -> None:
    payloads = [
        record(png(5, 4), height=4, width=5),
        record(png(5, 4), height=3, width=5),
        record(png(5, 4), height=5, width=4),
    ]
    assert found(look(tmp_path, payloads)) == [
        ("IMG002", [(1, "declared 3, found 4"), (2, "declared 5, found 4")]),
        ("IMG002", [(2, "declared 4, found 5")]),
    ]


def test_channels_that_are_others_are_found(tmp_path: Path) -> None:
    payloads = [record(png(colour=0), channels=3), record(png(colour=2), channels=3)]
    assert found(look(tmp_path, payloads)) == [("IMG003", [(0, "declared 3, found 1")])]


@pytest.mark.parametrize(
    ("names", "image"),
    [
        (("image_height", "image_width"), "image"),
        (("height", "width"), "image"),
        (("left/height", "left/width"), "left/image"),
    ],
)
def test_what_is_declared_is_found_beside_features_of_other_names(
    tmp_path: Path, names: tuple[str, str], image: str
) -> None:
    features = {image: bytes_feature(png(50, 40) + bytes(64))}
    for name in names:
        features[name] = int64_feature(50)
    checked = look(tmp_path, [encode(features)])
    assert found(checked) == [("IMG002", [(0, "declared 50, found 40")])]
    assert checked["findings"][0]["locations"][0]["feature"] == names[0]


@pytest.mark.parametrize(
    ("name", "values", "is_place"),
    [
        ("image/object/bbox/xmin", [0.5], True),
        ("image/object/bbox/xmin", [], False),
        ("objects/bbox", [0.1, 0.1, 0.5, 0.5], True),
        ("landmarks", [0.5, 0.5], True),
        ("image/object/polygon/x", [0.1, 0.2, 0.3], True),
        ("segmentation_mask", b"png", True),
        ("image/class/label", 3, False),
        ("boxer", 3, False),
    ],
)
def test_an_exif_orientation_is_found_beside_places_in_the_image(
    tmp_path: Path, name: str, values: Any, is_place: bool
) -> None:
    make: Any = {bytes: bytes_feature, int: int64_feature}.get(type(values), float_feature)
    tiff = b"II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x0112, 3, 1, 6, 0, 0)
    turned = jpeg(8, 4, before=segment(0xE1, b"Exif\0\0" + tiff))
    payloads = [
        encode({"image/encoded": bytes_feature(data), name: make(values)})
        for data in (jpeg(8, 4), turned)
    ]
    detail = "orientation 6: viewers rotate it to 4 × 8 pixels"
    checked = look(tmp_path, payloads)
    assert found(checked) == ([("IMG009", [(1, detail)])] if is_place else [])


@pytest.mark.parametrize("decode", [False, True])
def test_images_that_tensorflow_does_not_decode_are_told_of(tmp_path: Path, decode: bool) -> None:
    options = {"decode": True} if decode else {}
    checked = look(tmp_path, [record(png()), record(bmp(header=12))], **options)
    (finding,) = checked["findings"]
    assert (finding["code"], finding["severity"]) == ("IMG007", "warning")
    assert finding["message"] == (
        "`image/encoded` should be an image that TensorFlow decodes correctly"
    )
    assert found(checked) == [("IMG007", [(1, "a BMP with the header of OS/2")])]


BASE64 = "expected a JPEG, PNG, GIF, WebP or BMP, found the base64 of a PNG"


class TestIMG004:
    @pytest.mark.parametrize(
        ("data", "detail"),
        [
            (b"", "the file has no bytes"),
            (b"II*\0 and more", "expected a JPEG, PNG, GIF, WebP or BMP, found a TIFF"),
            (b"no image", "expected a JPEG, PNG, GIF, WebP or BMP, found text"),
            *((encode(png(9, 7)), BASE64) for encode in (b64encode, urlsafe_b64encode)),
            (png()[:20], "a PNG that ends after 20 bytes, inside its header"),
        ],
    )
    def test_bytes_without_a_header_are_no_image(
        self, tmp_path: Path, data: bytes, detail: str
    ) -> None:
        checked = look(tmp_path, [record(jpeg()), record(data, format=b"jpeg")])
        assert found(checked) == [("IMG004", [(1, detail)])]
        assert checked["findings"][0]["severity"] == "error"
        assert checked["measures"]["images.unreadable"] == 1

    def test_an_image_that_is_cut_is_found(self, tmp_path: Path) -> None:
        data = jpeg()[:-2]
        checked = look(tmp_path, [record(png()[:-12]), record(data)])
        assert found(checked) == [
            (
                "IMG004",
                [
                    (0, f"the PNG is cut off after {len(png()) - 12} bytes"),
                    (1, f"the JPEG is cut off after {len(data)} bytes"),
                ],
            )
        ]

    def test_every_image_of_a_list_is_looked_at(self, tmp_path: Path) -> None:
        features = {
            "image/encoded": bytes_feature([png(), b"none", jpeg()]),
            "image/format": bytes_feature(b"png"),
        }
        checked = look(tmp_path, [encode(features)])
        assert [code for code, _ in found(checked)] == ["IMG004"]
        assert checked["measures"]["images.formats"] == {"jpeg": 1, "png": 1}


class TestDecode:
    @pytest.fixture(autouse=True)
    def pillow(self) -> None:
        pytest.importorskip("PIL.Image", reason="Pillow is not installed")

    def test_what_does_not_decode_is_found_where_that_is_asked_for(self, tmp_path: Path) -> None:
        broken = bytearray(png(30, 20))
        broken[-14] ^= 1
        payloads = [record(png(30, 20)), record(bytes(broken)), record(png(9, 9))]
        assert found(look(tmp_path, payloads)) == []
        checked = look(tmp_path, payloads, decode=True)
        ((code, places),) = found(checked)
        assert (code, [number for number, _ in places]) == ("IMG005", [1])
        assert "checksum" in places[0][1]
        assert checked["measures"]["images.decoded"] == 2

    def test_a_bomb_is_found_by_its_header_and_not_decoded(self, tmp_path: Path) -> None:
        head = chunk(b"IHDR", struct.pack(">IIBBBBB", 30_000, 30_000, 8, 0, 0, 0, 0))
        data = (
            b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
        )
        detail = f"{len(data)} bytes decode to 30000 × 30000 pixels"
        for options in ({}, {"decode": True}, {"max_pixels": 900_000_000}):
            folder = tmp_path / "-".join(options)
            folder.mkdir(exist_ok=True)
            checked = look(folder, [record(data)], **options)
            allowed = "max_pixels" in options
            assert found(checked) == ([] if allowed else [("IMG006", [(0, detail)])])

    def test_what_takes_too_much_is_found_as_too_large(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(decoder, "_PIXELS", 100)
        checked = look(tmp_path, [record(png(30, 20))], decode=True)
        ((code, ((number, detail),)),) = found(checked)
        assert (code, number) == ("IMG006", 0)
        assert detail.startswith("30 × 20 pixels")


class TestOptions:
    def test_a_feature_that_is_named_is_the_one_that_is_looked_at(self, tmp_path: Path) -> None:
        payload = encode({"thumb": bytes_feature(b"none"), "image/encoded": bytes_feature(png())})
        assert found(look(tmp_path, [payload])) == []
        assert [code for code, _ in found(look(tmp_path, [payload], feature="thumb"))] == ["IMG004"]


def test_a_build_is_clean_and_what_was_found_is_kept(digits: Digits) -> None:
    import os

    for path in digits.folder.rglob("*"):
        os.utime(path, (1, 1))
    first, second = (digits.check("images", cached=True) for _ in range(2))
    assert (first["status"], first["findings"]) == ("pass", [])
    assert (first["summary"]["cached"], second["summary"]["cached"]) == (0, 4)
    assert first["measures"] == second["measures"] == {"images.formats": {"png": 260}}


def test_a_dataset_without_images_says_why_it_was_not_looked_at(digits: Digits) -> None:
    from dataclasses import replace

    from scan_support import target

    from tfrecreg.builtin.validators.images import ImagesValidator
    from tfrecreg.core.check.choose import choose
    from tfrecreg.core.registry.registry import open_registry
    from tfrecreg.core.values.config import GateConfig

    manifest = open_registry(digits.root).dataset("digits").build_manifest()
    assert manifest is not None
    assert ImagesValidator().applies(target(manifest=manifest)) is None
    bare = replace(manifest, features={"x": 1})
    why = ImagesValidator().applies(target(manifest=bare))
    assert why == "no feature holds images: neither `image/encoded` nor one with an `image_domain`"
    named = 'feature { name: "x" type: BYTES image_domain {} }'
    assert ImagesValidator().applies(target(manifest=bare, schema=named)) is None
    for feature, skipped in (("x", 0), ("y", 1)):
        gate = GateConfig(limits={"images": {"feature": feature}})
        assert len(choose(target(manifest=bare), gate, ["images"], ()).skipped) == skipped


@pytest.mark.realdata
def test_real_images_are_what_their_records_declare(realdata: Path) -> None:
    checked = document([realdata / "tfrecord/raccoon/data/test.record"], only=("images",))
    assert found(checked) == []
    assert checked["measures"] == {"images.formats": {"jpeg": 40}}


@pytest.mark.realdata
def test_odd_images_are_findings_and_never_a_crash(realdata: Path, tmp_path: Path) -> None:
    files = sorted(path for path in (realdata / "images-odd").rglob("*") if path.is_file())
    assert len(files) > 50
    payloads = [record(path.read_bytes()) for path in files if path.stat().st_size < 1 << 24]
    checked = look(tmp_path, payloads)
    assert checked["errors"] == []
    codes = {each["code"] for each in checked["findings"]}
    assert "IMG004" in codes
    assert sum(checked["measures"]["images.formats"].values()) > 40
