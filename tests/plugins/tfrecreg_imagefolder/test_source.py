"""Features of images: their bytes, and the facts in their headers."""

from __future__ import annotations

import hashlib
import io

import pytest
from image_support import bmp, gif, jpeg, png, webp

MADE = {
    "jpeg": jpeg(30, 20),
    "png": png(30, 20),
    "gif": gif(30, 20),
    "webp": webp(30, 20),
    "bmp": bmp(30, 20),
}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("suffix", ["jpg", "png", "txt", ""])
def test_an_image_goes_in_byte_for_byte_whatever_its_name_says(raw, kind, suffix) -> None:
    name = f"one.{suffix}" if suffix else "one"
    raw.put(f"cat/deep/{name}", MADE[kind])
    ((place, found),) = raw.made("layout=class").written.items()
    assert place == ("train", f"cat/deep/{name}")
    assert found == {
        "image/encoded": MADE[kind],
        "image/format": kind.encode(),
        "image/height": 20,
        "image/width": 30,
        "image/filename": name.encode(),
        "image/key/sha256": hashlib.sha256(MADE[kind]).hexdigest().encode(),
        "image/class/label": 0,
        "image/class/text": b"cat",
    }


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "SRC110 empty"),
        (b"II*\0....", "SRC110 format"),
        (b"<html>404</html>", "SRC110 format"),
        (jpeg()[:30], "SRC110 header"),
        (png()[:20] + b"x" + png()[21:], "SRC110 header"),
        (gif(0, 5), "SRC110 size"),
        (jpeg(marker=0xF7), "SRC110 header"),
    ],
)
def test_what_is_no_sound_image_is_skipped_with_its_reason(raw, data, code) -> None:
    raw.put("cat/good.png")
    raw.put("cat/bad.png", data)
    made = raw.made()
    assert made.codes() == {"cat/bad.png": code}
    assert list(made.written) == [("train", "cat/good.png")]


def test_an_image_that_is_cut_short_is_written_and_remarked(raw) -> None:
    whole = png(30, 20)
    raw.put("cat/cut.png", whole[:-20])
    made = raw.made()
    assert made.written["train", "cat/cut.png"]["image/encoded"] == whole[:-20]
    assert made.remarks == [
        ("train", "cat/cut.png", "SRC014", "a PNG that is cut short, written unchanged", 1)
    ]


def test_an_exif_orientation_is_not_applied(raw) -> None:
    image = pytest.importorskip("PIL.Image")
    turned = image.new("RGB", (30, 20))
    exif = turned.getexif()
    exif[0x0112] = 6
    data = io.BytesIO()
    turned.save(data, "JPEG", exif=exif)
    raw.put("cat/turned.jpg", data.getvalue())
    ((_, found),) = raw.made().written.items()
    assert (found["image/height"], found["image/width"]) == (20, 30)
    assert found["image/encoded"] == data.getvalue()


def test_a_key_leads_to_its_raw_file(raw) -> None:
    raw.puts("TRAIN/cat/1.png", "val/cat/1.png")
    made = raw.source()
    assert made.raw_path("train", "cat/1.png") == "TRAIN/cat/1.png"
    assert made.raw_path("validation", "cat/1.png") == "val/cat/1.png"
    assert raw.source("layout=class").raw_path("train", "val/cat/1.png") == "val/cat/1.png"
    assert raw.source("label_file=x.csv").raw_path("test", "1.png") == "1.png"
    assert raw.source("reencode=png").raw_path("train", "cat/1.png") is None


