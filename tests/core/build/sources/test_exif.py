"""Images with an EXIF orientation: objects lie where they are in the pixels, or are remarked on."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import pytest
from object_sources_support import write_objects
from raw_source_support import RawObjects

import tfrecreg
from tfrecreg.core.build.sources.interface import Written
from tfrecreg.core.images.pixels import decode_pixels
from tfrecreg.core.plugins.manager import plugins
from tfrecreg.core.plugins.records import SourceRecord

pytest.importorskip("PIL", reason="the extra `images` is not installed")

from PIL import Image, ImageOps

SIZE = 80, 40
STORED = 60, 26, 70, 36
"""A white square in the black pixels as they are stored."""


def photo(orientation: int, kind: str = "JPEG") -> tuple[bytes, Image.Image]:
    """An image, and what a viewer shows of it."""
    image = Image.new("L", SIZE)
    image.paste(255, STORED)
    exif = image.getexif()
    exif[0x0112] = orientation
    made = io.BytesIO()
    image.save(made, kind, exif=exif, quality=95)
    return made.getvalue(), ImageOps.exif_transpose(Image.open(io.BytesIO(made.getvalue())))


def raw(
    folder: Path, form: str, data: bytes, box: tuple[int, ...], said: tuple[int, int]
) -> RawObjects:
    """A raw folder with one image, whose annotations have that box and that size."""
    left, top, right, bottom = box
    source, _, without_size = form.partition(" ")
    objects = {"a.jpg": [("x", (left, top, right - left, bottom - top))]}
    size = (0, 0) if without_size else said
    write_objects(source, folder, "train", objects, files={"a.jpg": data}, size=size)
    return RawObjects(folder, plugins().load(SourceRecord, source))


def made(found: RawObjects, **options: Any) -> Written:
    (record,) = found.made(**options).values()
    assert isinstance(record, Written), record
    return record


def fits(record: Written) -> bool:
    """Whether the box has the white square in it, as decoders return the pixels."""
    example = record.example
    pixels = decode_pixels(example["image/encoded"].values[0])[:, :, 0]
    height, width = pixels.shape
    assert (example["image/width"].values, example["image/height"].values) == ((width,), (height,))
    sides = ("xmin", "xmax", "ymin", "ymax")
    left, right, top, bottom = (example[f"image/object/bbox/{s}"].values[0] for s in sides)
    inside = pixels[round(top * height) : round(bottom * height)]
    return bool(inside[:, round(left * width) : round(right * width)].mean() > 200)


def remark(record: Written) -> str:
    return "".join(each.detail for each in record.remarks if each.code == "SRC120")


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("form", ["coco", "voc", "voc without size", "yolo"])
def test_boxes_of_what_a_viewer_shows_fit_the_turned_pixels(
    tmp_path: Path, form: str, orientation: int
) -> None:
    data, shown = photo(orientation)
    white = shown.point(lambda value: 255 * (value > 128)).getbbox()
    found = raw(tmp_path, form, data, white, shown.size)
    kept = made(found)
    assert kept.example["image/encoded"].values == (data,)
    if any(each.code == "SRC115" for each in kept.remarks):
        assert kept.example["image/object/area"].count == 0  # outside of the stored pixels
    else:
        assert not fits(kept)
    knows = form in ("coco", "voc") and orientation > 4
    assert ("of the rotated image" in remark(kept)) == knows
    assert f"EXIF orientation {orientation}" in remark(kept)
    turned = made(found, exif="apply")
    assert fits(turned)
    assert remark(turned) == ""
    again = turned.example["image/encoded"].values[0]
    assert b"Exif" not in again
    tables = [Image.open(io.BytesIO(each)).quantization for each in (data, again)]
    assert tables[0] == tables[1]
    assert turned.example["image/width"].values == (shown.size[0],)


@pytest.mark.parametrize("exif", ["keep", "apply"])
@pytest.mark.parametrize("form", ["coco", "voc"])
def test_boxes_of_the_stored_pixels_are_never_parted_from_them(
    tmp_path: Path, form: str, exif: str
) -> None:
    data, _ = photo(6)
    record = made(raw(tmp_path, form, data, STORED, SIZE), exif=exif)
    assert record.example["image/encoded"].values == (data,)
    assert fits(record)
    assert "of the stored pixels" in remark(record)


def test_an_image_without_objects_or_orientation_has_no_remark(tmp_path: Path) -> None:
    found = raw(tmp_path / "a", "yolo", photo(6)[0], STORED, SIZE)
    found.put("labels/train/a.txt", "")
    assert remark(made(found)) == ""
    plain = photo(1)[0]
    found = raw(tmp_path / "b", "yolo", plain, STORED, SIZE)
    for exif in ("keep", "apply"):
        record = made(found, exif=exif)
        assert record.example["image/encoded"].values == (plain,)
        assert (fits(record), remark(record)) == (True, "")


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_other_formats_become_png(tmp_path: Path, kind: str) -> None:
    data, shown = photo(8, kind)
    white = shown.convert("L").point(lambda value: 255 * (value > 128)).getbbox()
    found = raw(tmp_path, "coco", data, white, shown.size)
    assert "EXIF orientation 8" in remark(made(found))
    record = made(found, exif="apply")
    assert fits(record)
    assert record.example["image/format"].values == (b"png",)


def test_a_build_turns_them_and_its_check_is_clean(tmp_path: Path) -> None:
    data, shown = photo(6)
    raw(tmp_path / "raw", "yolo", data, (4, 60, 14, 70), shown.size)
    registry = tfrecreg.init(tmp_path / "r", with_dvc=False)
    codes, drawn = {}, {}
    for exif in ("keep", "apply"):
        build = registry["x"].build(source="yolo", raw=tmp_path / "raw", options={"exif": exif})
        report = build.check()
        codes[exif] = {each.code for each in report.findings} & {"IMG009", "SRC016", "SRC017"}
        page = tfrecreg.report("x", registry=tmp_path / "r").html
        images = re.findall('data:image/[a-z]+;base64,([^"]+)', page)
        drawn[exif] = {Image.open(io.BytesIO(base64.b64decode(each))).size for each in images}
    assert drawn == {"keep": {SIZE}, "apply": {shown.size}}  # as decoders return them
    assert codes == {"keep": {"IMG009"}, "apply": set()}
    assert build.manifest.codecs["pillow"]
