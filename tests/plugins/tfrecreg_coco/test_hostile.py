"""Bad input ends in one clear line, or in one line of the ledger; never in anything else."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from image_support import png

from tfrecreg.core.build.sources.interface import Skipped, Written
from tfrecreg.core.values.errors import TfrecregError

WHERE = "annotations/instances_train2017.json"


class TestFiles:
    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\x1f\x8b\x08\x00",
            b'{"images": [',
            b'[{"image_id": 1, "score": 0.5}]',
            b'{"images": [{"id": 1}]}',
            b'{"images": [{"id": "1", "file_name": "a"}]}',
            b'{"images": [{"id": 1, "file_name": "caf\xe9.png"}]}',
            b'{"images": [{"id": 1, "file_name": "\\ud800.png"}]}',
            b'{"images": [], "note": %b}' % (b"[" * 100_000 + b"]" * 100_000),
            b'{"images": [], "annotations": [{"image_id": 1, "bbox": [NaN, 1, 2, 3]}]}',
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_what_is_no_dataset_is_refused(self, raw: Any, data: bytes) -> None:
        raw.put(WHERE, data)
        assert raw.error().message.startswith(f"`{WHERE}` is not a COCO dataset: ")

    def test_damage_anywhere_never_ends_in_a_crash(self, raw: Any) -> None:
        raw.one(raw.annotation(1, segmentation=[[1, 2, 30, 4, 5, 60]]), raw.annotation(2))
        data = (raw.path / WHERE).read_bytes()
        dice = random.Random(7)
        outcomes = set()
        for _ in range(300):
            damaged = bytearray(data)
            for _ in range(dice.choice((1, 1, 3))):
                damaged[dice.randrange(len(data))] = dice.choice(b'"{}[],:\\019nNx\xff\x00 ')
            raw.put(WHERE, bytes(damaged))
            try:
                made = raw.made(masks="polygons")
            except TfrecregError as error:
                outcomes.add((error.exit_code, error.message.isprintable()))
            else:
                outcomes |= {type(each) for each in made.values()}
        assert outcomes >= {(2, True), Written}
        assert outcomes <= {(2, True), Written, Skipped}


class TestIds:
    @pytest.mark.parametrize(
        "data",
        [
            {"images": [{"id": 5, "file_name": "a.png"}, {"id": 5, "file_name": "b.png"}]},
            {"images": [], "categories": [{"id": 1, "name": "cat"}, {"id": 1, "name": "dog"}]},
        ],
    )
    def test_an_id_of_two_is_refused(self, raw: Any, data: Any) -> None:
        raw.put(WHERE, data)
        message = raw.error().message
        assert message.startswith(f"`{WHERE}` has the id ")

    def test_annotations_that_share_an_id_all_stay(self, raw: Any) -> None:
        raw.one(raw.annotation(4), raw.annotation(4, area=1), raw.annotation(5))
        assert raw.values()["image/object/area"] == (900.5, 1, 900.5)

    @pytest.mark.parametrize("stray", [{"image": 99}, {"category_id": 99}], ids=str)
    def test_what_refers_to_nothing_is_refused_or_left_out(self, raw: Any, stray: Any) -> None:
        raw.one(raw.annotation(1), raw.annotation(2, **stray), raw.annotation(3, **stray))
        assert "that is not listed" in raw.error().message
        assert raw.values(dangling="drop")["image/object/area"] == (900.5,)
        (remark,) = raw.remarks(dangling="drop")
        assert (remark.split, remark.code, remark.times) == ("train", "SRC115 category", 2)

    def test_whole_numbers_may_have_a_point(self, raw: Any) -> None:
        raw.one(raw.annotation(1, image_id=1.0, category_id=3.0, id=7.0))
        path = raw.path / WHERE
        path.write_text(path.read_text().replace('"id": 1, "file_name"', '"id": 1.0, "file_name"'))
        found = raw.values()
        assert found["image/source_id"] == (b"1",)
        assert found["image/object/class/label"] == (3,)


class TestPaths:
    def made(self, raw: Any, name: str, **options: Any) -> Skipped:
        """What becomes of an image by that name, beside one that is fine."""
        raw.image_file("train2017/fine.png")
        data = raw.dataset([raw.image(1, "fine.png"), raw.image(2, name)], [raw.annotation(1, 2)])
        raw.put(WHERE, data)
        made = raw.made(**options)
        assert isinstance(made["train2017/fine.png"], Written)
        return raw.skipped(**options)

    @pytest.mark.parametrize(
        ("name", "code"),
        [
            ("../../secret.png", "SRC111"),
            ("a/../../secret.png", "SRC111"),
            ("..", "SRC111"),
            ("/etc/passwd", "SRC111"),
            ("//host/share", "SRC111"),
            ("C:\\images\\a.png", "SRC111"),
            ("", "SRC112 missing"),
            (".", "SRC112 missing"),
            ("a\0.png", "SRC112 missing"),
            ("gone.png", "SRC112 missing"),
            ("a/" * 3000 + "a.png", "SRC112 missing"),
        ],
    )
    def test_a_path_that_leaves_the_folder_is_not_followed(
        self, raw: Any, name: str, code: str
    ) -> None:
        (raw.path.parent / "secret.png").write_bytes(png(3, 3, colour=0))
        (raw.path / "secret.png").write_bytes(png(3, 3, colour=0))
        assert self.made(raw, name).code == code

    def test_a_link_to_nothing_or_to_a_device_is_skipped(self, raw: Any) -> None:
        (raw.path / "train2017").mkdir()
        (raw.path / "train2017/gone.png").symlink_to("../nothing.png")
        (raw.path / "train2017/circle.png").symlink_to("circle.png")
        for name in ("gone.png", "circle.png"):
            skipped = self.made(raw, name)
            assert skipped.code == "SRC111 link"
            assert skipped.detail == "a symbolic link that leads nowhere or in a circle"
        (raw.path / "train2017/device.png").symlink_to("/dev/zero")
        assert self.made(raw, "device.png").code == "SRC111"

    def test_links_out_of_the_folder_are_as_good_as_files(self, raw: Any) -> None:
        outside = raw.path.parent / "outside"
        outside.mkdir()
        for name in ("1.png", "2.png"):
            (outside / name).write_bytes(png(3, 3, colour=0))
        raw.put(WHERE, raw.dataset([raw.image(1), raw.image(2, name="folder/2.png")]))
        (raw.path / "train2017").mkdir()
        (raw.path / "train2017/1.png").symlink_to(outside / "1.png")
        (raw.path / "train2017/nobody.png").symlink_to(outside / "1.png")
        (raw.path / "train2017/folder").symlink_to(outside)
        made = raw.made()
        assert sorted(made) == ["train2017/1.png", "train2017/folder/2.png"]
        assert all(isinstance(each, Written) for each in made.values())
        assert raw.codes() == {"SRC120": 2, "SRC117 image": 2}

    def test_the_second_entry_of_an_image_is_skipped(self, raw: Any) -> None:
        raw.image_file("train2017/a.png")
        images = [raw.image(1, "a.png"), raw.image(2, "./a.png"), raw.image(3, "a.png")]
        raw.put(WHERE, raw.dataset(images))
        made = raw.made()
        assert list(made) == ["train2017/a.png", "train2017/a.png#2", "train2017/a.png#3"]
        second = made["train2017/a.png#2"]
        assert isinstance(second, Skipped)
        assert second.code == "SRC114"
        assert second.detail == "the image 2 has the same file as the image 1"

    def test_images_that_nothing_names_are_counted_and_said(self, raw: Any) -> None:
        raw.one()
        for name in "abcde":
            raw.image_file(f"train2017/{name}.png")
        raw.put("train2017/readme.txt", "x")
        assert list(raw.made()) == ["train2017/1.png"]
        (remark,) = raw.remarks()
        assert remark == (
            "train",
            "train2017/a.png",
            "SRC117 image",
            "no annotation file that was read names them: `train2017/a.png`, `train2017/b.png`, "
            "`train2017/c.png` and 2 more",
            5,
        )

    def test_an_image_too_large_for_a_record_is_skipped(self, raw: Any) -> None:
        raw.one()
        with (raw.path / "train2017/big.png").open("wb") as file:
            file.truncate((1 << 30) + 1)
        skipped = self.made(raw, "big.png")
        assert (skipped.code, skipped.detail) == (
            "SRC110",
            "the file has 1073741825 bytes, more than 1073741824",
        )


def test_annotations_may_come_before_the_images(raw: Any) -> None:
    raw.image_file("train2017/1.png")
    data = raw.dataset([raw.image(1)], [raw.annotation(1)])
    raw.put(WHERE, json.dumps(dict(reversed(data.items()))))
    assert raw.values()["image/object/area"] == (900.5,)


def test_a_byte_order_mark_does_not_shift_the_annotations(raw: Any) -> None:
    raw.one(raw.annotation(1))
    raw.put(WHERE, b"\xef\xbb\xbf" + (raw.path / WHERE).read_bytes())
    assert raw.values()["image/object/area"] == (900.5,)
