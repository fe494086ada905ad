"""The panoptic segments of an image."""

from __future__ import annotations

from typing import Any

import pytest


class TestPanoptic:
    def panoptic(self, raw: Any, **more: Any) -> None:
        raw.image_file("train2017/1.png")
        png = raw.png(100, 80, b"\x05\x01\x00" * 8000, colour=2)
        raw.put("annotations/panoptic_train2017/1.png", png)
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
            (b"GIF89a\x64\0\x50\0\x80\0\0", "painted in a gif, not a PNG"),
            ("other size", "has 80 × 100 pixels, expected 100 × 80"),
            ("none", "the PNG of its segments: there is no file"),
        ],
    )
    def test_a_png_that_does_not_fit_skips_the_image(self, raw: Any, file, says) -> None:
        self.panoptic(raw)
        path = raw.path / "annotations/panoptic_train2017/1.png"
        if file == "none":
            path.rename(path.with_name("2.png"))
            message, _ = raw.refusal()
            assert "none of the first 1 PNGs of the split `train` was found" in message
            assert says in raw.skipped(segments=("annotations/panoptic_train2017",)).detail
            return
        path.write_bytes(raw.png(80, 100) if isinstance(file, str) else file)
        skipped = raw.skipped()
        assert skipped.code == "SRC031"
        assert says in skipped.detail

    @pytest.mark.parametrize(
        ("more", "says"),
        [
            ({"segments_info": [{"id": -1, "category_id": 1}]}, "a segment has the id -1"),
            ({"segments_info": [{"category_id": 1}]}, "a segment has the id None"),
            ({"file_name": None}, "has no `file_name`"),
        ],
    )
    def test_segments_that_cannot_be_used_skip_the_image(self, raw: Any, more, says) -> None:
        self.panoptic(raw, **more)
        skipped = raw.skipped()
        assert skipped.code == "SRC031"
        assert says in skipped.detail

    def test_a_segment_without_category_follows_the_option(self, raw: Any) -> None:
        segment = {"id": 1, "category_id": 77, "bbox": raw.box, "area": 1}
        self.panoptic(raw, segments_info=[segment])
        raw.refusal()
        assert raw.values(dangling="drop")["image/panoptic/segment/id"] == ()
        assert [each.code for each in raw.remarks(dangling="drop")] == ["SRC025"]
