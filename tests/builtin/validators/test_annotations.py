"""ANN001 to ANN007: planted, found where they are, and no other one with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from check_support import Digits, Document, document, framed
from scan_support import target

from tfrecreg.builtin.validators.annotations import AnnotationsValidator
from tfrecreg.core.check.choose import choose
from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.registry.init import init
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.values.config import GateConfig
from tfrecreg.core.values.errors import ConfigError

Box = tuple[float, float, float, float]
GOOD: Box = (0.1, 0.4, 0.2, 0.3)


def image(boxes: Sequence[Box] = (GOOD,), **changes: Feature | None) -> bytes:
    """A record of TensorFlow's object detection; xmin, xmax, ymin, ymax of each object."""
    columns = list(zip(*boxes, strict=True)) if boxes else [()] * 4
    features: dict[str, Feature | None] = {
        **{
            f"image/object/bbox/{side}": float_feature(column)
            for side, column in zip(("xmin", "xmax", "ymin", "ymax"), columns, strict=True)
        },
        "image/object/class/label": int64_feature([1] * len(boxes)),
        "image/object/class/text": bytes_feature([b"cat"] * len(boxes)),
        "image/object/is_crowd": int64_feature([0] * len(boxes)),
    }
    for name, feature in changes.items():
        features[f"image/object/{name.replace('__', '/')}"] = feature
    return encode({name: each for name, each in features.items() if each is not None})


def labelled(label: int, text: str | None = None) -> bytes:
    features = {"image/class/label": int64_feature(label)}
    if text is not None:
        features["image/class/text"] = bytes_feature(text)
    return encode(features)


def look(folder: Path, splits: dict[str, Sequence[bytes]], **options: Any) -> Document:
    for split, payloads in splits.items():
        (folder / f"x-{split}.tfrecord-00000-of-00001").write_bytes(framed(*payloads))
    root = None
    if options:
        root = folder / "registry"
        init(root, with_dvc=False)
        values = ", ".join(f"{name} = {value!r}" for name, value in options.items())
        with (root / "tfrecreg.toml").open("a", encoding="utf-8") as config:
            config.write(f"\n[gates.default]\nlimits.annotations = {{ {values} }}\n")
    paths = sorted(path for path in folder.iterdir() if path.name.startswith("x-"))
    return document(paths, root, only=("annotations",))


def found(document: Document) -> list[tuple[str, str, int]]:
    """Code, feature and count of each finding."""
    assert document["errors"] == []
    return sorted(
        (each["code"], each["fingerprint"].split(":")[3], each["count"])
        for each in document["findings"]
    )


def test_sound_annotations_are_clean(tmp_path: Path) -> None:
    keypoints = {f"keypoint__{name}": float_feature([0.5] * 6) for name in ("x", "y")}
    payloads = [
        image(),
        image([]),
        image([GOOD, (0, 1, 0, 1)]),
        image([GOOD, GOOD], keypoint__num=int64_feature([3, 1]), **keypoints),
        image([GOOD], area=float_feature([]), class__text=bytes_feature([])),
        encode({"image/encoded": bytes_feature(b"x")}),
        b"\xff",
    ]
    checked = look(tmp_path, {"train": payloads})
    assert (checked["status"], found(checked)) == ("pass", [])
    assert checked["measures"] == {
        "annotations.records": 5,
        "annotations.objects": 6,
        "annotations.classes.image/object/class/label": 1,
        "annotations.histogram.image/object/class/label": {"1 cat": 6},
        "annotations.balance.image/object/class/label": {"train": 1},
    }


