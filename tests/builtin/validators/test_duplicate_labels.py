"""DUP005: one image under several labels."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from check_support import Document
from duplicates_support import image, look, record, write

from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature


class TestDUP005:
    """One image under several labels."""

    def contradictions(self, checked: Document) -> list[tuple[str, int, str]]:
        """Shard, record and detail of each place."""
        return [
            (place["shard"].rpartition("/")[2], place["record"], place["detail"])
            for each in checked["findings"]
            if each["code"] == "DUP005"
            for place in each["locations"]
        ]

    def test_it_is_found_in_a_split_and_across_splits(self, tmp_path: Path) -> None:
        rows = [record(image(number), number % 3) for number in range(30)]
        train = [*rows, record(image(4), 2), record(image(7), 1)]
        write(tmp_path, "train", train, shards=2)
        write(tmp_path, "test", [record(image(20), 0), record(image(21), 0)])
        checked = look(tmp_path)
        first = "x-train.tfrecord-00000-of-00002"
        assert self.contradictions(checked) == [
            (
                first,
                10,
                "labeled 2, but the same image is labeled 0 in record 0 of "
                f"{tmp_path}/x-test.tfrecord-00000-of-00001",
            ),
            (
                first,
                15,
                f"labeled 2, but the same image is labeled 1 in record 2 of {tmp_path}/{first}",
            ),
        ]
        (finding,) = (each for each in checked["findings"] if each["code"] == "DUP005")
        assert (finding["severity"], finding["count"]) == ("warning", 2)
        assert finding["fingerprint"] == "DUP005::::"
        assert finding["message"] == "an image has different labels in different records"

    def test_equal_labels_no_labels_and_several_labels_do_not_contradict(
        self, tmp_path: Path
    ) -> None:
        def other(label: Feature | None) -> bytes:
            features = {"image/encoded": bytes_feature(image(1))}
            return encode(features | ({"image/class/label": label} if label is not None else {}))

        rows = [record(image(1), 1)] * 3
        rows += [other(None), other(int64_feature(-1)), other(int64_feature([1, 2]))]
        rows += [other(float_feature(2)), other(bytes_feature(b"2"))]
        # The second one is -1 of an unsigned type: "no label", too.
        rows += [other(int64_feature(number)) for number in (1 << 31, (1 << 32) - 1, 1 << 40)]
        write(tmp_path, "train", rows)
        checked = look(tmp_path)
        assert self.contradictions(checked) == []
        assert [each["code"] for each in checked["findings"]] == ["DUP001"]

    def test_labels_of_objects_do_not_contradict(self, tmp_path: Path) -> None:
        rows = [
            encode(
                {
                    "image/encoded": bytes_feature(image(1)),
                    "image/object/class/label": int64_feature(number),
                }
            )
            for number in range(3)
        ]
        write(tmp_path, "train", rows)
        assert self.contradictions(look(tmp_path)) == []

    def test_the_same_pixels_in_another_format_count_with_pixels(self, tmp_path: Path) -> None:
        image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
        files = []
        for kind in ("PNG", "BMP"):
            made = io.BytesIO()
            image.new("RGB", (9, 7), (1, 2, 3)).save(made, kind)
            files.append(made.getvalue())
        write(tmp_path, "train", [record(data, number) for number, data in enumerate(files)])
        assert self.contradictions(look(tmp_path)) == []
        assert len(self.contradictions(look(tmp_path, pixels=True))) == 1

    def test_another_feature_is_named(self, tmp_path: Path) -> None:
        rows = [
            encode({"text": bytes_feature(b"x"), "label": int64_feature(number)})
            for number in range(2)
        ]
        write(tmp_path, "train", rows)
        checked = look(tmp_path, feature="text")
        (finding,) = (each for each in checked["findings"] if each["code"] == "DUP005")
        assert finding["message"] == "the same `text` has different labels in different records"
        assert finding["locations"][0]["detail"].startswith("labeled 1, but the same `text` is")

    @pytest.mark.parametrize("count", [5, 3000])
    def test_every_image_counts_once(self, tmp_path: Path, count: int) -> None:
        rows = [record(image(number), 0) for number in range(count)]
        rows += [record(image(number), 1 + number % 2) for number in range(count)] * 2
        write(tmp_path, "train", rows, shards=3)
        checked = look(tmp_path)
        (finding,) = (each for each in checked["findings"] if each["code"] == "DUP005")
        assert finding["count"] == count
        assert len(finding["locations"]) == min(count, 20)