class TestDecoding:
    """`verify=decode`, `resize` and `reencode`: what Pillow makes of it."""

    @pytest.fixture(autouse=True)
    def _pillow(self) -> None:
        pytest.importorskip("PIL.Image", reason="Pillow is not installed")

    def decode(self, data: bytes):
        from PIL import Image

        image = Image.open(io.BytesIO(data))
        image.load()
        return image

    def encode(self, image, kind: str, **options) -> bytes:
        data = io.BytesIO()
        image.save(data, kind, **options)
        return data.getvalue()

    def test_what_decodes_goes_in_byte_for_byte(self, raw) -> None:
        from PIL import Image

        for kind in ("JPEG", "PNG", "GIF", "WEBP", "BMP"):
            raw.put(f"cat/{kind}", self.encode(Image.new("RGB", (30, 20), "red"), kind))
        made = raw.made("verify=decode")
        assert made.skipped == {}
        assert made.written == raw.made().written

    def test_what_does_not_decode_is_skipped(self, raw) -> None:
        raw.put("cat/1.png", png(30, 20)[:-30])
        raw.put("cat/2.jpg", jpeg())
        damaged = bytearray(png(30, 20))
        damaged[50] ^= 1  # in the pixels: the header is sound
        raw.put("cat/3.png", bytes(damaged))
        raw.put("cat/4.png")
        made = raw.made("verify=decode")
        assert made.codes() == dict.fromkeys(
            ("cat/1.png", "cat/2.jpg", "cat/3.png"), "SRC110 pixels"
        )
        assert list(made.written) == [("train", "cat/4.png")]
        assert made.remarks == []

    def test_reencoding_gives_other_bytes_of_the_same_image(self, raw) -> None:
        raw.put("cat/1.bmp", bmp(30, 20))
        ((_, found),) = raw.made("reencode=png").written.items()
        assert found["image/format"] == b"png"
        assert found["image/key/sha256"] == (
            hashlib.sha256(found["image/encoded"]).hexdigest().encode()
        )
        assert found["image/filename"] == b"1.bmp"
        assert self.decode(found["image/encoded"]).size == (30, 20)
        ((_, found),) = raw.made("reencode=jpeg:50").written.items()
        assert found["image/format"] == b"jpeg"

    @pytest.mark.parametrize(
        ("size", "resize", "expected"),
        [
            ((300, 200), "100", (150, 100)),
            ((200, 300), "100", (100, 150)),
            ((90, 80), "100", (90, 80)),  # nothing is made larger
            ((1000, 1), "1", (1000, 1)),
            ((300, 200), "64x48", (64, 48)),
            ((30, 20), "64x48", (64, 48)),
        ],
    )
    def test_resizing_gives_the_sides_that_were_asked_for(
        self, raw, size, resize, expected
    ) -> None:
        raw.put("cat/1.png", png(*size))
        ((_, found),) = raw.made(f"resize={resize}", "reencode=png").written.items()
        assert (found["image/width"], found["image/height"]) == expected
        assert self.decode(found["image/encoded"]).size == expected

    def test_reencoding_turns_an_image_as_its_exif_says(self, raw) -> None:
        from PIL import Image

        image = Image.new("RGB", (30, 20))
        exif = image.getexif()
        exif[0x0112] = 6
        raw.put("cat/1.jpg", self.encode(image, "JPEG", exif=exif))
        ((_, found),) = raw.made("reencode=png").written.items()
        assert (found["image/width"], found["image/height"]) == (20, 30)

    @pytest.mark.parametrize(
        ("mode", "colour", "kind", "jpeg_pixel", "png_pixel"),
        [
            ("L", 90, "PNG", 90, 90),
            ("1", 1, "PNG", 255, 255),
            ("RGB", (250, 10, 10), "PNG", (250, 10, 10), (250, 10, 10)),
            ("CMYK", (0, 255, 255, 0), "JPEG", (255, 0, 0), (255, 0, 0)),
            ("RGBA", (0, 0, 0, 0), "PNG", (255, 255, 255), (0, 0, 0, 0)),
            ("LA", (0, 0), "PNG", (255, 255, 255), (0, 0, 0, 0)),
            ("I;16", 0x8000, "PNG", 128, 128),
        ],
    )
    def test_every_kind_of_pixel_becomes_grey_or_colour(
        self, raw, mode, colour, kind, jpeg_pixel, png_pixel
    ) -> None:
        from PIL import Image

        raw.put("cat/1", self.encode(Image.new(mode, (16, 16), colour), kind))
        for option, expected in (("reencode=jpeg:95", jpeg_pixel), ("reencode=png", png_pixel)):
            ((_, found),) = raw.made(option).written.items()
            pixel = self.decode(found["image/encoded"]).getpixel((8, 8))
            assert pixel == pytest.approx(expected, abs=6)


def test_the_checksum_can_be_left_out(raw) -> None:
    raw.puts("cat/1.png")
    (whole,) = raw.made().written.values()
    (short,) = raw.made("sha256=false").written.values()
    assert {name: each for name, each in whole.items() if name != "image/key/sha256"} == short
    assert len(whole["image/key/sha256"]) == 64
    assert "image/key/sha256" not in raw.source("sha256=false").schema()