class TestANN001:
    @pytest.mark.parametrize(
        ("changes", "feature", "detail"),
        [
            ({"bbox__ymax": float_feature([0.4])}, "bbox/ymax", "expected 2 values, found 1"),
            ({"bbox__ymax": None}, "bbox/ymax", "expected 2 values, found 0"),
            ({"class__label": int64_feature([1])}, "class/label", "expected 2 values, found 1"),
            ({"class__label": int64_feature([])}, "class/label", "expected 2 values, found 0"),
            (
                {"class__text": bytes_feature([b"a"] * 3)},
                "class/text",
                "expected 2 values, found 3",
            ),
            ({"area": float_feature([9.0])}, "area", "expected 2 values, found 1"),
            (
                {"keypoint__x": float_feature([0.5] * 3)},
                "keypoint/x",
                "found 3 values for 2 objects",
            ),
            (
                {
                    "keypoint__x": float_feature([0.5] * 4),
                    "keypoint__y": float_feature([0.5] * 6),
                },
                "keypoint/y",
                "expected 4 values, found 6",
            ),
        ],
    )
    def test_a_list_of_another_length_is_found(
        self, tmp_path: Path, changes: dict[str, Any], feature: str, detail: str
    ) -> None:
        checked = look(tmp_path, {"train": [image([GOOD, GOOD]), image([GOOD] * 2, **changes)]})
        assert found(checked) == [("ANN001", f"image/object/{feature}", 1)]
        (finding,) = checked["findings"]
        assert finding["severity"] == "error"
        (place,) = finding["locations"]
        assert (place["record"], place["detail"]) == (1, detail)

    def test_labels_without_boxes_are_the_measure_of_the_others(self, tmp_path: Path) -> None:
        payload = encode(
            {
                "image/object/class/label": int64_feature([1, 2]),
                "image/object/class/text": bytes_feature(b"cat"),
            }
        )
        checked = look(tmp_path, {"train": [payload]})
        assert found(checked) == [("ANN001", "image/object/class/text", 1)]


class TestBoxes:
    @pytest.mark.parametrize(
        ("box", "codes"),
        [
            ((-0.1, 0.5, 0, 1), ["ANN002"]),
            ((0, 1.01, 0, 1), ["ANN002"]),
            ((10, 200, 20, 300), ["ANN002"]),
            ((math.nan, 1, 0, 1), ["ANN002"]),
            ((0, math.inf, 0, 1), ["ANN002"]),
            ((0.5, 0.5, 0, 1), ["ANN003"]),
            ((0, 1, 0.6, 0.4), ["ANN003"]),
            ((1.5, 0.5, 0, 1), ["ANN002", "ANN003"]),
            ((0, 1.0000005, -1e-7, 1), []),
            ((0, 1, 0, 1), []),
        ],
    )
    def test_boxes_outside_and_boxes_without_area_are_found(
        self, tmp_path: Path, box: Box, codes: list[str]
    ) -> None:
        checked = look(tmp_path, {"train": [image(), image([GOOD, box])]})
        assert [code for code, _, _ in found(checked)] == codes
        for finding in checked["findings"]:
            (place,) = finding["locations"]
            assert place["record"] == 1
            assert place["detail"].startswith("object 1: x ")

    def test_boxes_in_whole_pixels_are_outside_as_well(self, tmp_path: Path) -> None:
        sides = {
            f"bbox__{side}": int64_feature(value)
            for side, value in zip(("xmin", "xmax", "ymin", "ymax"), (1, 20, 3, 40), strict=True)
        }
        checked = look(tmp_path, {"train": [image(**sides)]})
        assert found(checked) == [("ANN002", "image/object/bbox/xmin", 1)]
        assert checked["findings"][0]["locations"][0]["detail"] == (
            "object 0: x 1 to 20, y 3 to 40"
        )


class TestANN004:
    def test_a_label_outside_the_map_of_the_manifest_is_found(self, digits: Digits) -> None:
        """The manifest of a build is left as it is; the records of one shard are others."""
        path = digits.path("train", 0)
        path.unlink()
        path.write_bytes(framed(labelled(3), labelled(10), labelled(11), labelled(-1)))
        checked = digits.check("annotations")
        assert found(checked) == [("ANN004", "image/class/label", 3)]
        (finding,) = checked["findings"]
        assert [place["record"] for place in finding["locations"]] == [1, 2, 3]
        assert finding["locations"][0]["detail"] == "found 10, which has no name"
        assert checked["measures"]["annotations.records"] == 164

    @pytest.mark.parametrize(
        "text",
        [
            'item {\n  id: 1\n  name: \'cat\'\n}\nitem { name: "dog" id: 3 display_name: "Dog" }',
            "\ncat\n\ndog\n",
            "item { id: 1 display_name: 'cat' }\nitem { id: 3 name: \"dog\" keypoints { id: 7 } }",
        ],
        ids=["pbtxt", "lines", "nested"],
    )
    def test_a_label_outside_a_map_in_a_file_is_found(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "map").write_text(text)
        payloads = [labelled(1, "cat"), labelled(3, "dog"), labelled(2, "bird")]
        checked = look(tmp_path, {"train": payloads}, label_map=str(tmp_path / "map"))
        assert found(checked) == [("ANN004", "image/class/label", 1)]

    def test_without_a_map_every_number_is_a_class(self, tmp_path: Path) -> None:
        assert found(look(tmp_path, {"train": [labelled(1), labelled(99)]})) == []


