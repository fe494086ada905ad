"""The panoptic segments of an image."""

from __future__ import annotations

from typing import Any

import pytest
from image_support import png


class TestPanoptic:
    def panoptic(self, raw: Any, **more: Any) -> None:
        raw.image_file("train2017/1.png")
        masks = png(100, 80, pixels=b"\x05\x01\x00" * 8000, colour=2)
        raw.put("annotations/panoptic_train2017/1.png", masks)
        categories = [
            {"id": 1, "name": "cat", "isthing": 1},
            {"id": 3, "name": "sky", "isthing": 0},
        ]
        segment = {"id": 261, "category_id": 3, "bbox": raw.box, "area": 8000, "iscrowd": 0}
        annotation = {"image_id": 1, "file_name": "1.png", "segments_info": [segment], **more}
        data = raw.dataset([raw.image(1)], [annotation], categories=categories)
        raw.put("annotations/panoptic_train2017.json", data)

    def test_segments_are_listed_and_their_png_goes_in_as_it_is(self, raw: Any) -> None:
        self.panoptic(raw)
        found = raw.values()
        data = (raw.path / "annotations/panoptic_train2017/1.png").read_bytes()
        prefix = "image/panoptic/segment"
        assert found["image/panoptic/encoded"] == (data,)
        assert found[f"{prefix}/id"] == (261,)
        assert found[f"{prefix}/class/label"] == (3,)
        assert found[f"{prefix}/class/text"] == (b"sky",)
        assert found[f"{prefix}/is_thing"] == found[f"{prefix}/is_crowd"] == (0,)
        assert found[f"{prefix}/area"] == (8000,)
        assert found[f"{prefix}/bbox/xmin"] == pytest.approx((0.1,))
        assert not any(name.startswith("image/object") for name in found)
        assert raw.source().labels() == {f"{prefix}/class/label": ["", "cat", "", "sky"]}

    def test_an_image_without_segments_is_kept(self, raw: Any) -> None:
        self.panoptic(raw)
        raw.image_file("train2017/2.png")
        data = raw.dataset([raw.image(2)], [])
        raw.put("annotations/panoptic_train2017.json", data)
        assert raw.values()["image/panoptic/encoded"] == ()

    @pytest.mark.parametrize(
        ("file", "says"),
        [
            (b"", "the PNG of its segments: the file has no bytes"),
            (b"\xff\xd8\xff", "the PNG of its segments: "),
            (b"GIF89a\x64\0\x50\0\x80\0\0", "it is a gif, not a PNG"),
            ("other size", "it has 80 × 100 pixels, expected 100 × 80"),
            ("none", "the PNG of its segments: there is no file"),
        ],
    )
    def test_a_png_that_does_not_fit_skips_the_image(self, raw: Any, file, says) -> None:
        self.panoptic(raw)
        path = raw.path / "annotations/panoptic_train2017/1.png"
        if file == "none":
            path.rename(path.with_name("2.png"))
            message = raw.error().message
            assert "none of the first 1 segments of the split `train` was found" in message
            assert says in raw.skipped(segments=("annotations/panoptic_train2017",)).detail
            return
        path.write_bytes(png(80, 100, colour=0) if isinstance(file, str) else file)
        skipped = raw.skipped()
        assert skipped.code == "SRC113"
        assert says in skipped.detail

    def test_segments_without_a_png_skip_the_image(self, raw: Any) -> None:
        self.panoptic(raw, file_name=None)
        assert raw.skipped().code == "SRC113"

    @pytest.mark.parametrize("number", [-1, 1 << 24, 1.5, None])
    def test_an_id_that_no_pixel_has_is_refused(self, raw: Any, number: Any) -> None:
        self.panoptic(raw, segments_info=[{"id": number, "category_id": 1}])
        raw.error()

    def test_a_segment_without_category_follows_the_option(self, raw: Any) -> None:
        segment = {"id": 1, "category_id": 77, "bbox": raw.box, "area": 1}
        self.panoptic(raw, segments_info=[segment])
        raw.error()
        assert raw.values(dangling="drop")["image/panoptic/segment/id"] == ()
        assert [each.code for each in raw.remarks(dangling="drop")] == ["SRC115 category"]