class TestANN005:
    def test_classes_that_a_split_lacks_are_counted_and_named(self, tmp_path: Path) -> None:
        splits = {
            "train": [labelled(number, f"class {number}") for number in range(30)],
            "test": [labelled(number, f"class {number}") for number in range(4, 30, 5)],
        }
        checked = look(tmp_path, splits)
        assert found(checked) == [("ANN005", "image/class/label", 24)]
        (finding,) = checked["findings"]
        assert finding["severity"] == "warning"
        assert finding["message"] == ("`test` lacks 24 of the 30 classes of `image/class/label`")
        assert finding["fingerprint"] == "ANN005::test:image/class/label:"
        assert len(finding["locations"]) == 20
        assert finding["locations"][4]["detail"] == "`class 5`"

    def test_classes_of_the_map_that_no_split_has_are_told_once(self, tmp_path: Path) -> None:
        (tmp_path / "map").write_text("cat\ndog\nbird\n")
        splits = {"train": [labelled(0), labelled(1)], "test": [labelled(0), labelled(1)]}
        checked = look(tmp_path, splits, label_map=str(tmp_path / "map"))
        (finding,) = checked["findings"]
        assert finding["message"] == ("all splits lack 1 of the 3 classes of `image/class/label`")
        assert [place["detail"] for place in finding["locations"]] == ["`bird`"]

    def test_a_split_without_labels_lacks_none(self, tmp_path: Path) -> None:
        splits = {"train": [labelled(0), labelled(1)], "test": [labelled(-1)] * 3}
        assert found(look(tmp_path, splits)) == []

    def test_objects_have_classes_as_images_do(self, tmp_path: Path) -> None:
        splits = {
            "train": [image([GOOD] * 2, class__label=int64_feature([1, 5]), class__text=None)],
            "test": [image(class__text=None)],
        }
        checked = look(tmp_path, splits)
        assert found(checked) == [("ANN005", "image/object/class/label", 1)]
        assert checked["findings"][0]["locations"][0]["detail"] == "5"


class TestANN006:
    PAYLOADS = (*[labelled(0, "cat")] * 50, *[labelled(1, "dog")] * 5)

    def test_a_rare_class_is_found_where_a_limit_says_so(self, tmp_path: Path) -> None:
        checked = look(tmp_path, {"train": self.PAYLOADS}, imbalance=9.5)
        assert found(checked) == [("ANN006", "image/class/label", 1)]
        (finding,) = checked["findings"]
        assert finding["message"] == (
            "the most frequent class of `image/class/label` should occur at most 9.5 times as "
            "often as the rarest"
        )
        assert finding["locations"][0]["detail"] == "`cat` 50 times, `dog` 5"

    @pytest.mark.parametrize("options", [{}, {"imbalance": 10}])
    def test_otherwise_the_balance_is_only_measured(
        self, tmp_path: Path, options: dict[str, Any]
    ) -> None:
        checked = look(tmp_path, {"train": self.PAYLOADS}, **options)
        assert found(checked) == []
        assert checked["measures"]["annotations.balance.image/class/label"] == {"train": 10}


class TestANN007:
    def test_a_name_that_is_not_that_of_the_map_is_found(self, tmp_path: Path) -> None:
        (tmp_path / "map").write_text("cat\ndog\n")
        payloads = [labelled(0, "cat"), labelled(1, "cat"), labelled(1, "dog\x1b")]
        checked = look(tmp_path, {"train": payloads}, label_map=str(tmp_path / "map"))
        assert found(checked) == [("ANN007", "image/class/text", 2)]
        details = [place["detail"] for place in checked["findings"][0]["locations"]]
        assert details == ["1 is `dog`, found `cat`", r"1 is `dog`, found `dog\x1b`"]

    def test_records_that_contradict_each_other_are_found_without_a_map(
        self, tmp_path: Path
    ) -> None:
        splits = {
            "train": [labelled(0, "cat"), labelled(1, "dog")],
            "test": [labelled(0, "dog"), labelled(1, "dog")],
        }
        checked = look(tmp_path, splits)
        assert found(checked) == [("ANN007", "image/class/label", 2)]
        details = [place["detail"] for place in checked["findings"][0]["locations"]]
        assert details == [
            "0 is called `cat` and `dog`",
            "0 and 1 are both called `dog`",
        ]

    @pytest.mark.parametrize("path", ["", "review/"])
    def test_a_text_beside_a_label_is_no_name_of_a_class(self, tmp_path: Path, path: str) -> None:
        def review(label: int, text: str) -> bytes:
            features = {"label": int64_feature(label), "text": bytes_feature(text)}
            return encode({path + name: feature for name, feature in features.items()})

        rows = [review(1, "better than the book"), review(0, "never again"), review(1, "a joy")]
        checked = look(tmp_path, {"train": rows}, label=f"{path}label")
        assert found(checked) == []

    @pytest.mark.parametrize(
        ("label", "text"), [("class/label", "class/text"), ("species", "species/text")]
    )
    def test_names_that_belong_to_a_label_are_known(
        self, tmp_path: Path, label: str, text: str
    ) -> None:
        rows = [
            encode({label: int64_feature(0), text: bytes_feature(name)}) for name in ("cat", "dog")
        ]
        checked = look(tmp_path, {"train": rows}, label=label)
        assert found(checked) == [("ANN007", label, 1)]


class TestOptions:
    def test_features_of_other_names_are_named(self, tmp_path: Path) -> None:
        def row(label: int, text: str) -> bytes:
            return encode({"label": int64_feature(label), "name": bytes_feature(text)})

        splits = {"train": [row(0, "cat"), row(1, "cat")]}
        assert found(look(tmp_path, splits)) == []
        assert found(look(tmp_path, splits, label="label", text="name")) == [("ANN007", "label", 1)]

    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            ({"imbalence": 3}, "`limits.annotations.imbalence` is not known; did you mean"),
            ({"imbalance": 1}, "`limits.annotations.imbalance` should be a number > 1"),
            (
                {"text": "x"},
                "`text` needs `label`, because `text` holds the names for the numbers in `label`",
            ),
        ],
    )
    def test_an_option_that_makes_no_sense_is_refused(
        self, tmp_path: Path, options: dict[str, Any], complaint: str
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            look(tmp_path, {"train": [labelled(1)]}, **options)
        assert complaint in caught.value.message
        assert caught.value.exit_code == 2


def test_a_dataset_without_labels_says_why_it_was_not_looked_at(digits: Digits) -> None:
    manifest = open_registry(digits.root).dataset("digits").build_manifest()
    assert manifest is not None
    assert AnnotationsValidator().applies(target(manifest=manifest)) is None
    bare = replace(manifest, labels={}, features={"x": 1})
    why = AnnotationsValidator().applies(target(manifest=bare))
    assert why == "there is no feature of labels or boxes"
    for feature, skipped in (("x", 0), ("y", 1)):
        gate = GateConfig(limits={"annotations": {"label": feature}})
        assert len(choose(target(manifest=bare), gate, ["annotations"], ()).skipped) == skipped


def test_a_build_is_clean_and_what_was_found_is_kept(digits: Digits) -> None:
    import os

    for path in digits.folder.rglob("*"):
        os.utime(path, (1, 1))
    first, second = (digits.check("annotations", cached=True) for _ in range(2))
    assert (first["status"], first["findings"]) == ("pass", [])
    assert (first["summary"]["cached"], second["summary"]["cached"]) == (0, 4)
    assert first["measures"] == second["measures"]
    assert first["measures"]["annotations.classes.image/class/label"] == 10


@pytest.mark.realdata
class TestRealData:
    def test_records_of_object_detection_are_clean_under_their_map(
        self, realdata: Path, tmp_path: Path
    ) -> None:
        folder = realdata / "tfrecord/raccoon"
        init(tmp_path / "registry", with_dvc=False)
        path = folder / "training/object-detection.pbtxt"
        with (tmp_path / "registry/tfrecreg.toml").open("a") as config:
            config.write(f"\n[gates.default]\nlimits.annotations.label_map = '{path}'\n")
        checked = document(
            [folder / "data/test.record"], tmp_path / "registry", only=("annotations",)
        )
        assert found(checked) == []
        assert checked["measures"]["annotations.objects"] == 44

    def test_splits_of_three_records_lack_classes(self, realdata: Path) -> None:
        path = realdata / "tfrecord/datumaro/tf_detection_api_dataset"
        checked = document([path], only=("annotations",))
        assert found(checked) == [
            ("ANN004", "image/object/class/label", 1),  # 0, which its label map lacks
            ("ANN005", "image/object/class/label", 2),
        ]
